// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

func mustReadSecret(t *testing.T, k *Client) Secret {
	t.Helper()
	s, err := k.ReadSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func data(pairs ...string) map[string][]byte {
	m := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = []byte(pairs[i+1])
	}
	return m
}

func testSecret(t *testing.T, c testCluster) {
	k := c.cluster(t)
	if s := mustReadSecret(t, k); s.Version != "" || len(s.Data) != 0 {
		t.Errorf("got %v before there was one", s)
	}
	write := func(version string, d map[string][]byte) error {
		return k.WriteSecret(t.Context(), Secret{Version: version, Data: d})
	}
	if err := write("", data("a", "one", "b", "\x00\xff")); err != nil {
		t.Fatal(err)
	}
	wantError(t, write("", data("a", "other")), ErrConflict, "Secret "+k.namespace+"/ca")

	first := mustReadSecret(t, k)
	if diff := cmp.Diff(first.Data, data("a", "one", "b", "\x00\xff")); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
	r := c.Resource("v1", "Secret", k.namespace)
	object := kubetest.Get(t, r, "ca")
	if kind, label := object.Object["type"], object.GetLabels()["app.kubernetes.io/managed-by"]; kind != "Opaque" || label != "admitkit" {
		t.Errorf("got type %q and label %q", kind, label)
	}

	// Metadata that other clients add stays. Adding it changes the version.
	kubetest.Merge(t, r, "ca", `{"metadata": {"labels": {"mine": "yes"}, "annotations": {"note": "keep"}, "ownerReferences":
		[{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1-2-3"}]}}`)
	wantError(t, write(first.Version, data("a", "late")), ErrConflict)
	second := mustReadSecret(t, k)
	if err := write(second.Version, data("c", "three")); err != nil {
		t.Fatal(err)
	}
	third := mustReadSecret(t, k)
	if diff := cmp.Diff(third.Data, data("c", "three")); diff != "" || third.Version == second.Version {
		t.Errorf("version %s after %s; -got +want:\n%s", third.Version, second.Version, diff)
	}
	object = kubetest.Get(t, r, "ca")
	if object.GetLabels()["mine"] != "yes" || object.GetAnnotations()["note"] != "keep" || len(object.GetOwnerReferences()) != 1 {
		t.Errorf("metadata of others is conflictOr: %v", object.Object["metadata"])
	}
	if err := write(third.Version, nil); err != nil {
		t.Fatal(err)
	}
	emptied := mustReadSecret(t, k)
	if len(emptied.Data) != 0 || emptied.Version == "" {
		t.Errorf("got %v, want no data, but a version", emptied)
	}

	// After the Secret was deleted, or deleted and created again, its version differs.
	if err := r.Delete(t.Context(), "ca", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantError(t, write(emptied.Version, data("a", "x")), ErrConflict)
	if err := write("", data("a", "again")); err != nil {
		t.Fatal(err)
	}
	wantError(t, write(emptied.Version, data("a", "x")), ErrConflict)
}

// testSecretRaces has many clients increment a number in the Secret at once. If several clients have read the same
// version, only one of them may write, so the final number must be correct.
func testSecretRaces(t *testing.T, c testCluster) {
	namespace := c.Namespace(t)
	const writers, each = 10, 3
	var all sync.WaitGroup
	for range writers {
		k := newTestCluster(t, c.Config, namespace, "ca") // each goroutine has its own client, as a replica has
		all.Go(func() {
			for done := 0; done < each; {
				s, err := k.ReadSecret(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(s.Data["n"]))
				s.Data = data("n", fmt.Sprint(n+1))
				switch err := k.WriteSecret(t.Context(), s); {
				case err == nil:
					done++
				case !errors.Is(err, ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	got := mustReadSecret(t, newTestCluster(t, c.Config, namespace, "ca"))
	if !bytes.Equal(got.Data["n"], []byte(fmt.Sprint(writers*each))) {
		t.Errorf("got %s, want %d", got.Data["n"], writers*each)
	}
}

func testUnwritableSecrets(t *testing.T, c testCluster) {
	rows := []struct {
		why, object string
		deleted     bool
		want        []string
	}{
		{"immutable", `{"immutable": true, "type": "Opaque"}`, false, []string{"is immutable", "delete the Secret"}},
		{"of another type", `{"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}`, false, []string{"has the type kubernetes.io/tls, want Opaque"}},
		{"being deleted", `{"type": "Opaque"}`, true, []string{"is being deleted", "example.com/wait"}},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			k := c.cluster(t)
			object := kubetest.Parse(t, row.object)
			object["metadata"] = map[string]any{"name": "ca", "namespace": k.namespace, "finalizers": []any{"example.com/wait"}}
			c.Create(t, "v1", "Secret", object)
			r := c.Resource("v1", "Secret", k.namespace)
			t.Cleanup(func() { kubetest.Merge(t, r, "ca", `{"metadata": {"finalizers": null}}`) })
			if row.deleted {
				if err := r.Delete(t.Context(), "ca", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			s := mustReadSecret(t, k)
			wantError(t, s.Closed, nil, append(row.want, "Secret "+k.namespace+"/ca")...) // reported before any write
			s.Data = data("a", "b")
			wantError(t, k.WriteSecret(t.Context(), s), nil, append(row.want, "Secret "+k.namespace+"/ca")...)
			if after := mustReadSecret(t, k); after.Version != s.Version {
				t.Error("it was written")
			}
		})
	}
	t.Run("namespace missing", func(t *testing.T) {
		k := newTestCluster(t, c.Config, "certs-none", "ca")
		wantError(t, k.WriteSecret(t.Context(), Secret{}), nil, "Secret certs-none/ca: there is no namespace certs-none")
	})
	t.Run("namespace being deleted", func(t *testing.T) {
		k := c.cluster(t)
		if err := c.Resource("v1", "Namespace", "").Delete(t.Context(), k.namespace, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err) // no controller finalizes namespaces here, so the namespace stays
		}
		err := k.WriteSecret(t.Context(), Secret{})
		wantError(t, err, nil, "Secret "+k.namespace+"/ca: cannot create it", "being terminated")
		if strings.Contains(err.Error(), "permission") {
			t.Errorf("got %q, which blames a missing permission", err)
		}
	})
}
