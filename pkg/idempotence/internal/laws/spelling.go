// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// isSpelling reports whether a change has no meaning: an empty map or list, or null, appears or vanishes. That happens
// when an object is decoded into a Go type and encoded again.
func isSpelling(c tree.Change) bool {
	if len(c.Path) == 0 || c.Path[len(c.Path)-1].Element || c.Kind == tree.Moved {
		return false
	}
	name := c.Path[len(c.Path)-1].Name
	if c.Kind == tree.Replaced {
		return sameValue(name, c.Old, c.New)
	}
	if isSwitch(name) {
		return false
	}
	return c.Kind == tree.Added && isVoid(c.New) || c.Kind == tree.Removed && isVoid(c.Old)
}

// isSwitch reports whether an empty object in the field name has a meaning, as in a volume's emptyDir, or in a selector
// that selects everything.
func isSwitch(name string) bool {
	switch name {
	case "emptyDir", "exec", "tcpSocket", "from", "to", "ingress", "egress", "template", "all", "any":
		return true
	}
	return strings.HasSuffix(strings.ToLower(name), "selector")
}

// isVoid reports whether a value is null, an empty list, or an object with only such values.
func isVoid(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		for name, inner := range v {
			if isSwitch(name) && inner != nil || !isVoid(inner) {
				return false
			}
		}
		return true
	}
	return false
}

// sameValue reports whether two values of the field name are equal except for void values.
func sameValue(name string, a, b any) bool {
	if isVoid(a) && isVoid(b) && !isSwitch(name) {
		return true
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for name, inner := range x {
			other, has := y[name]
			if !has && (isSwitch(name) || !isVoid(inner)) || has && !sameValue(name, inner, other) {
				return false
			}
		}
		for name, inner := range y {
			if _, had := x[name]; !had && (isSwitch(name) || !isVoid(inner)) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, func(a, b any) bool { return sameValue("", a, b) })
	}
	return tree.Equal(a, b)
}

// sameDoc reports whether two documents are equal except for void values.
func sameDoc(a, b any) bool { return tree.Equal(a, b) || sameValue("", a, b) }

// dropPairs removes pairs of changes that are about one element. In a list without keys, a changed element appears as
// one that is removed and one that is added. A pair is dropped if the two differ only in void values, or only in values
// that exceptions cover.
func (t *Trial) dropPairs(law Law, changes []tree.Change) []tree.Change {
	return pairsDropped(changes, func(gone tree.Change, come any) bool { return t.isSame(law, gone, come) })
}

// pairsDropped returns the changes without the pairs of a removed and an added element of one list that are the same.
func pairsDropped(changes []tree.Change, same func(gone tree.Change, come any) bool) []tree.Change {
	drop := map[int]bool{}
	for i, gone := range changes {
		if !isElement(gone, tree.Removed) {
			continue
		}
		for j, come := range changes {
			if !drop[j] && isElement(come, tree.Added) && sameList(gone.Path, come.Path) && same(gone, come.New) {
				drop[i], drop[j] = true, true
				break
			}
		}
	}
	if len(drop) == 0 {
		return changes
	}
	var left []tree.Change
	for i, c := range changes {
		if !drop[i] {
			left = append(left, c)
		}
	}
	return left
}

// isSame reports whether a removed element and an added one are a pair that dropPairs must drop.
func (t *Trial) isSame(law Law, gone tree.Change, now any) bool {
	if sameValue("", gone.Old, now) {
		return true
	}
	if _, isObject := now.(map[string]any); !isObject || len(t.Exceptions) == 0 {
		return false
	}
	return t.needing(func() bool {
		return !slices.ContainsFunc(tree.Changes(gone.Old, now), func(c tree.Change) bool {
			c.Path = slices.Concat(gone.Path, c.Path)
			return len(c.Path) == len(gone.Path) || !isSpelling(c) && !t.covered(law, c)
		})
	})
}

func isElement(c tree.Change, kind tree.Kind) bool {
	return c.Kind == kind && len(c.Path) > 0 && c.Path[len(c.Path)-1].Element
}

func sameList(a, b tree.Path) bool {
	return len(a) == len(b) && a.HasPrefix(b[:len(b)-1])
}

// tokenPath is the path at which the API server's ServiceAccount plugin mounts a token in the containers of new Pods.
// The plugin runs again between the rounds of webhooks, so late containers get the token, too.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// isTokenMount reports whether a change is only about the token that the ServiceAccount plugin mounts.
func isTokenMount(c tree.Change) bool {
	for _, step := range c.Path {
		if step.Element && (step.Key == "mountPath="+tokenPath || strings.HasPrefix(step.Key, "name=kube-api-access-")) {
			return true
		}
	}
	value := c.New
	if c.Kind == tree.Removed {
		value = c.Old
	}
	mounts, _ := value.([]any)
	return c.Path.Last() == "volumeMounts" && len(mounts) > 0 && !slices.ContainsFunc(mounts, func(m any) bool {
		mount, _ := m.(map[string]any)
		return mount["mountPath"] != tokenPath
	})
}
