// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

func decoded(t *testing.T, text string) any {
	t.Helper()
	doc, err := tree.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"app":"web","tier":"back"},
	"annotations":{"example.com/inject":"enabled","example.com/port":"80","a":"b","c":"d"}},
	"spec":{"hostNetwork":true,"containers":[{"name":"app","image":"nginx"},{"name":"db","image":"postgres"}]}}`

func TestFind(t *testing.T) {
	annotation := func(name string) tree.Path {
		return tree.Path{{Name: "metadata"}, {Name: "annotations"}, {Name: name}}
	}
	container := func(key string) tree.Path {
		return tree.Path{{Name: "spec"}, {Name: "containers"}}.Element(key, 0)
	}
	is := func(doc any, p tree.Path, want any) bool { v, ok := tree.Get(doc, p); return ok && tree.Equal(v, want) }
	for _, c := range []struct {
		name string
		acts func(doc any) bool
		want string
	}{
		{"always", func(any) bool { return true }, ""},
		{"a value", func(doc any) bool { return is(doc, annotation("example.com/inject"), "enabled") },
			`metadata.annotations[example.com/inject] is "enabled"`},
		{"any value", func(doc any) bool { return tree.Has(doc, annotation("example.com/inject")) },
			`metadata.annotations[example.com/inject] is set`},
		{"a number", func(doc any) bool {
			v, _ := tree.Get(doc, annotation("example.com/port"))
			return v == "80" || v == "81"
		}, `metadata.annotations[example.com/port] is set to a value such as "80" or "81"`},
		{"two parts", func(doc any) bool {
			return is(doc, annotation("a"), "b") && is(doc, tree.Path{{Name: "spec"}, {Name: "hostNetwork"}}, true)
		}, `metadata.annotations.a is "b"; spec.hostNetwork is true`},
		{"a container", func(doc any) bool { return tree.Has(doc, container("name=db")) }, `spec.containers[name=db].name is "db"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			doc := decoded(t, pod)
			smallest, parts, complete := Find(doc, 60, func(doc any) Answer {
				if !tree.Has(doc, tree.Path{{Name: "metadata"}, {Name: "name"}}) || !hasContainers(doc) {
					return Invalid
				}
				if calls++; c.acts(doc) {
					return Acts
				}
				return Idle
			})
			var words []string
			for _, p := range parts {
				words = append(words, p.String())
			}
			if got := strings.Join(words, "; "); got != c.want || !complete || !c.acts(smallest) {
				t.Errorf("got %s, complete %v; want %s\n%s", got, complete, c.want, tree.Encode(smallest))
			}
			if calls > 45 {
				t.Errorf("%d calls", calls)
			}
			if !tree.Equal(doc, decoded(t, pod)) {
				t.Error("the document was changed")
			}
		})
	}
}

// hasContainers reports whether the Pod has containers, and each has a name and an image.
func hasContainers(doc any) bool {
	list, _ := tree.Get(doc, tree.Path{{Name: "spec"}, {Name: "containers"}})
	containers, _ := list.([]any)
	for _, c := range containers {
		if m, ok := c.(map[string]any); !ok || m["name"] == nil || m["image"] == nil {
			return false
		}
	}
	return len(containers) > 0
}

func TestFindIsBounded(t *testing.T) {
	calls := 0
	_, _, complete := Find(decoded(t, pod), 5, func(doc any) Answer { calls++; return Idle })
	if calls != 5 || complete {
		t.Errorf("%d calls, complete %v", calls, complete)
	}
}
