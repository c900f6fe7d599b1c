// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Path leads to a value of a document.
type Path []Step

// A Step leads into an object, to the member with a name, or into a list, to an element.
type Step struct {
	Name string // of a member
	// Key is the identity of an element, such as "name=web", and Nth how many elements before it
	// have the same one.
	Key     string
	Nth     int
	Element bool
}

// Member is the path to a member of the object at p.
func (p Path) Member(name string) Path { return append(slices.Clip(p), Step{Name: name}) }

// Element is the path to an element of the list at p.
func (p Path) Element(key string, nth int) Path {
	return append(slices.Clip(p), Step{Key: key, Nth: nth, Element: true})
}

// String writes the path as Kubernetes writes field paths:
// spec.containers[name=web].image, metadata.annotations[example.com/a].
func (p Path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.Element && s.Nth > 0:
			fmt.Fprintf(&b, "[%s#%d]", s.Key, s.Nth+1)
		case s.Element:
			fmt.Fprintf(&b, "[%s]", s.Key)
		case strings.ContainsAny(s.Name, "./[]"):
			fmt.Fprintf(&b, "[%s]", s.Name)
		case b.Len() > 0:
			b.WriteString("." + s.Name)
		default:
			b.WriteString(s.Name)
		}
	}
	return b.String()
}

// Last is the name of the last member on the way.
func (p Path) Last() string {
	for _, s := range slices.Backward(p) {
		if !s.Element {
			return s.Name
		}
	}
	return ""
}

// HasPrefix reports whether p leads to, or into, the value at prefix.
func (p Path) HasPrefix(prefix Path) bool {
	return len(p) >= len(prefix) && slices.Equal(p[:len(prefix)], prefix)
}

// Matches reports whether the path is the one that a pattern means, or leads into it. A pattern
// is written as String writes a path; [*] stands for any element or member, and an element
// may be left out: spec.containers.image is the image of any container.
func (p Path) Matches(pattern string) bool { return matchSteps(p, parsePattern(pattern)) }

// parsePattern splits a pattern at its dots and brackets.
func parsePattern(pattern string) (parts []string) {
	for pattern != "" {
		switch i := strings.IndexAny(pattern, ".["); {
		case pattern[0] == '[':
			end := strings.IndexByte(pattern, ']')
			if end < 0 {
				return append(parts, pattern[1:])
			}
			parts, pattern = append(parts, pattern[1:end]), strings.TrimPrefix(pattern[end+1:], ".")
		case i < 0:
			return append(parts, pattern)
		default:
			parts = append(parts, pattern[:i])
			pattern = strings.TrimPrefix(pattern[i:], ".")
		}
	}
	return parts
}

func matchSteps(p Path, parts []string) bool {
	if len(parts) == 0 {
		return true
	}
	if len(p) == 0 {
		return false
	}
	step, part := p[0], parts[0]
	if part == "*" || !step.Element && step.Name == part || step.Element && step.Key == part {
		return matchSteps(p[1:], parts[1:])
	}
	return step.Element && matchSteps(p[1:], parts)
}

// Get returns the value at a path.
func Get(doc any, p Path) (any, bool) {
	for i, s := range p {
		if s.Element {
			list, ok := doc.([]any)
			if !ok {
				return nil, false
			}
			at := indexOf(list, s, p[:i])
			if at < 0 {
				return nil, false
			}
			doc = list[at]
			continue
		}
		object, ok := doc.(map[string]any)
		if !ok {
			return nil, false
		}
		if doc, ok = object[s.Name]; !ok {
			return nil, false
		}
	}
	return doc, true
}

// Has reports whether there is a value at a path.
func Has(doc any, p Path) bool { _, ok := Get(doc, p); return ok }

func indexOf(list []any, s Step, at Path) int {
	n := 0
	for i, element := range list {
		if Identity(at, element) == s.Key {
			if n == s.Nth {
				return i
			}
			n++
		}
	}
	return -1
}

// Pointer returns the JSON pointer (RFC 6901) of a path in a document that has it.
func Pointer(doc any, p Path) (string, bool) {
	var b strings.Builder
	for i, s := range p {
		b.WriteByte('/')
		if s.Element {
			list, ok := doc.([]any)
			if !ok {
				return "", false
			}
			at := indexOf(list, s, p[:i])
			if at < 0 {
				return "", false
			}
			b.WriteString(strconv.Itoa(at))
			doc = list[at]
			continue
		}
		object, _ := doc.(map[string]any)
		value, ok := object[s.Name]
		if !ok {
			return "", false
		}
		b.WriteString(escape.Replace(s.Name))
		doc = value
	}
	return b.String(), true
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// knownKeys are the fields that tell the elements of a list apart, by the name of the list.
// They are the merge keys of the core types (patchMergeKey, listMapKey); env is left out of
// uniqueness, since a name may stand there twice, but a name is its identity.
var knownKeys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "ephemeralContainers": {"name"}, "volumes": {"name"},
	"env": {"name"}, "imagePullSecrets": {"name"}, "volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"},
	"ports": {"containerPort", "port", "protocol"}, "hostAliases": {"ip"}, "ownerReferences": {"uid"},
	"conditions": {"type"}, "topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	"resourceClaims": {"name"}, "claims": {"name"}, "readinessGates": {"conditionType"}, "volumeClaimTemplates": {"metadata"},
	"tolerations": nil, "envFrom": nil, "managedFields": nil, "rules": nil,
}

// Identity is what tells an element of the list at a path from the others: the values of its
// keys, or all of it where it has none.
func Identity(list Path, element any) string {
	object, ok := element.(map[string]any)
	if !ok {
		return string(Encode(element))
	}
	name := list.Last()
	keys, known := knownKeys[name]
	if !known {
		keys = nameOnly
	}
	var identity []byte
	for _, key := range keys {
		if value, ok := object[key]; ok {
			if name == "volumeClaimTemplates" {
				meta, _ := value.(map[string]any)
				key, value = "metadata.name", meta["name"]
			}
			if len(identity) > 0 {
				identity = append(identity, ',')
			}
			identity = appendPlain(append(append(identity, key...), '='), value)
		}
	}
	if len(identity) == 0 {
		return string(Encode(element))
	}
	return string(identity)
}

var nameOnly = []string{"name"}

// appendPlain writes a value without quotes.
func appendPlain(dst []byte, value any) []byte {
	switch value := value.(type) {
	case string:
		return append(dst, value...)
	case int64:
		return strconv.AppendInt(dst, value, 10)
	}
	return fmt.Append(dst, value)
}
