// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	formats "github.com/admitkit/admitkit/pkg/idempotence/internal/texts"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Case is one input for the check of a law. It has everything that is needed to repeat the check.
type Case struct {
	Law       Law                     `json:"law"`
	Kind      schema.GroupVersionKind `json:"-"` // of Object
	Operation admissionv1.Operation   `json:"operation"`
	// Object is the object of the request, called x in the definitions of the laws.
	Object any `json:"object"`
	// Old is the stored object that the request replaces with x. Without Old, the request creates x, unless the law is
	// about updates.
	Old any `json:"old,omitempty"`
	// Before lists objects that the webhook handles before x (L3).
	Before []any `json:"before,omitempty"`
	// Edits change x before the first call (L5, L9), or change the result between two calls, as
	// another party may do (L4a, L4b).
	Edits []Edit `json:"edits,omitempty"`
	// Rival is the name of the other webhook (L11, L12).
	Rival string `json:"rival,omitempty"`
	// Variant selects one of several checks of the law. Empty selects the default check.
	Variant Variant `json:"variant,omitempty"`
}

// A Variant is one of several checks of a law.
type Variant string

// Raw returns the object of the case as JSON.
func (c *Case) Raw() json.RawMessage { return tree.Encode(c.Object) }

// An Edit is a change to an object that a user or another webhook could make.
type Edit struct {
	What EditKind `json:"what"`
	Path Path     `json:"path"`
	// Value is set at the path, or inserted into the list at the path.
	Value any `json:"value,omitempty"`
	// Front makes an insert add its element at the start of the list, instead of the end.
	Front bool `json:"front,omitempty"`
	// Format is the format of the text at the path, such as "," for a list with commas. It is set only if the edit adds
	// items to a text or writes it in another form.
	Format string `json:"format,omitempty"`
}

// An EditKind says how an [Edit] changes an object.
type EditKind string

// The kinds of edits. Put sets a value, Remove removes one, Insert adds an element to a list, Reverse reverses the
// order of a list, and Extend adds an item to a text that is a list or a document, such as JSON.
const (
	Put     EditKind = "put"
	Remove  EditKind = "remove"
	Insert  EditKind = "insert"
	Reverse EditKind = "reverse"
	Extend  EditKind = "extend"
)

// A Path identifies a part of an object.
type Path []PathStep

// A PathStep leads to a named member of an object or to an element of a list.
type PathStep struct {
	Name string // of a member
	// Key is the identity of an element, such as "name=web". Nth is the number of elements before it with the same key.
	// Element is set for a step to an element.
	Key     string
	Nth     int
	Element bool
}

// String returns the path in the form of Kubernetes' field paths, such as spec.containers[name=web].image.
func (p Path) String() string { return p.inner().String() }

// MarshalJSON implements json.Marshaler. It encodes a path as a list, with a string for each member and an object for
// each element.
func (p Path) MarshalJSON() ([]byte, error) { return json.Marshal(p.inner()) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Path) UnmarshalJSON(text []byte) error {
	var inner tree.Path
	if err := json.Unmarshal(text, &inner); err != nil {
		return err
	}
	*p = pathOf(inner)
	return nil
}

// String describes the edit in one line.
func (e Edit) String() string { return e.inner().String() }

// UnmarshalJSON implements json.Unmarshaler. It decodes integers as int64, not as float64.
func (e *Edit) UnmarshalJSON(text []byte) error {
	var inner edits.Edit
	if err := json.Unmarshal(text, &inner); err != nil {
		return err
	}
	*e = editOf(inner)
	return nil
}

func (p Path) inner() (out tree.Path) {
	for _, s := range p {
		out = append(out, tree.Step(s))
	}
	return out
}

func (e Edit) inner() edits.Edit {
	return edits.Edit{What: edits.EditKind(e.What), Path: e.Path.inner(), Value: e.Value, Front: e.Front, Format: formats.Format(e.Format)}
}

func editOf(e edits.Edit) Edit {
	return Edit{What: EditKind(e.What), Path: pathOf(e.Path), Value: e.Value, Front: e.Front, Format: string(e.Format)}
}

func pathOf(p tree.Path) (out Path) {
	for _, s := range p {
		out = append(out, PathStep(s))
	}
	return out
}

// inner converts the case to the type that the checks use.
func (c *Case) inner() *laws.Case {
	out := &laws.Case{Law: laws.Law(c.Law), Kind: c.Kind, Operation: c.Operation, Object: c.Object, Old: c.Old, Before: c.Before,
		Rival: c.Rival, Variant: laws.Variant(c.Variant)}
	for _, e := range c.Edits {
		out.Edits = append(out.Edits, e.inner())
	}
	return out
}

func caseOf(c *laws.Case) Case {
	out := Case{Law: Law(c.Law), Kind: c.Kind, Operation: c.Operation, Object: c.Object, Old: c.Old, Before: c.Before,
		Rival: c.Rival, Variant: Variant(c.Variant)}
	for _, e := range c.Edits {
		out.Edits = append(out.Edits, editOf(e))
	}
	return out
}

// UnmarshalJSON implements json.Unmarshaler. It decodes integers as int64, not as float64.
func (c *Case) UnmarshalJSON(text []byte) error {
	type plain Case
	wire := struct {
		*plain
		Object json.RawMessage   `json:"object"`
		Old    json.RawMessage   `json:"old"`
		Before []json.RawMessage `json:"before"`
		Way    json.RawMessage   `json:"way"` // the key of variant in older files
	}{plain: (*plain)(c)}
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	if wire.Way != nil {
		return errors.New(`the key "way" of a case is now "variant"`)
	}
	if !laws.IsVariant(laws.Variant(c.Variant)) {
		return fmt.Errorf("the variant %q of a case is unknown: run the harness without the file to store the case again", c.Variant)
	}
	var err error
	if c.Object, err = tree.Decode(wire.Object); err != nil {
		return err
	}
	if len(wire.Old) > 0 {
		if c.Old, err = tree.Decode(wire.Old); err != nil {
			return err
		}
	}
	for _, raw := range wire.Before {
		doc, err := tree.Decode(raw)
		if err != nil {
			return err
		}
		c.Before = append(c.Before, doc)
	}
	if !slices.Contains(Laws, c.Law) {
		return fmt.Errorf("there is no law %q", c.Law)
	}
	c.Kind, err = objects.GVKOf(c.Object)
	return err
}
