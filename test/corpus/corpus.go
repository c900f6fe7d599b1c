// SPDX-License-Identifier: Apache-2.0

// Package corpus is the corpus on which the idempotence harness is judged: mutating webhooks that
// break on reinvocation in the ways seen in public projects, and look-alikes that are correct.
//
// Every case is a real webhook, an http.Handler that answers AdmissionReviews of both versions,
// with the registration it would have. Names begin with the number of the pattern, P01 to P26, or
// of the handler that must not be flagged, N1 to N12, or M01 to M34 and V01 to V37 for what is in
// neither list. [Random] makes further cases, correct ones and the same with one edit broken.
package corpus

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// A Case is one webhook.
type Case struct {
	// Name begins with the number of the pattern.
	Name string
	// Laws are those that the pattern breaks; it may break others, too. A look-alike, which must
	// come out clean, has none.
	Laws []string
	// Advice says that what is found may be reported as advice only, or not at all.
	Advice bool
	// Webhook is the registration, without a ClientConfig.
	Webhook admissionregistrationv1.MutatingWebhook
	// New makes an instance with a state of its own. Instances are safe for concurrent use.
	New func() http.Handler
	// Samples are objects that the user gives: they switch the webhook on.
	Samples []runtime.Object
	// Exceptions are what the user declares.
	Exceptions []Exception
	// Rivals are webhooks to alternate with.
	Rivals []func() http.Handler
	// Observe returns what all instances of the case wrote outside so far, in comparable form. It
	// is nil for a webhook that writes nothing.
	Observe func() any
}

// An Exception declares intentional behavior of a webhook.
type Exception struct {
	// Path is a JSON pointer, where "*" stands for any list element or key.
	Path string
	// Law is the law that does not count there. Empty means every law.
	Law    string
	Reason string
}

// Patterns returns the broken webhooks.
func Patterns() []Case {
	return slices.Concat(growthPatterns(), valuePatterns(), selfCountingPatterns(), volumePatterns(), ownershipPatterns(),
		patchDocumentPatterns(), nondeterministicPatterns(), updatePatterns(), sideEffectPatterns(), envelopePatterns(), competingPatterns(), duplicateKeyPatterns(), customResourcePatterns(),
		repeatedChangePatterns(), wrongAssumptionPatterns(), lostChangePatterns())
}

// Lookalikes returns the correct webhooks.
func Lookalikes() []Case {
	return slices.Concat(growthLookalikes(), valueLookalikes(), selfCountingLookalikes(), volumeLookalikes(), ownershipLookalikes(),
		patchDocumentLookalikes(), nondeterministicLookalikes(), updateLookalikes(), sideEffectLookalikes(), envelopeLookalikes(), competingLookalikes(), duplicateKeyLookalikes(),
		customResourceLookalikes(), repeatedChangeLookalikes(), wrongAssumptionLookalikes(), correctRewrites(), harmless())
}

// HeldOut returns webhooks as they are found in clusters, which the harness was not made with:
// the correct ones must come out clean, and of each broken one a law must be found. Their names
// begin with C01 to C82 and B01 to B85.
func HeldOut() (correct, broken []Case) {
	return slices.Concat(correctInjectors(), correctDefaulters(), correctOtherKinds(), correctCustomResources(), correctFollowers(), correctUnnamedElements()),
		slices.Concat(listMistakes(), invalidResults(), sharedStates(), brokenValues(), userParts(), otherKinds(), crashes())
}

// breaks returns the case with the laws that it breaks.
func (c Case) breaks(laws ...string) Case {
	c.Laws = laws
	return c
}

// on returns the case with other operations in its registration.
func (c Case) on(operations ...admissionregistrationv1.OperationType) Case {
	c.Webhook.Rules = slices.Clone(c.Webhook.Rules)
	for i := range c.Webhook.Rules {
		c.Webhook.Rules[i].Operations = operations
	}
	return c
}

func (c Case) advice() Case {
	c.Advice = true
	return c
}

func (c Case) samples(objects ...runtime.Object) Case {
	c.Samples = objects
	return c
}

func (c Case) except(path, law, reason string) Case {
	c.Exceptions = append(slices.Clone(c.Exceptions), Exception{Path: path, Law: law, Reason: reason})
	return c
}

func (c Case) against(rivals ...edit) Case {
	for _, rival := range rivals {
		c.Rivals = append(c.Rivals, func() http.Handler { return pods(rival) })
	}
	return c
}

// onPods returns a case of a webhook for new Pods.
func onPods(name string, e edit) Case { return podCase(name, func() http.Handler { return pods(e) }) }

// podCase returns a case of any handler for new Pods.
func podCase(name string, newHandler func() http.Handler) Case {
	return Case{Name: name, Webhook: registration(name, "", "pods", admissionregistrationv1.Create), New: newHandler}
}

// onDeployments returns a case of a webhook for the Pod templates of Deployments.
func onDeployments(name string, e edit) Case {
	return deploymentCase(name, deployments(e))
}

func deploymentCase(name string, h http.Handler) Case {
	name += " (Deployment)"
	return Case{
		Name:    name,
		Webhook: registration(name, "apps", "deployments", admissionregistrationv1.Create, admissionregistrationv1.Update),
		New:     func() http.Handler { return h },
	}
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func registration(name, group, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-") + ".bugs.example.com",
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
			},
		}},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](10),
		AdmissionReviewVersions: []string{"v1", "v1beta1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
	}
}
