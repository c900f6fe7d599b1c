// SPDX-License-Identifier: Apache-2.0

package reads_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// This example creates a hook that reads the Namespace of each Pod, and declares the permissions for that.
func Example() {
	hooks := func(_ context.Context, deps *program.Deps) ([]*webhook.Hook, error) {
		client, err := kubernetes.NewForConfig(deps.Config)
		if err != nil {
			return nil, err
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		informer := factory.Core().V1().Namespaces()
		namespaces, err := reads.New(reads.Options[*corev1.Namespace]{
			Resource: "namespaces",
			Cached:   func(_, name string) (*corev1.Namespace, error) { return informer.Lister().Get(name) },
			Live: func(ctx context.Context, _, name string) (*corev1.Namespace, error) {
				return client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			},
			Metrics: deps.Metrics,
		})
		if err != nil {
			return nil, err
		}
		deps.RunInformers(factory)
		deps.Needs(reads.Rule("", "namespaces"))
		return []*webhook.Hook{teams(namespaces)}, nil
	}

	deps := program.NewDeps(nil, logr.Discard())
	_, err := hooks(context.Background(), deps)
	fmt.Println(err, deps.Rules()[""][0].Verbs)
	// Output:
	// <nil> [get list watch]
}

// teams returns a hook that denies Pods in Namespaces without a team.
func teams(namespaces *reads.Reader[*corev1.Namespace]) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "teams.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		namespace, err := namespaces.Get(ctx, "", req.Namespace)
		switch {
		case errors.Is(err, reads.ErrNotFound):
			return webhook.Denyf("the namespace %s does not exist", req.Namespace)
		case err != nil:
			return err // a failure: the failurePolicy decides
		case namespace.Labels["team"] == "":
			return webhook.Denyf("the namespace %s has no team", namespace.Name)
		}
		return nil
	})
}
