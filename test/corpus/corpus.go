// SPDX-License-Identifier: Apache-2.0

// Package corpus has webhooks that show how well the idempotence harness works. Some fail on reinvocation,
// in ways seen in public projects, and the harness must find them. The others look similar but are correct.
//
// Every case is an http.Handler that answers AdmissionReviews of both versions, with its
// registration. The name of a case begins with an ID:
//
//	P01 to P26  the common patterns, each with broken and correct webhooks
//	N1 to N12   unusual but correct webhooks
//	T01 to T12  of [Triggered], and T21: webhooks that act only on objects with a certain part
//	T01 to T15  of other functions: webhooks that read or write a text with structure, such as a list in an annotation
//	T16 to T18  webhooks that depend on the shape of an object: absent maps, similar names, copied elements
//	M01 to M61  further broken webhooks, with their correct counterparts
//	V01 to V38  webhooks that are easily misjudged
//	B01 to B85  broken webhooks that were not used to develop the harness
//	C01 to C82  correct webhooks that were not used to develop the harness
//
// The comments of handlers and edits describe the webhook that they implement. "Its parts" are the parts of an object,
// such as containers and volumes, that this webhook adds.
//
// [Random] generates further cases: correct handlers, and the same handlers with one edit that breaks them.
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
	// Name begins with the ID of the case.
	Name string
	// Laws are laws that the webhook breaks. It may break other laws too. Laws is empty for a correct webhook.
	Laws []string
	// Advice permits advice: the harness may report a broken webhook as advice only, or not at all,
	// and may give advice about a correct one.
	Advice bool
	// Webhook is the registration, without a ClientConfig.
	Webhook admissionregistrationv1.MutatingWebhook
	// New returns an instance with its own state. Instances are safe for concurrent use.
	New func() http.Handler
	// Samples are objects, as a user creates them, that the webhook should change or deny.
	Samples []runtime.Object
	// Exceptions are the exceptions that the user declares.
	Exceptions []Exception
	// Rivals are other webhooks for the same objects.
	Rivals []func() http.Handler
	// Observe returns all external writes of all instances so far, in comparable form. It is nil
	// for a webhook without external writes.
	Observe func() any
}

// An Exception declares intentional behavior of a webhook.
type Exception struct {
	// Path is a JSON pointer, where "*" stands for any list element or key.
	Path string
	// Law is the law that the harness ignores at the path. Empty means every law.
	Law string
	// Reason is the user's explanation.
	Reason string
}

// Patterns returns the broken webhooks.
func Patterns() []Case {
	return slices.Concat(
		growthPatterns(), valuePatterns(), selfCountingPatterns(), volumePatterns(), ownershipPatterns(),
		patchDocumentPatterns(), nondeterministicPatterns(), updatePatterns(), sideEffectPatterns(), envelopePatterns(),
		competingPatterns(), duplicateKeyPatterns(), customResourcePatterns(),
		repeatedChangePatterns(), wrongAssumptionPatterns(), lostChangePatterns(), triggeredPatterns(),
		textPatterns(), shapePatterns(), otherPartyPatterns(), authorPatterns(),
	)
}

// Lookalikes returns the correct webhooks.
func Lookalikes() []Case {
	return slices.Concat(
		growthLookalikes(), valueLookalikes(), selfCountingLookalikes(), volumeLookalikes(), ownershipLookalikes(),
		patchDocumentLookalikes(), nondeterministicLookalikes(), updateLookalikes(), sideEffectLookalikes(), envelopeLookalikes(),
		competingLookalikes(), duplicateKeyLookalikes(), customResourceLookalikes(),
		repeatedChangeLookalikes(), wrongAssumptionLookalikes(), correctRewrites(), harmless(), triggeredLookalikes(),
		textLookalikes(), shapeLookalikes(), otherPartyLookalikes(), authorLookalikes(),
	)
}

// HeldOut returns webhooks that resemble those in clusters. They were not used to develop the harness, which must not
// flag the correct ones, and must find a broken law in each broken one.
func HeldOut() (correct, broken []Case) {
	correct = slices.Concat(
		correctInjectors(), correctDefaulters(), correctOtherKinds(),
		correctCustomResources(), correctFollowers(), correctUnnamedElements(),
	)
	broken = slices.Concat(
		listMistakes(), invalidResults(), sharedStates(), brokenValues(), userParts(), otherKinds(), crashes(),
	)
	return correct, broken
}

// breaks returns the case with these laws as its Laws.
func (c Case) breaks(laws ...string) Case {
	c.Laws = laws
	return c
}

// on returns the case with the operations in its rules replaced by these.
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

// against returns the case with these rivals: webhooks that apply the edits to Pods.
func (c Case) against(rivals ...edit) Case {
	for _, rival := range rivals {
		c.Rivals = append(c.Rivals, func() http.Handler { return pods(rival) })
	}
	return c
}

// onPods returns a case of a webhook for new Pods.
func onPods(name string, e edit) Case { return podCase(name, func() http.Handler { return pods(e) }) }

// podCase returns a case of a webhook for new Pods. newHandler returns an instance of its handler.
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

// notInNames matches the characters that are not allowed in the name of a webhook.
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
