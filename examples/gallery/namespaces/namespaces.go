// SPDX-License-Identifier: Apache-2.0

// Package namespaces lets the hooks of the gallery read the Namespace of a request.
package namespaces

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/reads"
)

// Reader returns a reader of Namespaces with an informer's cache. It declares the permissions that it needs. The program
// is ready only when the cache has synced.
func Reader(deps *program.Deps) (*reads.Reader[*corev1.Namespace], error) {
	client, err := kubernetes.NewForConfig(deps.Config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Namespaces()
	deps.RunInformers(factory)
	deps.Needs(reads.Rule("", "namespaces"))
	return reads.New(reads.Options[*corev1.Namespace]{
		Resource: "namespaces",
		Cached:   func(_, name string) (*corev1.Namespace, error) { return informer.Lister().Get(name) },
		Live: func(ctx context.Context, _, name string) (*corev1.Namespace, error) {
			return client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		},
		Metrics: deps.Metrics,
	})
}
