// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/adapt"
)

// teams is a Defaulter and a Validator of controller-runtime for the label team.
type teams struct{}

func (teams) Default(_ context.Context, cm *corev1.ConfigMap) error {
	if cm.Labels["team"] == "" {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, "team", "none")
	}
	return nil
}

func (teams) ValidateCreate(_ context.Context, cm *corev1.ConfigMap) (admission.Warnings, error) {
	if cm.Labels["team"] == "forbidden" {
		return nil, errors.New("this team creates no ConfigMaps")
	}
	return admission.Warnings{"team " + cm.Labels["team"]}, nil
}

func (teams) ValidateUpdate(_ context.Context, old, cm *corev1.ConfigMap) (admission.Warnings, error) {
	if old.Labels["team"] != cm.Labels["team"] {
		return nil, errors.New("the team cannot change")
	}
	return nil, nil
}

func (teams) ValidateDelete(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, errors.New("ConfigMaps of teams are kept")
}

func teamMap(namespace, team string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "prices", Namespace: namespace}}
	if team != "" {
		cm.Labels = map[string]string{"team": team}
	}
	return cm
}

func teamRegistration(namespace string) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: "teams.example.com", NamespaceSelector: only(namespace),
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "configmaps")),
	}
}

var _ = Describe("webhooks written for controller-runtime", func() {
	It("store what a Defaulter sets", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		r := teamRegistration(namespace)
		install(ctx, adapt.Defaulter(admissionregistrationv1.MutatingWebhook{
			Name: r.Name, NamespaceSelector: r.NamespaceSelector, Rules: r.Rules,
		}, teams{}))
		created, err := clients.CoreV1().ConfigMaps(namespace).Create(ctx, teamMap(namespace, ""), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(created.Labels).To(HaveKeyWithValue("team", "none"))
	})

	It("deny and warn as a Validator decides, for each operation", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		r := teamRegistration(namespace)
		r.Rules = webhook.Rules(webhook.OnWrite("", "v1", "configmaps"), webhook.OnDelete("", "v1", "configmaps"))
		install(ctx, adapt.Validator(r, teams{}))
		_, err := createWarned(ctx, teamMap(namespace, "forbidden"))
		Expect(err).To(MatchError(ContainSubstring("this team creates no ConfigMaps")))
		warnings, err := createWarned(ctx, teamMap(namespace, "shop"))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(ContainElement(ContainSubstring("team shop")))
		_, err = clients.CoreV1().ConfigMaps(namespace).Update(ctx, teamMap(namespace, "other"), metav1.UpdateOptions{})
		Expect(err).To(MatchError(ContainSubstring("the team cannot change")))
		Expect(clients.CoreV1().ConfigMaps(namespace).Delete(ctx, "prices", metav1.DeleteOptions{})).
			To(MatchError(ContainSubstring("ConfigMaps of teams are kept")))
	})

	It("apply the patch of a Handler, and deny with its code", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		r := teamRegistration(namespace)
		install(ctx, adapt.MutatingHandler(admissionregistrationv1.MutatingWebhook{
			Name: r.Name, NamespaceSelector: r.NamespaceSelector, Rules: r.Rules,
		}, admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
			cm := &corev1.ConfigMap{}
			if err := json.Unmarshal(req.Object.Raw, cm); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			if cm.Labels["team"] == "forbidden" {
				return admission.Denied("the handler denies this team")
			}
			cm.Data = map[string]string{"patched": "yes"}
			changed, err := json.Marshal(cm)
			if err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			return admission.PatchResponseFromRaw(req.Object.Raw, changed)
		})))
		api := clients.CoreV1().ConfigMaps(namespace)
		_, err := api.Create(ctx, teamMap(namespace, "forbidden"), metav1.CreateOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("the handler denies this team")))
		created, err := api.Create(ctx, teamMap(namespace, "shop"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(created.Data).To(HaveKeyWithValue("patched", "yes"))
	})
})

// namedMap is a ConfigMap type that has only the metadata.
type namedMap struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Immutable         *bool `json:"immutable,omitempty"`
}

var _ = Describe("the policy for unknown fields", func() {
	withData := func(namespace string) *corev1.ConfigMap {
		cm := teamMap(namespace, "")
		cm.Data = map[string]string{"k": "v"}
		return cm
	}
	policyHook := func(ctx context.Context, namespace string, policy webhook.UnknownFieldsPolicy) {
		hook := webhook.Validating(teamRegistration(namespace), func(context.Context, *webhook.Request[namedMap]) error { return nil })
		install(ctx, hook.WithUnknownFields(policy))
	}

	It("ignores, warns about or denies an object with such fields", func(ctx context.Context) {
		for policy, denied := range map[webhook.UnknownFieldsPolicy]bool{
			webhook.IgnoreUnknownFields: false, webhook.WarnUnknownFields: false, webhook.DenyUnknownFields: true,
		} {
			namespace := newNamespace(ctx)
			policyHook(ctx, namespace, policy)
			warnings, err := createWarned(ctx, withData(namespace))
			if denied {
				Expect(err).To(MatchError(ContainSubstring("data")), "%v", policy)
				continue
			}
			Expect(err).NotTo(HaveOccurred(), "%v", policy)
			if policy == webhook.WarnUnknownFields {
				Expect(warnings).To(ContainElement(ContainSubstring("data")))
			} else {
				Expect(warnings).To(BeEmpty())
			}
		}
	})
})

var _ = Describe("configurations of admissionregistration.k8s.io/v1beta1", func() {
	It("are replaced by v1, because this API server does not serve them", func(ctx context.Context) {
		client, err := dynamic.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		old := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": "MutatingWebhookConfiguration",
			"metadata": map[string]any{"name": "old.example.com"},
		}}
		_, err = client.Resource(schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1beta1", Resource: "mutatingwebhookconfigurations",
		}).Create(ctx, old, metav1.CreateOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})
})
