// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/texts"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// An Edit is a change to an object that a user or another webhook could make.
type Edit struct {
	What EditKind `json:"what"`
	Path Path     `json:"path"`
	// Value is set at the path, or inserted into the list at the path.
	Value any `json:"value,omitempty"`
	// Front makes an Insert add its element at the start of the list, instead of the end.
	Front bool `json:"front,omitempty"`
	// Format is the format of the text at the path. It is set only if the edit adds items to the text, or writes it in
	// another form with the same meaning.
	Format texts.Format `json:"format,omitempty"`
}

// A Path identifies a part of an object.
type Path = tree.Path

// An EditKind says how an Edit changes an object.
type EditKind string

// The kinds of edits. Put sets a value, Remove removes one, Insert adds an element to a list, Reverse reverses the
// order of a list, and Extend adds items to a text.
const (
	Put     EditKind = "put"
	Remove  EditKind = "remove"
	Insert  EditKind = "insert"
	Reverse EditKind = "reverse"
	Extend  EditKind = "extend"
)

func (e Edit) String() string {
	where := "end"
	if e.Front {
		where = "front"
	}
	switch e.What {
	case Extend:
		return fmt.Sprintf("add at the %s of the text %s: %s", where, e.Path, tree.Encode(e.Value))
	case Insert:
		return fmt.Sprintf("insert at the %s of %s: %s", where, e.Path, tree.Encode(e.Value))
	case Put:
		return fmt.Sprintf("set %s: %s", e.Path, tree.Encode(e.Value))
	}
	return fmt.Sprintf("%s %s", e.What, e.Path)
}

// Apply returns the edited document. It returns false if the edit cannot be made, for example because the path does not
// exist or the list has the element already.
func (e Edit) Apply(doc any) (any, bool) {
	if e.Format != "" {
		return e.inText(doc)
	}
	switch e.What {
	case Put:
		return tree.Put(doc, e.Path, e.Value)
	case Remove:
		return tree.Remove(doc, e.Path)
	case Insert:
		if list, _ := tree.Get(doc, e.Path); hasElement(e.Path, list, e.Value) {
			return nil, false
		}
		index := -1
		if e.Front {
			index = 0
		}
		return tree.Insert(doc, e.Path, index, e.Value)
	case Reverse:
		value, _ := tree.Get(doc, e.Path)
		list, ok := value.([]any)
		if !ok || len(list) < 2 {
			return nil, false
		}
		list = slices.Clone(list)
		slices.Reverse(list)
		return tree.Put(doc, e.Path, list)
	}
	return nil, false
}

func hasElement(path tree.Path, value, element any) bool {
	list, _ := value.([]any)
	identity := tree.Identity(path, element)
	return slices.ContainsFunc(list, func(e any) bool { return tree.Identity(path, e) == identity })
}

// UnmarshalJSON implements json.Unmarshaler. It decodes integers as int64, not as float64.
func (e *Edit) UnmarshalJSON(text []byte) error {
	type plain Edit
	wire := struct {
		*plain
		Value json.RawMessage `json:"value"`
	}{plain: (*plain)(e)}
	if err := json.Unmarshal(text, &wire); err != nil || wire.Value == nil {
		return err
	}
	var err error
	e.Value, err = tree.Decode(wire.Value)
	return err
}
