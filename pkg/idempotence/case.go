// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Case is an input of a law. It has everything that is needed to check it again.
type Case struct {
	Law       Law                     `json:"law"`
	Kind      schema.GroupVersionKind `json:"-"` // of Object
	Operation admissionv1.Operation   `json:"operation"`
	// Object is x, the object of the request.
	Object any `json:"object"`
	// Old is the stored object that x is an update of. Without it, x is new, unless the law is about
	// updates itself.
	Old any `json:"old,omitempty"`
	// Before are objects that the webhook handles before x (L3).
	Before []any `json:"before,omitempty"`
	// Edits are what is put into x (L5) or what another party does between two calls (L4a, L4b).
	Edits []Edit `json:"edits,omitempty"`
	// Rival is the other webhook (L11, L12).
	Rival string `json:"rival,omitempty"`
	// Variant selects one of several checks of the law. Empty means the usual one.
	Variant Variant `json:"variant,omitempty"`
}

// A Variant is one of several checks of a law.
type Variant string

// edited applies edits to an object, then decodes and defaults the result. It reports false if an edit has no effect or
// the API server would reject the result.
func (r *run) edited(o *objects.Object, edits []Edit) (*objects.Object, bool) {
	doc := o.Doc
	for _, e := range edits {
		next, ok := e.Apply(doc)
		if !ok {
			return nil, false
		}
		doc = next
	}
	return r.valid(doc)
}

// valid decodes and defaults a document as a new or a stored object. It reports false if the API server would reject it.
func (r *run) valid(doc any) (*objects.Object, bool) {
	o, err := r.kind.Object(r.kind.AsSent(doc, r.operation != admissionv1.Create))
	if err != nil || len(r.kind.Problems(o)) > 0 {
		return nil, false
	}
	return o, true
}

// refusalOf returns the reasons for which the API server would reject a document.
func (r *run) refusalOf(doc any) string {
	o, err := r.kind.Object(r.kind.AsSent(doc, r.operation != admissionv1.Create))
	if err != nil {
		return err.Error()
	}
	return strings.Join(r.kind.Problems(o), "; ")
}

// Raw returns the object of the case as JSON.
func (c *Case) Raw() json.RawMessage { return tree.Encode(c.Object) }

// An Edit is a change of an object by another party.
type Edit = edits.Edit

// An EditKind is a kind of edit.
type EditKind = edits.EditKind

// A Path leads to a part of an object.
type Path = tree.Path

// The kinds of edits.
const (
	Put     = edits.Put
	Remove  = edits.Remove
	Insert  = edits.Insert
	Reverse = edits.Reverse
)
