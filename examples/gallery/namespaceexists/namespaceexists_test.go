// SPDX-License-Identifier: Apache-2.0

package namespaceexists

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

func in(namespace string) *corev1.Pod {
	return gallerytest.Pod(func(p *corev1.Pod) { p.Namespace = namespace })
}

func TestHook(t *testing.T) {
	hook := Hook(gallerytest.Namespaces(map[string]map[string]string{"team-a": nil}))
	for _, op := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete} {
		for namespace, denial := range map[string]string{"team-a": "", "gone": `namespaces "gone" not found`} {
			object, old := in(namespace), in(namespace)
			switch op {
			case admissionv1.Create:
				old = nil
			case admissionv1.Delete:
				object = nil
			}
			decision := webhooktest.Decision(t, hook, webhooktest.Request(t, op, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", object, old))
			switch {
			case decision.Allowed != (denial == ""):
				t.Errorf("%s in %s: allowed is %v", op, namespace, decision.Allowed)
			case decision.Allowed:
			case decision.Result.Code != http.StatusNotFound || decision.Result.Reason != metav1.StatusReasonNotFound || decision.Result.Message != denial:
				t.Errorf("%s in %s: got %v", op, namespace, decision.Result)
			}
		}
	}
}

func TestUnreadableNamespace(t *testing.T) {
	namespaces, err := reads.New(reads.Options[*corev1.Namespace]{
		Resource: "namespaces",
		Cached:   func(_, _ string) (*corev1.Namespace, error) { return nil, errors.New("timed out") },
		Live: func(context.Context, string, string) (*corev1.Namespace, error) {
			t.Error("a live request after an error of the cache")
			return nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := gallerytest.Fails(t, Hook(namespaces), in("team-a"), nil); !strings.Contains(got, "reading namespaces team-a: timed out") {
		t.Errorf("got %q", got)
	}
}
