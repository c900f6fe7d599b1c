// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"
)

func TestCheckPath(t *testing.T) {
	for _, row := range []struct{ path, want, reason string }{
		{"spec", "", "a field"},
		{"spec.containers[*].image", "", "any element"},
		{"spec.containers.image", "", "the element left out"},
		{"metadata.annotations[example.com/at]", "", "a name with dots and a slash"},
		{"[example.com/at].b", "", "such a name at the beginning"},
		{"spec.a[*][*].b", "", "lists in lists"},
		{"spec.volumes[{\"csi\":{\"driver\":\"a.b/c\"}}]", "", "an element without a name"},
		{"spec.volumes[name=creds-*]", "", "a glob in the key of an element"},
		{"spec.volumes[name=*-x7k2p].secret", "", "a field below elements that match a glob"},
		{"spec.*.image", "", "any field"},
		{"metadata.annotations[*]", "", "any annotation"},
		{"spec.template.spec.labels[name=a*]", "", "a list with the name of a map"},
		{"rival:mesh.example.com/a", "", "no path at all"},
		{"spec/containers/0", "separate fields with dots", "a JSON pointer without its slash"},
		{"/spec/containers/0", "separate fields with dots", "a JSON pointer"},
		{"metadata.annotations.example.com/at", `"com/at" is not a field name`, "a name that needs brackets"},
		{"metadata..x", "a field name is missing", "two dots"},
		{".spec", "a field name is missing", "as jq writes it"},
		{"spec.", "a field name is missing", "nothing after the dot"},
		{"spec.[a]", "a field name is missing", "a bracket needs no dot"},
		{"metadata.annotations[x", "a [ is not closed", "not closed"},
		{"metadata.annotations[]", "the brackets are empty", "as jq writes any element"},
		{"metadata.annotations]x", "not a field name", "not opened"},
		{"spec.a[b]c", "expected . or [", "no dot"},
		{"spec.vol*", "only in brackets", "a glob in a field name"},
		{"spec.volumes.creds-*", "only in brackets", "a glob without brackets"},
		{"metadata.annotations[example.com/*]", "[example.com/*] is the key of a map", "a glob for annotations"},
		{"spec.template.metadata.labels[app-*]", "[app-*] is the key of a map", "a glob for the labels of a template"},
		{"$.spec", "begins with a field", "JSONPath"},
		{"$['spec']", "begins with a field", "JSONPath in brackets"},
	} {
		got := ""
		if err := checkPath(row.path); err != nil {
			got = err.Error()
		}
		if (row.want == "") != (got == "") || !strings.Contains(got, row.want) {
			t.Errorf("checkPath(%s) = %q, want %q: %s", row.path, got, row.want, row.reason)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, path := range []string{"a.b[c].d", "a[", "]..", "$.", "[a]b"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if checkPath(path) == nil && checkPath(path+"]") == nil && !strings.ContainsAny(path, "[:") {
			t.Errorf("%s is a path, and so with a ]", path)
		}
	})
}
