// SPDX-License-Identifier: Apache-2.0

package uniqueingresshosts

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

func ingress(namespace, name string, hosts ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	for _, host := range hosts {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host})
	}
	return i
}

// ingresses returns a cache with these Ingresses.
func ingresses(t *testing.T, all ...*networkingv1.Ingress) cache.Indexer {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, Indexers())
	for _, i := range all {
		if err := indexer.Add(i); err != nil {
			t.Fatal(err)
		}
	}
	return indexer
}

func TestHook(t *testing.T) {
	t.Parallel()
	denial := func(host string) string {
		return `ingresses.networking.k8s.io "shop" is forbidden: an Ingress in another namespace has the host ` + host +
			": use another host, or ask a cluster administrator for this one"
	}
	rows := []struct {
		reason     string
		hosts, old []string // of the Ingress shop in team-a
		denial     string
	}{
		{"a free host", []string{"new.example.com"}, nil, ""},
		{"a host of another namespace", []string{"new.example.com", "taken.example.com"}, nil, denial("taken.example.com")},
		{"a host of the same namespace", []string{"own.example.com"}, nil, ""},
		{"a host of the same and of another namespace", []string{"both.example.com"}, nil, denial("both.example.com")},
		{"no host", []string{""}, nil, ""},
		{"no rule", nil, nil, ""},
		{"a wildcard is a host", []string{"*.example.com"}, nil, denial("*.example.com")},
		{"a host below a wildcard", []string{"a.example.com"}, nil, ""},
		{"an update adds a host", []string{"new.example.com", "taken.example.com"}, []string{"new.example.com"}, denial("taken.example.com")},
		{"an update keeps a host", []string{"new.example.com", "taken.example.com"}, []string{"taken.example.com"}, ""},
		{"an update removes a host", []string{}, []string{"taken.example.com"}, ""},
	}
	hook := Hook(ingresses(t,
		ingress("team-b", "shop", "taken.example.com", "taken.example.com", "", "*.example.com"),
		ingress("team-a", "other", "own.example.com", "both.example.com"),
		ingress("team-c", "other", "both.example.com"),
	))
	for _, row := range rows {
		op, old := admissionv1.Create, (*networkingv1.Ingress)(nil)
		if row.old != nil {
			op, old = admissionv1.Update, ingress("team-a", "shop", row.old...)
		}
		decision, _ := gallerytest.On(t, hook, op, networkingv1.SchemeGroupVersion.WithKind("Ingress"), "ingresses", ingress("team-a", "shop", row.hosts...), old)
		t.Run(row.reason, func(t *testing.T) { gallerytest.Denied(t, decision, row.denial) })
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	kind := networkingv1.SchemeGroupVersion.WithKind("Ingress")
	create := webhooktest.Request(t, admissionv1.Create, kind, "ingresses", ingress("team-a", "shop", "a.example.com"), nil)
	unindexed := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if got := webhooktest.Failure(t, Hook(unindexed), create).Message; got == "" {
		t.Error("want a message")
	}
	update := webhooktest.Request(t, admissionv1.Update, kind, "ingresses", ingress("team-a", "shop"), ingress("team-a", "shop"))
	update.OldObject.Raw = nil
	webhooktest.Failure(t, Hook(ingresses(t)), update)
}

func TestIndexOfAnotherKind(t *testing.T) {
	t.Parallel()
	if _, err := Indexers()[byHost](&corev1.Pod{}); err == nil {
		t.Error("want an error")
	}
}
