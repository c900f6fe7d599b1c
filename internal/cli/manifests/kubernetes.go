// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"

	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/versions"
)

// form returns the form of the objects. The default is v1, or v1beta1 if the API server does not serve v1.
func (o *Options) form() string {
	if v, ok := versions.Parse(o.Kubernetes); o.Form == "" && ok && v.Before(versions.V1) {
		return V1beta1
	}
	if o.Form == "" {
		return V1
	}
	return o.Form
}

// checkVersion returns an error if the version of the API server is invalid, or does not support the form.
func (o *Options) checkVersion() error {
	if o.Kubernetes == "" {
		return nil
	}
	v, ok := versions.Parse(o.Kubernetes)
	switch form := o.form(); {
	case !ok:
		return problem.New("--kubernetes=%s is not a version", o.Kubernetes).Hint("--kubernetes 1.36")
	case v.Before(versions.First):
		return problem.New("--kubernetes=%s: Kubernetes has webhook configurations since 1.%d", o.Kubernetes, versions.First)
	case form == V1 && v.Before(versions.V1):
		return problem.New("--form=v1: Kubernetes %v does not serve it", v).Hint("--form v1beta1")
	case form == V1beta1 && !v.Before(versions.WithoutBeta):
		return problem.New("--form=v1beta1: Kubernetes %v does not serve it", v).Hint("--form v1")
	case form == Static && v.Before(versions.Static):
		return problem.New("--form=static: Kubernetes has static manifests since 1.%d", versions.Static).Hint("--form v1")
	}
	return nil
}

// withoutConditions removes the matchConditions from the webhooks if the API server does not know this field, and adds notes.
func (s *Set) withoutConditions(v versions.Version, mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) {
	if !v.Before(versions.Conditions.Since.Minor) {
		return
	}
	drop := func(webhook string, conditions *[]admissionregistrationv1.MatchCondition) {
		if len(*conditions) > 0 {
			s.note("%s: %v", webhook, versions.Conditions)
		}
		*conditions = nil
	}
	if mutating != nil {
		for i := range mutating.Webhooks {
			drop(mutating.Webhooks[i].Name, &mutating.Webhooks[i].MatchConditions)
		}
	}
	if validating != nil {
		for i := range validating.Webhooks {
			drop(validating.Webhooks[i].Name, &validating.Webhooks[i].MatchConditions)
		}
	}
}

// fit removes the fields that the API server does not know from the generated objects. It adds a note for each field whose
// loss matters.
func (s *Set) fit(v versions.Version) error {
	for i := range s.files {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.files[i].object)
		if err != nil {
			return err
		}
		webhooks, _ := object["webhooks"].([]any)
		for _, entry := range webhooks {
			webhook, _ := entry.(map[string]any)
			if err := callable(webhook, v); err != nil {
				return err
			}
			for _, loss := range versions.Fit(webhook, v) {
				s.note("%s: %v", webhook["name"], loss)
			}
		}
		s.files[i].object = object
	}
	return nil
}

// callable returns an error if an API server of a version cannot call the webhook.
func callable(webhook map[string]any, v versions.Version) error {
	reviews, _ := webhook["admissionReviewVersions"].([]any)
	if v.Before(versions.V1) && !slices.Contains(reviews, any(admissionv1beta1.SchemeGroupVersion.Version)) {
		return problem.New("webhook %s does not accept v1beta1 reviews, and Kubernetes %v sends no others", webhook["name"], v).
			Hint("add v1beta1 to the admissionReviewVersions of the hook")
	}
	client, _ := webhook["clientConfig"].(map[string]any)
	service, _ := client["service"].(map[string]any)
	if port := service["port"]; port != nil && port != int64(443) && v.Before(versions.ServicePort) {
		return problem.New("webhook %s: Kubernetes %v calls Services only at port 443, not %v", webhook["name"], v, port).
			Hint("--service NAMESPACE/NAME:443")
	}
	return nil
}
