// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/cli/traffic"
	"github.com/admitkit/admitkit/pkg/chain"
)

// A hook is a webhook of one of the configurations.
type hook struct {
	configuration, name string
	mutating, static    bool
	rules               []admissionregistrationv1.RuleWithOperations
	equivalent, ignore  bool
	effects             admissionregistrationv1.SideEffectClass
	namespaces, objects *metav1.LabelSelector
	conditions          []admissionregistrationv1.MatchCondition
	timeout             int32
	reinvocation        admissionregistrationv1.ReinvocationPolicyType
	path                string // of the URL
	// broken is the reason why the webhook cannot be explained, or nil.
	broken error
}

// hooks returns all webhooks in the order in which the chain evaluates them, and the input of the chain. If apart is
// true, hooks validates each configuration on its own. If a configuration cannot be read, the input has placeholders
// from inert instead of its webhooks.
func (w *Facts) hooks(apart bool) (all []hook, in chain.Webhooks) {
	for _, c := range w.mutating {
		c = c.DeepCopy()
		var own []hook
		for i := range c.Webhooks {
			own = append(own, ofMutating(c.Name, &c.Webhooks[i]))
		}
		alone := chain.Webhooks{Mutating: []*admissionregistrationv1.MutatingWebhookConfiguration{c}}
		if err := w.broken("MutatingWebhookConfiguration", c.Name, alone, apart); err != nil {
			for i := range own {
				own[i].broken = err
				name, client, none := inert(i)
				c.Webhooks[i] = admissionregistrationv1.MutatingWebhook{Name: name, ClientConfig: client, SideEffects: none, AdmissionReviewVersions: []string{"v1"}}
			}
		}
		all, in.Mutating = append(all, own...), append(in.Mutating, c)
	}
	for _, c := range w.validating {
		c = c.DeepCopy()
		var own []hook
		for i := range c.Webhooks {
			own = append(own, ofValidating(c.Name, &c.Webhooks[i]))
		}
		alone := chain.Webhooks{Validating: []*admissionregistrationv1.ValidatingWebhookConfiguration{c}}
		if err := w.broken("ValidatingWebhookConfiguration", c.Name, alone, apart); err != nil {
			for i := range own {
				own[i].broken = err
				name, client, none := inert(i)
				c.Webhooks[i] = admissionregistrationv1.ValidatingWebhook{Name: name, ClientConfig: client, SideEffects: none, AdmissionReviewVersions: []string{"v1"}}
			}
		}
		all, in.Validating = append(all, own...), append(in.Validating, c)
	}
	return all, in
}

func ofMutating(configuration string, h *admissionregistrationv1.MutatingWebhook) hook {
	return hook{
		configuration: configuration, name: h.Name, mutating: true, static: isStatic(configuration), rules: h.Rules,
		equivalent: isEquivalent(h.MatchPolicy), ignore: isIgnore(h.FailurePolicy), effects: accepted(&h.SideEffects),
		namespaces: h.NamespaceSelector, objects: h.ObjectSelector, conditions: h.MatchConditions, timeout: ptr.Deref(h.TimeoutSeconds, 10),
		reinvocation: ptr.Deref(h.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy),
		path:         traffic.Path(h.ClientConfig),
	}
}

func ofValidating(configuration string, h *admissionregistrationv1.ValidatingWebhook) hook {
	return hook{
		configuration: configuration, name: h.Name, static: isStatic(configuration), rules: h.Rules,
		equivalent: isEquivalent(h.MatchPolicy), ignore: isIgnore(h.FailurePolicy), effects: accepted(&h.SideEffects),
		namespaces: h.NamespaceSelector, objects: h.ObjectSelector, conditions: h.MatchConditions, timeout: ptr.Deref(h.TimeoutSeconds, 10),
		path: traffic.Path(h.ClientConfig),
	}
}

// broken returns the reason why a stored configuration cannot be read. The configuration may have fields that are
// newer than this program, or be older than a validation rule. broken returns nil if apart is false. It also returns
// nil for a configuration from a file, because engine reports the errors of files.
func (w *Facts) broken(kind, name string, alone chain.Webhooks, apart bool) error {
	if !apart || w.origins[kind+" "+name] != "" {
		return nil
	}
	engine, err := chain.New(alone, chain.Options{})
	if err == nil {
		_ = engine.Close() // engine has no connections to close
	}
	return err
}

// inert returns the fields of a valid placeholder for a webhook whose configuration cannot be read. Explain does not
// report the placeholder.
func inert(i int) (string, admissionregistrationv1.WebhookClientConfig, *admissionregistrationv1.SideEffectClass) {
	return fmt.Sprintf("webhook-%d.admitkit.invalid", i), admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://admitkit.invalid/")},
		ptr.To(admissionregistrationv1.SideEffectClassNone)
}

// accepted returns the sideEffects of a webhook, which determine whether it is called for dry runs. If the value is
// allowed only in v1beta1, accepted replaces it in the webhook, because validation would reject it.
func accepted(effects **admissionregistrationv1.SideEffectClass) admissionregistrationv1.SideEffectClass {
	said := ptr.Deref(*effects, "")
	if said == admissionregistrationv1.SideEffectClassUnknown || said == admissionregistrationv1.SideEffectClassSome {
		*effects = ptr.To(admissionregistrationv1.SideEffectClassNone)
	}
	return said
}

func isEquivalent(p *admissionregistrationv1.MatchPolicyType) bool {
	return p == nil || *p == admissionregistrationv1.Equivalent
}

func isIgnore(p *admissionregistrationv1.FailurePolicyType) bool {
	return p != nil && *p == admissionregistrationv1.Ignore
}
