// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

const namespace = "generated"

// TestServerAcceptsObjects sends generated objects to a real API server. It must accept the objects of all kinds for
// which the package has rules, also with additions.
func TestServerAcceptsObjects(t *testing.T) {
	client := startServer(t)
	var work sync.WaitGroup
	for _, typ := range builtIn {
		work.Go(func() { createMany(t, client, typ) })
	}
	work.Wait()
}

func startServer(t *testing.T) dynamic.Interface {
	t.Helper()
	server := apiservertest.Start(t, nil)
	server.Config.QPS = -1
	client, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	ns := object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace}}
	if _, err := resource(client, ForType(builtIn[12])).Create(t.Context(), &unstructured.Unstructured{Object: ns}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return client
}

func resource(client dynamic.Interface, s *Schema) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(s.GVK)
	if s.Cluster {
		return client.Resource(plural)
	}
	return client.Resource(plural).Namespace(namespace)
}

// createMany creates generated objects of one type. It reports all errors, and not only the first one.
func createMany(t *testing.T, client dynamic.Interface, typ reflect.Type) {
	g := &Generator{Schema: ForType(typ), Namespace: namespace}
	seeds := uint64(20)
	if g.Schema.kind.pod != nil {
		seeds = 60
	}
	if typ == builtIn[0] {
		seeds = 400
	}
	to := resource(client, g.Schema)
	for seed := range seeds {
		r := source(seed)
		o, traits := g.Object(r, nil)
		if err := create(t.Context(), to, o); err != nil {
			t.Errorf("%s, seed %d, traits %v: %v\n%s", typ, seed, traits, err, tree.Encode(o))
			continue
		}
		with, places := o, g.Places(o)
		for range 5 {
			if a, ok := g.Addition(r, with, pick(&build{r: r}, places...)); ok {
				with, _ = a.Apply(with)
			}
		}
		if err := create(t.Context(), to, with); err != nil {
			t.Errorf("%s, seed %d, with additions: %v\n%s\n→\n%s", typ, seed, err, tree.Encode(o), tree.Encode(with))
		}
		if seed%2 == 0 {
			continue
		}
		more, traits := g.Object(r, with)
		if err := create(t.Context(), to, more); err != nil {
			t.Errorf("%s, seed %d, as a sample, traits %v: %v\n%s", typ, seed, traits, err, tree.Encode(more))
		}
	}
}

func create(ctx context.Context, to dynamic.ResourceInterface, o object) error {
	_, err := to.Create(ctx, &unstructured.Unstructured{Object: clone(o)}, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}
