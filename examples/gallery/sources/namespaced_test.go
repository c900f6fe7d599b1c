// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/admitkit/admitkit/pkg/reads"
)

// TestNamespaced checks that the readers find the objects of one namespace: in the API server while the caches are empty,
// and in the caches afterwards.
func TestNamespaced(t *testing.T) {
	t.Parallel()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	client := fake.NewClientset(
		&corev1.ServiceAccount{ObjectMeta: meta("team-a", "shop")},
		&corev1.LimitRange{ObjectMeta: meta("team-a", "b")}, &corev1.LimitRange{ObjectMeta: meta("team-a", "a")}, &corev1.LimitRange{ObjectMeta: meta("team-b", "c")},
	)
	factory := informers.NewSharedInformerFactory(client, 0)
	accounts, err := reads.New(ServiceAccounts(client, factory))
	if err != nil {
		t.Fatal(err)
	}
	ranges, err := reads.New(LimitRanges(client, factory))
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if got, err := accounts.Get(t.Context(), "team-a", "shop"); err != nil || got.Name != "shop" {
			t.Errorf("got %v, %v", got, err)
		}
		if got, err := accounts.Get(t.Context(), "team-b", "shop"); !errors.Is(err, reads.ErrNotFound) {
			t.Errorf("got %v, %v", got, err)
		}
		if got, err := ranges.Get(t.Context(), "team-a", "*"); err != nil || len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
			t.Errorf("got %v, %v", got, err)
		}
		if got, err := ranges.Get(t.Context(), "team-c", "*"); !errors.Is(err, reads.ErrNotFound) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	check()
	client.ClearActions()
	check()
	if lists := count(client.Actions(), "limitranges"); lists != 1 { // only for team-a: the reader remembers that team-c has none
		t.Errorf("the reader listed LimitRanges %d times", lists)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	client.ClearActions()
	check()
	if lists := count(client.Actions(), "limitranges"); lists != 0 {
		t.Errorf("the reader listed LimitRanges %d times", lists)
	}
}

func count(actions []clienttesting.Action, resource string) (n int) {
	for _, a := range actions {
		if a.GetVerb() == "list" && a.GetResource().Resource == resource {
			n++
		}
	}
	return n
}

// TestLimitRangesFails checks that a failure of the API server is not taken for a namespace without LimitRanges.
func TestLimitRangesFails(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	client.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no connection")
	})
	ranges, err := reads.New(LimitRanges(client, informers.NewSharedInformerFactory(client, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ranges.Get(t.Context(), "team-a", "*"); err == nil || err.Error() != "reading limitranges team-a/*: no connection" {
		t.Errorf("got %v", err)
	}
}
