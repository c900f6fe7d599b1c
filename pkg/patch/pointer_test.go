// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"slices"
	"testing"

	"github.com/admitkit/admitkit/pkg/patch"
)

// pointerRows are names, from the outermost to the innermost, and the pointer and the field path for them.
var pointerRows = []struct {
	reason    string
	names     []string
	pointer   patch.Pointer
	fieldPath string
}{
	{"the whole document", nil, "", ""},
	{"a member", []string{"spec"}, "/spec", "spec"},
	{"an element", []string{"spec", "containers", "0", "image"}, "/spec/containers/0/image", "spec.containers[0].image"},
	{"a list as the document", []string{"7"}, "/7", "[7]"},
	{"a slash", []string{"metadata", "annotations", "example.com/a"}, "/metadata/annotations/example.com~1a", "metadata.annotations[example.com/a]"},
	{"a tilde", []string{"a~b"}, "/a~0b", "[a~b]"},
	{"a name that looks like an escape", []string{"~1"}, "/~01", "[~1]"},
	{"a tilde before a slash", []string{"~/"}, "/~0~1", "[~/]"},
	{"an empty name", []string{""}, "/", "[]"},
	{"empty names inside", []string{"a", "", ""}, "/a//", "a[][]"},
	{"a dot", []string{"data", "tls.crt"}, "/data/tls.crt", "data[tls.crt]"},
	{"words with dashes and digits", []string{"x-kubernetes-map-type", "a_1", "$ref"}, "/x-kubernetes-map-type/a_1/$ref", "x-kubernetes-map-type.a_1.$ref"},
	{"numbers that are not an index", []string{"-1", "99999999999"}, "/-1/99999999999", "-1.99999999999"},
	{"the place after the last element", []string{"args", "-"}, "/args/-", "args.-"},
	{"other alphabets", []string{"é", "字"}, "/é/字", "[é][字]"},
}

func TestPointers(t *testing.T) {
	for _, row := range pointerRows {
		t.Run(row.reason, func(t *testing.T) {
			var p patch.Pointer
			for _, name := range row.names {
				parent := p
				p = p.Append(name)
				if got := p.Parent(); got != parent {
					t.Errorf("parent of %q: got %q, want %q", p, got, parent)
				}
				if got := p.Last(); got != name {
					t.Errorf("last name of %q: got %q, want %q", p, got, name)
				}
				if !parent.Contains(p) || p.Contains(parent) {
					t.Errorf("%q contains %q, not the other way", parent, p)
				}
			}
			if p != row.pointer {
				t.Errorf("got pointer %q, want %q", p, row.pointer)
			}
			if got := slices.Collect(row.pointer.Tokens()); !slices.Equal(got, row.names) {
				t.Errorf("got names %q, want %q", got, row.names)
			}
			if got := row.pointer.FieldPath(); got != row.fieldPath {
				t.Errorf("got field path %q, want %q", got, row.fieldPath)
			}
			if !row.pointer.Valid() {
				t.Errorf("%q is a pointer", row.pointer)
			}
		})
	}
}

func TestPointerOfTheWholeDocument(t *testing.T) {
	var root patch.Pointer
	if root.Parent() != "" || root.Last() != "" || !root.Contains("") || !root.Contains("/a") {
		t.Error("the whole document is its own parent, has no name, and contains all")
	}
	if got := root.Index(3).Index(0); got != "/3/0" {
		t.Errorf("elements: got %q", got)
	}
}

func TestPointerContains(t *testing.T) {
	for _, row := range []struct {
		reason       string
		outer, inner patch.Pointer
		want         bool
	}{
		{"itself", "/a/b", "/a/b", true},
		{"a member of a member", "/a", "/a/b/c", true},
		{"the empty name in it", "/a", "/a/", true},
		{"a longer name with the same beginning", "/a", "/ab", false},
		{"a longer index with the same beginning", "/a/1", "/a/10", false},
		{"a sibling", "/a/b", "/a/c", false},
		{"the parent", "/a/b", "/a", false},
	} {
		if got := row.outer.Contains(row.inner); got != row.want {
			t.Errorf("%s: %q contains %q is %v", row.reason, row.outer, row.inner, got)
		}
	}
}

func TestPointerValid(t *testing.T) {
	for _, row := range []struct {
		reason  string
		pointer patch.Pointer
		want    bool
	}{
		{"no slash in front", "a", false},
		{"a fragment", "#/a", false},
		{"a lone tilde at the end", "/a~", false},
		{"a lone tilde", "/a~/b", false},
		{"an invalid escape", "/~2", false},
		{"both escapes", "/~0~1", true},
		{"only a slash", "/", true},
	} {
		if got := row.pointer.Valid(); got != row.want {
			t.Errorf("%s: valid is %v for %q", row.reason, got, row.pointer)
		}
	}
}

func TestPointerTokensStopsWhenAsked(t *testing.T) {
	var got []string
	for name := range patch.Pointer("/a/b/c").Tokens() {
		if got = append(got, name); name == "b" {
			break
		}
	}
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
}
