// SPDX-License-Identifier: Apache-2.0

// Package unseen has mutating webhooks that were written without knowledge of the idempotence harness. They measure how
// well the harness judges webhooks that it has never seen. Some are broken. The others look similar but are correct.
//
// The webhooks are such as a platform team writes: injectors, registry mirrors, cost labels, defaults for Ingresses and
// volumes. Each has a sample object that it changes. Each broken one has a proof, which replays requests with plain
// code and returns the wrong result. So it is known without the harness which webhooks are broken.
//
// A name begins with U and the number of the family. The letter b follows for a broken webhook, and c for a correct
// one:
//
//	U01  webhooks with a trigger that is hard to guess
//	U02  values with structure inside, such as lists, JSON and quantities
//	U03  names that collide
//	U04  webhooks that remember objects
//	U05  other webhooks that rewrite, fill, remove, sort, wrap and strip
//	U06  late containers, and copies of the webhook's own parts
//	U07  objects without optional fields
//	U08  zero values that no user has asked for
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
	// Name is unique. It begins with the number of the family and the letter b or c.
	Name string
	// Family is the number of the family, 1 to 10.
	Family int
	// Kind is the kind of the sample.
	Kind string
	// Summary says in one line what the webhook is for.
	Summary string
	// Buggy is set if the webhook is broken.
	Buggy bool
	// Why says which requests make a broken webhook give a wrong result, or why a correct webhook is correct.
	Why string
	// Webhook is the registration, without a ClientConfig.
	Webhook admissionregistrationv1.MutatingWebhook
	// New returns an instance with its own state. It is nil for a webhook in Python.
	New func() http.Handler
	// Path is the URL path of a webhook in Python, and empty for one in Go. StartPython serves all of them.
	Path string
	// Sample is an object that the webhook changes, in YAML, as a user creates it.
	Sample string
	// CRDs are the CustomResourceDefinitions that the sample needs, in YAML.
	CRDs []string
	// NamespaceLabels are labels of the sample's Namespace that the namespaceSelector requires.
	NamespaceLabels map[string]string
	// Proof replays requests and returns the fault that it finds, or "". For a broken webhook it must find one. For a
	// correct webhook it must find none: it is often the proof of the similar broken webhook.
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

// complete sets the fields that depend on Name and build.
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
