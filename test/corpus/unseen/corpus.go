// SPDX-License-Identifier: Apache-2.0

// Package unseen has mutating webhooks that were written without knowledge of the idempotence harness. They measure
// what the harness does with webhooks that it has never seen: some are broken, the others look similar but are
// correct.
//
// The webhooks are what a platform team writes: injectors, registry mirrors, cost labels, defaults for Ingresses and
// volumes. Each has a sample object that it changes. Each broken one has a proof, which replays requests with plain
// code and shows the wrong result. So the package says by itself which webhooks are broken.
//
// Names begin with U and the number of the family. A letter b follows for broken webhooks, c for correct ones:
//
//	U01  what switches the webhook on is hard to guess
//	U02  values with structure inside, such as lists, JSON and quantities
//	U03  names that collide
//	U04  identity and memory
//	U05  other webhooks that rewrite, fill, remove, sort, wrap and strip
//	U06  late containers, and copies of the webhook's own parts
//	U07  sparse objects
//	U08  zero values that nothing asked for
//	U09  an UPDATE that replaces the object
//	U10  generated names and values
package unseen

import (
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// A Case is one webhook.
type Case struct {
	// Name is unique.
	Name string
	// Family is the number of the family, 1 to 10.
	Family int
	// Kind is the kind of the sample.
	Kind string
	// Summary says in one line what the webhook is for.
	Summary string
	// Buggy says that the webhook is broken.
	Buggy bool
	// Why says for a broken webhook which requests lead to which wrong result, and for a correct one
	// why it is correct.
	Why string
	// Webhook is the registration, without a ClientConfig.
	Webhook admissionregistrationv1.MutatingWebhook
	// New returns an instance with its own state. It is nil for a webhook in Python.
	New func() http.Handler
	// Path is the URL path of a webhook in Python, and empty for one in Go. Run PythonProgram with a port as
	// its argument to serve all of them on loopback.
	Path string
	// Sample is an object in YAML, as a user creates it, that the webhook changes.
	Sample string
	// CRDs are the CustomResourceDefinitions that the sample needs, in YAML.
	CRDs []string
	// NamespaceLabels are labels that the object's Namespace must have.
	NamespaceLabels map[string]string
	// Proof replays requests and returns what went wrong, or "" if nothing did.
	// For a correct webhook it is often the proof of the broken one that it resembles.
	Proof func(*Trial) string

	build builder
}

// PythonProgram is the path of the webhooks in Python, relative to this package.
const PythonProgram = "testdata/webhooks.py"

// Cases returns all webhooks, broken and correct.
func Cases() []Case {
	all := slices.Concat(
		triggerBugs(), triggersDoneRight(),
		structureBugs(), structureDoneRight(),
		collisionBugs(), collisionsDoneRight(),
		memoryBugs(), memoryDoneRight(),
		rivalBugs(), rivalsDoneRight(),
		lateBugs(), lateDoneRight(),
		sparseBugs(), sparseDoneRight(),
		zeroBugs(), zerosDoneRight(),
		replaceBugs(), replaceDoneRight(),
		randomBugs(), randomDoneRight(),
	)
	for i := range all {
		all[i].complete()
	}
	return all
}

// complete derives the fields that follow from the name and from build.
func (c *Case) complete() {
	c.Family = int(c.Name[1]-'0')*10 + int(c.Name[2]-'0')
	c.Buggy = c.Name[3] == 'b'
	c.Webhook.Name = strings.ToLower(c.Name) + ".platform.example.com"
	if c.Webhook.ReinvocationPolicy == nil {
		policy := admissionregistrationv1.IfNeededReinvocationPolicy
		c.Webhook.ReinvocationPolicy = &policy
	}
	none := admissionregistrationv1.SideEffectClassNone
	c.Webhook.SideEffects = &none
	c.Webhook.AdmissionReviewVersions = []string{"v1"}
	if c.build == nil {
		c.Path = "/" + c.Name
		return
	}
	build, reg := c.build, c.Webhook
	c.New = func() http.Handler { return build(reg) }
}
