// SPDX-License-Identifier: Apache-2.0

// Command tekton serves the defaulting webhook of Tekton Pipelines on a loopback address, which it prints.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/tektoncd/pipeline/pkg/apis/config"
	pipeline "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/webhook"
	"knative.dev/pkg/webhook/resourcesemantics"
	"knative.dev/pkg/webhook/resourcesemantics/defaulting"
)

// kinds are some of those that the program of Tekton serves.
var kinds = map[schema.GroupVersionKind]resourcesemantics.GenericCRD{
	pipeline.SchemeGroupVersion.WithKind("Task"):        &pipeline.Task{},
	pipeline.SchemeGroupVersion.WithKind("TaskRun"):     &pipeline.TaskRun{},
	pipeline.SchemeGroupVersion.WithKind("Pipeline"):    &pipeline.Pipeline{},
	pipeline.SchemeGroupVersion.WithKind("PipelineRun"): &pipeline.PipelineRun{},
}

func main() {
	log.Fatal(run())
}

// run serves the webhook without its informers, which only renew its certificate and its configuration.
func run() error {
	if err := os.Setenv("SYSTEM_NAMESPACE", "tekton-pipelines"); err != nil {
		return err
	}
	ctx := webhook.WithOptions(context.Background(), webhook.Options{ServiceName: "tekton-pipelines-webhook"})
	ctx, _ = injection.Default.SetupInformers(ctx, &rest.Config{})
	store := config.NewStore(logging.FromContext(ctx))
	store.OnConfigChanged(defaults())
	controller := defaulting.NewAdmissionController(ctx, "webhook.pipeline.tekton.dev", "/defaulting", kinds, store.ToContext, true)
	server, err := webhook.New(ctx, []any{controller.Reconciler})
	if err != nil {
		return err
	}
	server.InformersHaveSynced()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, server)
}

// defaults returns the configuration of the cluster: it has a template for all Pods.
func defaults() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "config-defaults", Namespace: "tekton-pipelines"},
		Data: map[string]string{"default-pod-template": `
nodeSelector: {pool: builds}
tolerations:
- {key: builds, operator: Exists}
env:
- {name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}
`},
	}
}
