// SPDX-License-Identifier: Apache-2.0

package namespacelifecycle

import (
	"fmt"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

func TestHook(t *testing.T) {
	for name, protected := range map[string]bool{
		"default": true, "kube-system": true, "kube-public": true, "production": true,
		"kube-node-lease": false, "team-a": false, "production-2": false,
	} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		hook := Hook(append(Protected(), "production")...)
		req := webhooktest.Request(t, admissionv1.Delete, corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", nil, namespace)
		denial := ""
		if protected {
			denial = fmt.Sprintf("namespaces %q is forbidden: this namespace may not be deleted", name)
		}
		gallerytest.Denied(t, webhooktest.Decision(t, hook, req), denial)
	}
}

// TestRegistration checks that the API server calls the hook only for the protected Namespaces, including kube-system.
func TestRegistration(t *testing.T) {
	_, configuration, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "test", URL: "https://127.0.0.1"}, Hook(Protected()...))
	if err != nil {
		t.Fatal(err)
	}
	got := configuration.Webhooks[0].NamespaceSelector.MatchExpressions
	if len(got) != 1 || got[0].Operator != metav1.LabelSelectorOpIn || !slices.Equal(got[0].Values, Protected()) {
		t.Errorf("got %v", got)
	}
	if Hook().Check() == nil {
		t.Error("want an error for a hook that protects nothing")
	}
}
