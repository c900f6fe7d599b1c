// SPDX-License-Identifier: Apache-2.0

// Command vpcrc serves the Pod webhook of Amazon VPC Resource Controller on a loopback address, which it prints.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"

	vpcresources "github.com/aws/amazon-vpc-resource-controller-k8s/apis/vpcresources/v1beta1"
	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/condition"
	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/config"
	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/healthz"
	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/k8s"
	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/utils"
	"github.com/aws/amazon-vpc-resource-controller-k8s/webhooks/core"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	fakeclientset "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func main() {
	log.Fatal(run())
}

func run() error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(vpcresources.AddToScheme(scheme))
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects()...).
		WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()
	ctx := context.Background()
	conditions := condition.NewControllerConditions(logr.Discard(),
		k8s.NewK8sWrapper(cluster, fakeclientset.NewClientset().CoreV1(), ctx), false)
	hook := core.NewPodMutationWebHook(utils.NewSecurityGroupForPodsAPI(cluster, logr.Discard()), logr.Discard(),
		conditions, admission.NewDecoder(scheme), healthz.NewHealthzHandler(2))
	mux := http.NewServeMux()
	mux.Handle("/mutate-v1-pod", &webhook.Admission{Handler: hook})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mux)
}

// get stands for a cluster that has every ServiceAccount.
func get(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, isAccount := into.(*corev1.ServiceAccount); !isAccount {
		return c.Get(ctx, key, into, options...)
	}
	into.SetName(key.Name)
	into.SetNamespace(key.Namespace)
	return nil
}

// objects returns the policy of the project's samples, and the ConfigMap that enables the webhook for Windows.
func objects() []client.Object {
	return []client.Object{
		&vpcresources.SecurityGroupPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "securitygrouppolicy-sample-podselector", Namespace: "default"},
			Spec: vpcresources.SecurityGroupPolicySpec{
				PodSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"role": "db"},
					MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: "environment", Operator: metav1.LabelSelectorOpIn, Values: []string{"production", "qa"}},
					},
				},
				SecurityGroups: vpcresources.GroupIds{Groups: []string{"sg-07b9fafd9006da7d5", "sg-f7990sfng33684fad"}},
			},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: config.VpcCniConfigMapName, Namespace: config.KubeSystemNamespace},
			Data:       map[string]string{config.EnableWindowsIPAMKey: "true"},
		},
	}
}
