// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// defaultTimeoutSeconds is short on purpose: the calls of all webhooks, in both rounds, share the
// 34 s that the API server gives to one request.
const defaultTimeoutSeconds = 5

// A registration holds the common fields of MutatingWebhook and ValidatingWebhook, with defaults.
type registration struct {
	mutating                bool
	name                    string
	clientConfig            admissionregistrationv1.WebhookClientConfig
	rules                   []admissionregistrationv1.RuleWithOperations
	failurePolicy           *admissionregistrationv1.FailurePolicyType
	matchPolicy             *admissionregistrationv1.MatchPolicyType
	namespaceSelector       *metav1.LabelSelector
	objectSelector          *metav1.LabelSelector
	sideEffects             *admissionregistrationv1.SideEffectClass
	timeoutSeconds          *int32
	admissionReviewVersions []string
	matchConditions         []admissionregistrationv1.MatchCondition
	reinvocationPolicy      *admissionregistrationv1.ReinvocationPolicyType
}

func fromMutating(w admissionregistrationv1.MutatingWebhook) registration {
	w = *w.DeepCopy()
	if w.ReinvocationPolicy == nil {
		w.ReinvocationPolicy = ptr.To(admissionregistrationv1.NeverReinvocationPolicy)
	}
	return registration{
		mutating: true, name: w.Name, clientConfig: w.ClientConfig, rules: w.Rules, failurePolicy: w.FailurePolicy,
		matchPolicy: w.MatchPolicy, namespaceSelector: w.NamespaceSelector, objectSelector: w.ObjectSelector,
		sideEffects: w.SideEffects, timeoutSeconds: w.TimeoutSeconds, admissionReviewVersions: w.AdmissionReviewVersions,
		matchConditions: w.MatchConditions, reinvocationPolicy: w.ReinvocationPolicy,
	}.completed()
}

func fromValidating(w admissionregistrationv1.ValidatingWebhook) registration {
	w = *w.DeepCopy()
	return registration{
		name: w.Name, clientConfig: w.ClientConfig, rules: w.Rules, failurePolicy: w.FailurePolicy,
		matchPolicy: w.MatchPolicy, namespaceSelector: w.NamespaceSelector, objectSelector: w.ObjectSelector,
		sideEffects: w.SideEffects, timeoutSeconds: w.TimeoutSeconds, admissionReviewVersions: w.AdmissionReviewVersions,
		matchConditions: w.MatchConditions,
	}.completed()
}

// completed sets explicit defaults. Configurations sets the namespaceSelector, since only it knows
// the namespace of the webhook.
func (r registration) completed() registration {
	if r.failurePolicy == nil {
		r.failurePolicy = ptr.To(admissionregistrationv1.Fail)
	}
	if r.matchPolicy == nil {
		r.matchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	}
	if r.sideEffects == nil {
		r.sideEffects = ptr.To(admissionregistrationv1.SideEffectClassNone)
	}
	if r.timeoutSeconds == nil {
		r.timeoutSeconds = ptr.To[int32](defaultTimeoutSeconds)
	}
	if r.admissionReviewVersions == nil {
		r.admissionReviewVersions = []string{"v1", "v1beta1"}
	}
	if r.objectSelector == nil {
		r.objectSelector = &metav1.LabelSelector{}
	}
	for i := range r.rules {
		if r.rules[i].Scope == nil {
			r.rules[i].Scope = ptr.To(admissionregistrationv1.AllScopes)
		}
	}
	return r
}

func (r registration) declaresSideEffects() bool {
	return *r.sideEffects == admissionregistrationv1.SideEffectClassNoneOnDryRun
}

func (r registration) timeout() time.Duration {
	return time.Duration(*r.timeoutSeconds) * time.Second
}

// path returns the path of the clientConfig without a trailing slash, as the API server requests
// it, or the default path.
func (r registration) path() string {
	set := ""
	switch c := r.clientConfig; {
	case c.Service != nil && c.Service.Path != nil:
		set = *c.Service.Path
	case c.URL != nil:
		if u, err := url.Parse(*c.URL); err == nil {
			set = u.Path
		}
	}
	switch {
	case set != "":
		return cleanPath(set)
	case r.mutating:
		return "/mutate/" + r.name
	default:
		return "/validate/" + r.name
	}
}
