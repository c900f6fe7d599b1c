// SPDX-License-Identifier: Apache-2.0

// Command katib serves the webhooks of Katib on a loopback address, which it prints.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"

	configapi "github.com/kubeflow/katib/pkg/apis/config/v1beta1"
	apis "github.com/kubeflow/katib/pkg/apis/controller"
	common "github.com/kubeflow/katib/pkg/apis/controller/common/v1beta1"
	experiments "github.com/kubeflow/katib/pkg/apis/controller/experiments/v1beta1"
	suggestions "github.com/kubeflow/katib/pkg/apis/controller/suggestions/v1beta1"
	trials "github.com/kubeflow/katib/pkg/apis/controller/trials/v1beta1"
	"github.com/kubeflow/katib/pkg/webhook/v1beta1/experiment"
	"github.com/kubeflow/katib/pkg/webhook/v1beta1/pod"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func main() {
	log.Fatal(run())
}

func run() error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apis.AddToScheme(scheme))
	utilruntime.Must(configapi.AddToScheme(scheme))
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster()...).Build()
	decoder := admission.NewDecoder(scheme)
	mux := http.NewServeMux()
	mux.Handle("/mutate-experiment", &webhook.Admission{Handler: experiment.NewExperimentDefaulter(reader, decoder)})
	mux.Handle("/mutate-pod", &webhook.Admission{Handler: pod.NewSidecarInjector(reader, decoder)})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mux)
}

// cluster returns the objects that the webhook reads: Katib's configuration, and a trial of an experiment with its Job.
func cluster() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "katib-config", Namespace: "kubeflow"},
			Data: map[string]string{"katib-config.yaml": `
apiVersion: config.kubeflow.org/v1beta1
kind: KatibConfig
runtime:
  metricsCollectors:
  - kind: StdOut
    image: registry.example.com/file-metrics-collector:1
`},
		},
		&experiments.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "random", Namespace: "default"}},
		&suggestions.Suggestion{
			ObjectMeta: metav1.ObjectMeta{Name: "random", Namespace: "default"},
			Spec:       suggestions.SuggestionSpec{Algorithm: &common.AlgorithmSpec{AlgorithmName: "random"}},
		},
		&trials.Trial{
			ObjectMeta: metav1.ObjectMeta{
				Name: "random-x2k4q", Namespace: "default", Labels: map[string]string{"katib.kubeflow.org/experiment": "random"},
			},
			Spec: trials.TrialSpec{
				PrimaryContainerName: "train",
				Objective:            &common.ObjectiveSpec{Type: common.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
				MetricsCollector:     common.MetricsCollectorSpec{Collector: &common.CollectorSpec{Kind: common.StdOutCollector}},
			},
		},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: "random-x2k4q", Namespace: "default",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1beta1", Kind: "Trial", Name: "random-x2k4q", UID: "1"}},
		}},
	}
}
