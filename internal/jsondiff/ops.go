// SPDX-License-Identifier: Apache-2.0

// Package jsondiff finds the operations that turn one JSON document into another. It is the engine of
// pkg/patch, which documents the rules, and of the hooks in pkg/webhook, which decode and compare in
// one pass.
package jsondiff

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Op is the kind of an [Operation], as RFC 6902 section 4 spells it.
type Op = string

// The kinds of operations that a comparison returns.
const (
	Add     Op = "add"
	Remove  Op = "remove"
	Replace Op = "replace"
	Move    Op = "move"
)

// An Operation is one step of a JSON Patch. Path and From are JSON pointers (RFC 6901).
type Operation struct {
	Op         Op
	Path, From string
	Value      json.RawMessage
}

// ErrDuplicateName is the cause of an [Error] about an object that holds one name twice.
var ErrDuplicateName = errors.New("duplicate name")

// ErrAlike is the cause of an [Error] about a list that lost one of several elements that the Go type
// cannot tell apart but that differ in the document.
var ErrAlike = errors.New("elements differ only in fields that the Go type lacks, so it is unclear which of them to remove")

// An Error says where a document could not be compared.
type Error struct {
	Pointer string // where in the document, as a JSON pointer
	Err     error  // the cause
}

func (e *Error) Error() string { return fmt.Sprintf("%q: %v", e.Pointer, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// memberPointer returns the pointer to the member called name of the object at the pointer at.
func memberPointer(at, name string) string {
	return string(appendToken(append([]byte(at), '/'), name))
}

// elementPointer returns the pointer to element i of the list at the pointer at.
func elementPointer(at string, i int) string { return at + "/" + strconv.Itoa(i) }

// appendToken appends a name, escaped as RFC 6901 requires.
func appendToken[T string | []byte](p []byte, name T) []byte {
	for i := range len(name) {
		switch b := name[i]; b {
		case '~':
			p = append(p, "~0"...)
		case '/':
			p = append(p, "~1"...)
		default:
			p = append(p, b)
		}
	}
	return p
}

var errEmpty = errors.New("the document is empty")
