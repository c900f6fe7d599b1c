// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Path identifies a value in a document.
type Path []Step

// A Step leads to a named member of an object or to an element of a list.
type Step struct {
	Name string // of a member
	// Key is the identity of an element, such as "name=web", and Nth the number of elements before
	// it with the same key.
	Key     string
	Nth     int
	Element bool
}

// Member returns the path of a member of the object at p.
func (p Path) Member(name string) Path { return append(slices.Clip(p), Step{Name: name}) }

// Element returns the path of an element of the list at p.
func (p Path) Element(key string, nth int) Path {
	return append(slices.Clip(p), Step{Key: key, Nth: nth, Element: true})
}

// String returns the path in the form of Kubernetes' field paths:
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

// Last returns the last member name in the path, or "" if the path has none.
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

// Get returns the value at a path, or false if there is none.
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

// HasLike is like Has, but it also finds an element that shares its key with other elements of the list.
func HasLike(doc any, p Path) bool {
	for i, s := range p {
		list, isList := doc.([]any)
		if !s.Element || !isList {
			next, ok := Get(doc, Path{s})
			if doc = next; !ok {
				return false
			}
			continue
		}
		at := indexOf(list, s, p[:i])
		if at < 0 && s.Nth == 0 {
			at = slices.IndexFunc(list, func(element any) bool { return Identity(p[:i], element) == s.Key })
		}
		if at < 0 {
			return false
		}
		doc = list[at]
	}
	return true
}

func indexOf(list []any, s Step, at Path) int {
	n := 0
	for i, key := range identities(at, list) {
		if key == s.Key {
			if n == s.Nth {
				return i
			}
			n++
		}
	}
	return -1
}

// At returns the path of a JSON pointer (RFC 6901) in a document. Where the document has no value, a token becomes a
// member, even if it is meant as an index.
func At(doc any, pointer string) Path {
	var p Path
	for _, token := range strings.Split(pointer, "/")[1:] {
		if list, ok := doc.([]any); ok {
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(list) {
				p, doc = append(slices.Clip(p), steps(p, list)[i]), list[i]
				continue
			}
		}
		name := unescape.Replace(token)
		object, _ := doc.(map[string]any)
		p, doc = p.Member(name), object[name]
	}
	return p
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// knownKeys are the fields that identify the elements of a list, by the name of the list. They are the merge keys of
// the core types (patchMergeKey, listMapKey) other than the name.
var knownKeys = map[string][]string{
	"volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"}, "hostAliases": {"ip"}, "ownerReferences": {"uid"},
	"ports": {"containerPort", "port", "protocol"}, "topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	"conditions": {"type"}, "readinessGates": {"conditionType"}, "volumeClaimTemplates": {"metadata"},
}

// usualValues are the defaults of optional keys. An element with such a default is the same element as one without the
// key.
var usualValues = map[string]string{"protocol": "TCP", "whenUnsatisfiable": "DoNotSchedule"}

// Identity returns what identifies an element of the list at a path: the values of its keys, else its name, else the
// whole element.
func Identity(list Path, element any) string {
	object, ok := element.(map[string]any)
	if !ok {
		return string(Encode(element))
	}
	var identity []byte
	for _, key := range knownKeys[list.Last()] {
		value, ok := object[key]
		switch {
		case ok && key == "metadata":
			meta, _ := value.(map[string]any)
			key, value = "metadata.name", meta["name"]
		case !ok && len(identity) > 0 && usualValues[key] != "":
			value = usualValues[key]
		case !ok:
			continue
		}
		if len(identity) > 0 {
			identity = append(identity, ',')
		}
		identity = appendPlain(append(append(identity, key...), '='), value)
	}
	if name, ok := object["name"]; ok && len(identity) == 0 {
		return string(appendPlain([]byte("name="), name))
	}
	if len(identity) == 0 {
		return string(Encode(element))
	}
	return string(identity)
}

// coreLists are lists of core types whose elements are identified by name, even if an invalid object has duplicates.
var coreLists = map[string]bool{
	"env": true, "containers": true, "initContainers": true, "ephemeralContainers": true, "volumes": true, "imagePullSecrets": true,
	"claims": true, "resourceClaims": true,
}

// identities returns the identities of all elements of a list. In a list without known keys, a duplicate name
// identifies no element.
func identities(list Path, elements []any) []string {
	keys := make([]string, len(elements))
	named := 0
	for i, element := range elements {
		if keys[i] = Identity(list, element); strings.HasPrefix(keys[i], "name=") {
			named++
		}
	}
	if last := list.Last(); named < 2 || coreLists[last] || knownKeys[last] != nil {
		return keys
	}
	count := make(map[string]int, len(keys))
	for _, key := range keys {
		count[key]++
	}
	for i, key := range keys {
		if count[key] > 1 {
			keys[i] = string(Encode(elements[i]))
		}
	}
	return keys
}

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
