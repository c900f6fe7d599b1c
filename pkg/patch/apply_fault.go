// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// faultOf explains why an operation does not apply to a document. The library's errors name neither the source
// of a move nor the missing member. If faultOf finds no reason, it returns the library's error.
func faultOf(doc []byte, op Operation, err error) *Error {
	if errors.Is(err, errCopiesTooLarge) {
		return &Error{op.Path, err}
	}
	var fault *Error
	switch op.Op {
	case Move, Copy:
		fault = transferFault(doc, op)
	case Add:
		fault = targetFault(doc, op.Path)
	case Test:
		fault = testFault(doc, op)
	default:
		fault = sourceFault(doc, op.Path, op.Op)
		if op.Op == Replace && op.Path == "" {
			fault = &Error{Err: errors.New("only an object or an array can replace the whole document")}
		}
	}
	if fault == nil {
		fault = &Error{op.Path, err}
	}
	return fault
}

func transferFault(doc []byte, op Operation) *Error {
	if fault := sourceFault(doc, op.From, op.Op); fault != nil {
		return fault
	}
	if op.Op == Copy {
		return targetFault(doc, op.Path)
	}
	if op.From != op.Path && op.From.Contains(op.Path) {
		return &Error{op.Path, fmt.Errorf("%s cannot be moved into itself", placeText(op.From))}
	}
	rest, err := applyAll(doc, Patch{{Op: Remove, Path: op.From}})
	if err != nil {
		return nil
	}
	return targetFault(rest, op.Path)
}

// sourceFault explains why there is no value at a place, or returns nil.
func sourceFault(doc []byte, at Pointer, op Op) *Error {
	parent, fault := holder(doc, at)
	if fault != nil {
		return fault
	}
	if list, ok := parent.([]any); ok {
		return indexFault(at, len(list), 0)
	}
	if _, found := parent.(map[string]any)[at.Last()]; !found {
		return &Error{at, fmt.Errorf("there is nothing to %s", op)}
	}
	return nil
}

// targetFault explains why nothing can be added at a place, or returns nil.
func targetFault(doc []byte, at Pointer) *Error {
	parent, fault := holder(doc, at)
	if fault != nil {
		return fault
	}
	if list, ok := parent.([]any); ok && at.Last() != "-" {
		return indexFault(at, len(list), 1)
	}
	return nil
}

func testFault(doc []byte, op Operation) *Error {
	at := op.Path
	if at != "" {
		if fault := sourceFault(doc, at, Test); fault != nil {
			return fault
		}
	}
	got, want := valueAt(doc, at), op.Value
	if p, err := Documents(got, want); err == nil && p == nil {
		return &Error{at, errors.New("the value equals the value of the test, but the API server requires the same spelling of strings and numbers, and no null in lists")}
	}
	return &Error{at, errors.New("the value differs from the value of the test")}
}

// holder returns the object or list that contains a place.
func holder(doc []byte, at Pointer) (any, *Error) {
	if at == "" {
		return nil, &Error{at, errors.New("the whole document can only be replaced or tested")}
	}
	v, here := decoded(doc), Pointer("")
	for token := range at.Parent().Tokens() {
		if fault := notInside(at, here, v); fault != nil {
			return nil, fault
		}
		here = here.Append(token)
		next, found := child(v, token)
		if !found {
			return nil, &Error{at, fmt.Errorf("there is no %s", here.FieldPath())}
		}
		v = next
	}
	return v, notInside(at, here, v)
}

// notInside returns an error if v is a scalar, because no place can be inside a scalar. The parameter at is the place
// that an operation needs, and here is the place of v.
func notInside(at, here Pointer, v any) *Error {
	switch v.(type) {
	case map[string]any, []any:
		return nil
	}
	text, _ := json.Marshal(v) // it was decoded from JSON
	c := jsonraw.At(text, 0, 0)
	return &Error{at, fmt.Errorf("%s is %s, not an object or an array", placeText(here), c.Kind().Noun())}
}

func child(v any, token string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		next, found := v[token]
		return next, found
	case []any:
		if i, fault := index(token, len(v)); fault == nil {
			return v[i], true
		}
	}
	return nil, false
}

// indexFault explains why a place is not in an array with this many elements, or returns nil. more is 1 if the
// place after the last element is allowed.
func indexFault(at Pointer, elements, more int) *Error {
	if _, err := index(at.Last(), elements+more); errors.Is(err, errShort) {
		switch elements {
		case 0:
			return &Error{at, errors.New("the array is empty")}
		case 1:
			return &Error{at, errors.New("the array has 1 element")}
		}
		return &Error{at, fmt.Errorf("the array has %d elements", elements)}
	} else if err != nil {
		return &Error{at, err}
	}
	return nil
}

var errShort = errors.New("no such element")

// index parses an index as the library does: a negative index counts from the end.
func index(token string, places int) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil {
		return 0, fmt.Errorf("%q is not an index of an array", token)
	}
	if i < 0 {
		i += places
	}
	if i < 0 || i >= places {
		return 0, errShort
	}
	return i, nil
}

func valueAt(doc []byte, at Pointer) []byte {
	v := decoded(doc)
	for token := range at.Tokens() {
		v, _ = child(v, token)
	}
	text, _ := json.Marshal(v)
	return text
}

// decoded decodes a document and keeps the spelling of numbers.
func decoded(doc []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	_ = dec.Decode(&v) // the library has read it
	return v
}

// placeText returns a place as messages show it.
func placeText(at Pointer) string {
	if at == "" {
		return "the document"
	}
	return at.FieldPath()
}
