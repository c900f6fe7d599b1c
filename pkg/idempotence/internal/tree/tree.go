// SPDX-License-Identifier: Apache-2.0

// Package tree compares and edits JSON documents by Kubernetes' rules: list elements with the same name, mount path or
// port are the same element, whatever their index.
//
// A document is what sigs.k8s.io/json decodes: map[string]any, []any, string, bool, int64, float64
// and nil. Functions do not change their arguments unless their comment says so.
package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/admitkit/admitkit/internal/decode"
)

// Decode decodes JSON to a document.
func Decode(raw []byte) (any, error) {
	var v any
	err := decode.Unmarshal(raw, &v)
	return v, err
}

// Encode encodes a document as JSON, with the members of objects in sorted order.
func Encode(v any) []byte { return appendValue(make([]byte, 0, 256), v) }

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
			dst = appendText(append(dst, opening(i, '{')), name)
			dst = appendValue(append(dst, ':'), v[name])
		}
		if len(names) == 0 {
			dst = append(dst, '{')
		}
		return append(dst, '}')
	case []any:
		for i, value := range v {
			dst = appendValue(append(dst, opening(i, '[')), value)
		}
		if len(v) == 0 {
			dst = append(dst, '[')
		}
		return append(dst, ']')
	case string:
		return appendText(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case bool:
		return strconv.AppendBool(dst, v)
	case nil:
		return append(dst, "null"...)
	}
	return appendOdd(dst, v)
}

// opening returns the byte before the i-th value of an object or a list.
func opening(i int, bracket byte) byte {
	if i == 0 {
		return bracket
	}
	return ','
}

func appendText(dst []byte, text string) []byte {
	for i := range len(text) {
		if b := text[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			return appendOdd(dst, text)
		}
	}
	dst = append(append(dst, '"'), text...)
	return append(dst, '"')
}

// appendOdd encodes values with encoding/json, such as floats and strings with escapes.
func appendOdd(dst []byte, v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("cannot encode a JSON document: %v", err))
	}
	return append(dst, bytes.TrimRight(out.Bytes(), "\n")...)
}

// Clone returns a deep copy of a document.
func Clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for name, value := range v {
			c[name] = Clone(value)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, value := range v {
			c[i] = Clone(value)
		}
		return c
	}
	return v
}

// Equal reports whether two documents are equal.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// Size returns the number of values in a document.
func Size(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			n += Size(value)
		}
	case []any:
		for _, value := range v {
			n += Size(value)
		}
	}
	return n + 1
}
