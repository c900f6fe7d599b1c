// SPDX-License-Identifier: Apache-2.0

// Command gatekeeper-3.18 serves the mutating webhook of Gatekeeper on a loopback address, which it prints. The mutators
// are those in mutators.yaml.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/open-policy-agent/gatekeeper/v3/pkg/controller/config/process"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/mutators"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/types"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/webhook"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"
)

//go:embed mutators.yaml
var configured []byte

func main() {
	log.Fatal(run())
}

func run() error {
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme:  clientgoscheme.Scheme,
		Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
		NewClient: func(*rest.Config, client.Options) (client.Client, error) {
			return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: namespace}).Build(), nil
		},
	})
	if err != nil {
		return err
	}
	system, err := mutationSystem()
	if err != nil {
		return err
	}
	dependencies := webhook.Dependencies{MutationSystem: system, ProcessExcluder: process.Get()}
	if err := webhook.AddMutatingWebhook(mgr, dependencies); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mgr.GetWebhookServer().WebhookMux())
}

// namespace stands for a cluster that has every Namespace.
func namespace(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetName(key.Name)
	into.SetLabels(map[string]string{"kubernetes.io/metadata.name": key.Name})
	return nil
}

// mutationSystem returns Gatekeeper's mutation system with the configured mutators.
func mutationSystem() (*mutation.System, error) {
	var all []map[string]any
	if err := yaml.Unmarshal(configured, &all); err != nil {
		return nil, err
	}
	system := mutation.NewSystem(mutation.SystemOpts{})
	for _, doc := range all {
		mutator, err := mutatorOf(&unstructured.Unstructured{Object: doc})
		if err != nil {
			return nil, err
		}
		if err := system.Upsert(mutator); err != nil {
			return nil, err
		}
	}
	return system, nil
}

func mutatorOf(u *unstructured.Unstructured) (types.Mutator, error) {
	switch u.GetKind() {
	case "Assign":
		return convert(u, mutators.MutatorForAssign)
	case "AssignMetadata":
		return convert(u, mutators.MutatorForAssignMetadata)
	case "AssignImage":
		return convert(u, mutators.MutatorForAssignImage)
	case "ModifySet":
		return convert(u, mutators.MutatorForModifySet)
	}
	return nil, fmt.Errorf("%s is not the kind of a mutator", u.GetKind())
}

// convert decodes a mutator and prepares it, as Gatekeeper's controllers do.
func convert[T any, M types.Mutator](u *unstructured.Unstructured, prepare func(*T) (M, error)) (types.Mutator, error) {
	var configuration T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &configuration); err != nil {
		return nil, err
	}
	return prepare(&configuration)
}
