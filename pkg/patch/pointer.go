// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"iter"
	"strconv"
	"strings"
)

// A Pointer is a place in a JSON document in the form of RFC 6901: "" is the whole document,
// "/spec/containers/0/image" is a member of an array element. Equal pointers are equal places. A pointer does not
// distinguish an array index from a member called "0".
//
// Build pointers with [Pointer.Append] and [Pointer.Index], which escape "/" and "~" in names, never by
// concatenation.
type Pointer string

var (
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
)

// Append returns the place of the named member of p. Append("-") is the place after the last element of a list,
// for an Add, or for the Path of a Move or Copy.
func (p Pointer) Append(name string) Pointer { return p + "/" + Pointer(escapeToken.Replace(name)) }

// Index returns the place of element i of p. RFC 6901 has no negative indices, but the API server and [Apply] count
// them from the end: -1 is the last element, and for an Add the place after it.
func (p Pointer) Index(i int) Pointer { return p + "/" + Pointer(strconv.Itoa(i)) }

// Parent returns the place of the object or list that contains p. The whole document is its own parent.
func (p Pointer) Parent() Pointer { return p[:max(0, strings.LastIndexByte(string(p), '/'))] }

// Last returns the last name of p, unescaped, or "" for the whole document.
func (p Pointer) Last() string {
	return unescapeToken.Replace(string(p[strings.LastIndexByte(string(p), '/')+1:]))
}

// Tokens yields the names of p from the outermost to the innermost, unescaped.
func (p Pointer) Tokens() iter.Seq[string] {
	return func(yield func(string) bool) {
		if p == "" {
			return
		}
		for token := range strings.SplitSeq(strings.TrimPrefix(string(p), "/"), "/") {
			if !yield(unescapeToken.Replace(token)) {
				return
			}
		}
	}
}

// Contains reports whether other is p or a place inside it.
func (p Pointer) Contains(other Pointer) bool {
	rest, ok := strings.CutPrefix(string(other), string(p))
	return ok && (rest == "" || rest[0] == '/')
}

// Valid reports whether p is a JSON pointer: it is empty or begins with a slash, and every "~" in it is part of an
// escape.
func (p Pointer) Valid() bool {
	if p != "" && p[0] != '/' {
		return false
	}
	for i := range len(p) {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return false
		}
	}
	return true
}

// FieldPath returns p as a Kubernetes field path: "spec.containers[0].image", or
// "metadata.annotations[example.com/a]" for a name that is not a plain word.
func (p Pointer) FieldPath() string {
	var b strings.Builder
	for token := range p.Tokens() {
		switch {
		case isIndex(token), !isWord(token):
			b.WriteString("[" + token + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	return b.String()
}

func isIndex(token string) bool {
	_, err := strconv.ParseUint(token, 10, 31)
	return err == nil
}

func isWord(token string) bool {
	for i := range len(token) {
		b := token[i]
		if !('a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_' || b == '-' || b == '$') {
			return false
		}
	}
	return token != ""
}
