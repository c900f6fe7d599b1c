// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"slices"
	"strings"
	"testing"
)

func TestNamesFindMembers(t *testing.T) {
	names := NewNames("a", "name", "namespace", "ownerReferences", "x.y/z-w")
	for _, in := range []struct {
		reason, document string
		want             []int
	}{
		{"in order", `{"a":1,"name":1,"namespace":1,"ownerReferences":1,"x.y/z-w":1}`, []int{0, 1, 2, 3, 4}},
		{"backwards, and twice", `{"x.y/z-w":1,"ownerReferences":1,"name":1,"a":1,"a":1}`, []int{4, 3, 1, 0, 0}},
		{"with white space around", "{ \"a\" : 1 ,\n\t\"namespace\" :1}", []int{0, 2}},
		{"with escapes", `{"\u0061":1,"n\u0061me":1}`, []int{0, 1}},
		{"none of them", `{"":1,"A":1,"names":1,"nam":1,"ownerReference":1,"ownerReferencesX":1,"namespacE":1}`, nil},
		{"others between them", `{"b":{"name":[1.5e3,"}"]},"a":1,"c":"\"","namespace":1,"long":"` + strings.Repeat("x", 200) + `","x.y/z-w":1,"d":-0.5}`, []int{0, 2, 4}},
		{"unknown names that the fast path cannot skip", `{"b":[[[{"x":1.5}]]],"name":1,` + strings.Repeat(`"c":[{"d":"e"},0.25],`, 9) + `"x.y/z-w":1}`, []int{1, 4}},
		{"others with escapes and white space", `{"\u0062":1, "b":2, "c" : 3 ,"a":4}`, []int{0}},
	} {
		var got []int
		c := NewCursor([]byte(in.document))
		more, err := c.OpenObject()
		for place := -1; more && err == nil; {
			if place, more, err = names.Next(c, place+1); !more || err != nil {
				break
			}
			if got, err = append(got, place), c.Skip(); err == nil {
				more, err = c.NextMember()
			}
		}
		if err == nil {
			err = c.End()
		}
		if err != nil || !slices.Equal(got, in.want) {
			t.Errorf("%s: %s: %v, %v, want %v", in.reason, in.document, got, err, in.want)
		}
	}
}

func TestNamesRejectInvalidNames(t *testing.T) {
	names := NewNames("a", "namespace")
	for _, text := range []string{``, ` `, `1`, `"`, `"a`, `"a"`, `"a" `, `"a"1:`, `"namespace`, `"namespace"`, `"namespac` + "\n" + `":1`, strings.Repeat(" ", 9)} {
		if place, _, err := names.Next(NewCursor([]byte(text)), 0); err == nil {
			t.Errorf("%q is read as name %d", text, place)
		}
	}
}
