// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A decoder converts a document to values that have a JSON form. It compares the document with a Go type as it goes.
type decoder struct{ problems []problem }

func (d *decoder) report(line int, at *field.Path, format string, args ...any) {
	d.problems = append(d.problems, problem{line, join(at.String(), fmt.Sprintf(format, args...))})
}

// value converts a node that must have the type t. As in Kubernetes, null stands for a field that is not set.
func (d *decoder) value(n *yaml.Node, t reflect.Type, at *field.Path) any {
	n = resolve(n)
	switch {
	case n.ShortTag() == "!!null":
		return nil
	case t.Kind() == reflect.Pointer:
		return d.value(n, t.Elem(), at)
	case decodesItself(t) || t.Kind() == reflect.Interface:
		return d.leaf(n, t, at)
	case t.Kind() == reflect.Struct && d.is(n, yaml.MappingNode, t, at):
		return d.fields(n, t, at)
	case t.Kind() == reflect.Map && d.is(n, yaml.MappingNode, t, at):
		return d.entries(n, t, at)
	case t.Kind() == reflect.Slice && d.is(n, yaml.SequenceNode, t, at):
		list := []any{}
		for i, element := range n.Content {
			list = append(list, d.value(element, t.Elem(), at.Index(i)))
		}
		return list
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map, t.Kind() == reflect.Slice: // reported by is
		return nil
	}
	return d.scalar(n, t, at)
}

// is reports whether the node has the kind. If not, it records an error.
func (d *decoder) is(n *yaml.Node, kind yaml.Kind, t reflect.Type, at *field.Path) bool {
	if n.Kind != kind {
		d.report(n.Line, at, "%s, not %s", describe(t), article(n))
	}
	return n.Kind == kind
}

func (d *decoder) fields(n *yaml.Node, t reflect.Type, at *field.Path) map[string]any {
	known := fieldsOf(t)
	return d.members(n, at.Child, func(name string, line int) reflect.Type {
		if known[name] == nil {
			names := slices.Sorted(maps.Keys(known))
			allowed := "allowed are " + strings.Join(names, ", ")
			if near := Nearest(name, names); near != "" {
				allowed = "did you mean " + near + "?"
			}
			d.report(line, at.Child(name), "unknown field: %s", allowed)
		}
		return known[name]
	})
}

func (d *decoder) entries(n *yaml.Node, t reflect.Type, at *field.Path) map[string]any {
	return d.members(n, func(name string, _ ...string) *field.Path { return at.Key(name) }, func(string, int) reflect.Type { return t.Elem() })
}

// members converts the members of a mapping. It skips a member if typeOf returns nil.
func (d *decoder) members(n *yaml.Node, path func(string, ...string) *field.Path, typeOf func(name string, line int) reflect.Type) map[string]any {
	all, lines := map[string]any{}, map[string]int{}
	for _, p := range pairs(n) {
		name := p.key.Value
		if line, twice := lines[name]; twice {
			d.report(p.key.Line, path(name), "is already set in line %d: remove one", line)
			continue
		}
		lines[name] = p.key.Line
		if t := typeOf(name, p.key.Line); t != nil {
			all[name] = d.value(p.value, t, path(name))
		}
	}
	return all
}

// scalar converts a string, a number or a boolean.
func (d *decoder) scalar(n *yaml.Node, t reflect.Type, at *field.Path) any {
	value := reflect.New(t)
	tag, quoted := n.ShortTag(), n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
	ok := n.Kind == yaml.ScalarNode
	switch t.Kind() {
	case reflect.String:
		if ok && (tag == "!!str" || tag == "!!timestamp") {
			return n.Value
		}
		ok = false
	case reflect.Bool: // the originals also accept yes and no
		ok = ok && !quoted && n.Decode(value.Interface()) == nil
	case reflect.Float32, reflect.Float64:
		ok = ok && (tag == "!!int" || tag == "!!float") && n.Decode(value.Interface()) == nil
	default:
		ok = ok && tag == "!!int" && n.Decode(value.Interface()) == nil
	}
	switch {
	case ok:
		return value.Elem().Interface()
	case n.Kind != yaml.ScalarNode:
		d.report(n.Line, at, "%s, not %s", describe(t), article(n))
	case t.Kind() == reflect.String:
		d.report(n.Line, at, "Invalid value: %s: must be a string: write %q", n.Value, n.Value)
	default:
		d.report(n.Line, at, "Invalid value: %s: %s", text(n), describe(t))
	}
	return nil
}

// leaf converts a value without a known structure, and checks that the type t can decode it.
func (d *decoder) leaf(n *yaml.Node, t reflect.Type, at *field.Path) any {
	var value any
	data := []byte(n.Value)
	if err := n.Decode(&value); err != nil {
		d.report(n.Line, at, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" || !json.Valid(data) { // a valid number keeps all its digits
		var err error
		if data, err = json.Marshal(value); err != nil {
			d.report(n.Line, at, "Invalid value: %s: has no JSON form", text(n))
			return nil
		}
	}
	if err := json.Unmarshal(data, reflect.New(t).Interface()); err != nil {
		allowed := err.Error()
		if t == reflect.TypeFor[resource.Quantity]() {
			allowed = "must be a quantity such as 100m, 2 or 128Mi"
		}
		d.report(n.Line, at, "Invalid value: %s: %s", text(n), allowed)
		return nil
	}
	return json.RawMessage(data)
}

func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// fieldsOf returns the types of the fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			maps.Copy(all, fieldsOf(f.Type))
		case name == "":
			all[f.Name] = f.Type
		default:
			all[name] = f.Type
		}
	}
	return all
}

// describe says what a value of the type must be.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem())
	case reflect.Struct:
		return "must be a map with the fields " + strings.Join(slices.Sorted(maps.Keys(fieldsOf(t))), ", ")
	case reflect.Map:
		return "must be a map"
	case reflect.Slice:
		return "must be a list"
	case reflect.String:
		return "must be a string"
	case reflect.Bool:
		return "must be true or false"
	case reflect.Float32, reflect.Float64:
		return "must be a number"
	case reflect.Int32:
		return "must be an integer up to 2147483647"
	}
	return "must be an integer"
}

// article names the kind of a node.
func article(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	return text(n)
}

// text shows a scalar as in the file, and strings in quotes. It shows other nodes by their kind.
func text(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode:
		return article(n)
	case n.ShortTag() == "!!str":
		return strconv.Quote(n.Value)
	}
	return n.Value
}
