// SPDX-License-Identifier: Apache-2.0

// Command awslbc serves the mutating webhooks of AWS Load Balancer Controller on a loopback address, which it prints.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	elbv2api "sigs.k8s.io/aws-load-balancer-controller/apis/elbv2/v1beta1"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/inject/albtargetcontrol"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/inject/pod_readiness"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/inject/quic"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/metrics/lbc"
	"sigs.k8s.io/aws-load-balancer-controller/webhooks/core"
	"sigs.k8s.io/aws-load-balancer-controller/webhooks/elbv2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	log.Fatal(run())
}

func run() error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(elbv2api.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme:  scheme,
		Logger:  logr.Discard(),
		Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		return err
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects()...).
		WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()
	metrics := lbc.NewCollector(nil, mgr, nil, logr.Discard())
	gates := pod_readiness.NewPodReadinessGate(pod_readiness.PodReadinessGateConfig{EnablePodReadinessGateInject: true},
		cluster, logr.Discard())
	ids := quic.NewQUICServerIDInjector(quic.ServerIDInjectionConfig{EnvironmentVariableName: "AWS_LBC_QUIC_SERVER_ID"},
		cluster, cluster, logr.Discard())
	agents := albtargetcontrol.NewALBTargetControlAgentInjector(cluster, cluster, logr.Discard(),
		albtargetcontrol.DefaultControllerNamespace)
	for _, hook := range []interface{ SetupWithManager(ctrl.Manager) }{
		core.NewPodReadinessGateMutator(gates, metrics),
		core.NewPodServerIDMutator(ids, metrics),
		core.NewALBTargetControlAgentMutator(agents, metrics),
		core.NewServiceMutator("service.k8s.aws/nlb", logr.Discard(), metrics),
		elbv2.NewTargetGroupBindingMutator(cloud{}, logr.Discard(), metrics),
	} {
		hook.SetupWithManager(mgr)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mgr.GetWebhookServer().WebhookMux())
}
