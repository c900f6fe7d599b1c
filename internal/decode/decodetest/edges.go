// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"iter"
	"reflect"
	"slices"
	"strings"
)

// Edges yields types and documents with every odd spelling of a scalar or a name, for every type of scalar, and at
// several positions in a document. Random cases would take a long time to reach all of these combinations.
func Edges() iter.Seq2[reflect.Type, []byte] {
	return func(yield func(reflect.Type, []byte) bool) {
		types := slices.Concat(leafTypes, oddLeafTypes, oddTypes())
		for i, t := range types {
			texts := edgeTexts(t)
			for j, text := range texts {
				rotating := wrappers[1+(i+j)%(len(wrappers)-1)]
				other := texts[(j*7+i)%len(texts)]
				if !yield(wrappers[0].typ(t), wrappers[0].doc(text, other)) || !yield(rotating.typ(t), rotating.doc(text, other)) {
					return
				}
			}
		}
		if !tagged(yield) {
			return
		}
		for _, key := range keyTypes {
			for _, elem := range []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[*part]()} {
				for _, name := range edgeNames() {
					if !yield(reflect.MapOf(key, elem), []byte(`{`+name+`:null}`)) {
						return
					}
				}
			}
		}
		for _, t := range []reflect.Type{reflect.TypeFor[map[string]string](), reflect.TypeFor[map[phase]phase](), reflect.TypeFor[any](), reflect.TypeFor[names]()} {
			for _, name := range edgeNames() {
				if !yield(t, []byte(`{`+name+`:`+name+`}`)) || !yield(t, []byte(`{"name":null,`+name+`:null,"Name":null}`)) {
					return
				}
			}
		}
	}
}

// tagged yields documents for structs with one odd tag. The documents use every name that the tag may mean. It returns
// false if yield does.
func tagged(yield func(reflect.Type, []byte) bool) bool {
	names := []string{
		"A", "a", "b", "g", "q", "'q'", `"q"`, "-", "a,b", `a\b`, "a\tb", "é", "\ufffd", "omitempty", "string", "日本", "a:b", "y", "", "B",
		"!#$%&()*+-./:;<=>?@[]^_{|}~ ", ",", "g, omitempty",
	}
	for _, tag := range oddTags {
		for _, t := range []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[*string](), reflect.TypeFor[[]int](), reflect.TypeFor[any]()} {
			typ := reflect.StructOf([]reflect.StructField{
				{Name: "A", Type: t, Tag: reflect.StructTag(tag)}, {Name: "B", Type: t, Tag: `json:"b"`},
			})
			for _, name := range names {
				for _, value := range []string{`1`, `"1"`, `"\"1\""`, `[1]`, `null`} {
					if !yield(typ, []byte(`{`+quote(name)+`:`+value+`}`)) {
						return false
					}
				}
			}
		}
	}
	return true
}

// A wrapper puts a JSON value into a larger test case. typ wraps the type of the value, for example in a slice or a
// struct field. doc wraps its text in the same way. Some wrappers also use a second value, other.
type wrapper struct {
	typ func(t reflect.Type) reflect.Type
	doc func(text, other string) []byte
}

var wrappers = []wrapper{
	{inField, func(text, _ string) []byte { return []byte(`{"v":` + text + `}`) }},
	{func(t reflect.Type) reflect.Type { return t }, func(text, _ string) []byte { return []byte(text) }},
	{reflect.SliceOf, func(text, _ string) []byte { return []byte(`[` + text + `]`) }},
	{reflect.SliceOf, func(text, other string) []byte { return []byte(`[` + other + `,` + text + `,null]`) }},
	{reflect.PointerTo, func(text, _ string) []byte { return []byte(" " + text + "\n") }},
	{inMap, func(text, _ string) []byte { return []byte(`{"k":` + text + `}`) }},
	{inMap, func(text, other string) []byte { return []byte(`{"k":` + other + `,"k":` + text + `}`) }},
	{inArray, func(text, _ string) []byte { return []byte(`[null,` + text + `]`) }},
	{inField, func(text, other string) []byte { return []byte(`{"v":` + other + `,"v":` + text + `}`) }},
	{inField, func(text, other string) []byte { return []byte(`{"w":` + other + `,"v":` + text + `}`) }},
	{inRefField, func(text, other string) []byte { return []byte(`{"v":` + text + `,"w":` + other + `}`) }},
	{inQuotedField, func(text, _ string) []byte { return []byte(`{"v":` + quote(text) + `}`) }},
	{inQuotedField, func(text, _ string) []byte { return []byte(`{"v":` + text + `}`) }},
}

func oneField(t reflect.Type, tag string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "V", Type: t, Tag: reflect.StructTag(tag)}})
}

func inField(t reflect.Type) reflect.Type       { return oneField(t, `json:"v"`) }
func inRefField(t reflect.Type) reflect.Type    { return oneField(reflect.PointerTo(t), `json:"v"`) }
func inQuotedField(t reflect.Type) reflect.Type { return oneField(t, `json:"v,string"`) }
func inMap(t reflect.Type) reflect.Type         { return reflect.MapOf(reflect.TypeFor[string](), t) }
func inArray(t reflect.Type) reflect.Type       { return reflect.ArrayOf(2, t) }

// edgeTexts returns JSON values for a type that are hard to decode. Some are invalid.
func edgeTexts(t reflect.Type) []string {
	texts := slices.Concat([]string{`null`, `true`, `false`, `{}`, `[]`, `""`, `"x"`, `[null]`, `[{}]`, `{"a":null}`, ``, `nul`}, oddNumbers)
	s := spellings[t]
	texts = slices.Concat(texts, s.good, s.bad)
	for _, part := range oddParts {
		texts = append(texts, `"`+part+`"`, `"é`+part+`a"`)
	}
	for _, text := range []string{"aGk=", "aGk", "aG\\r\\nk=", "aGk=\\n", "a Gk=", "aGk==", "_-8=", "/+8=", "====", "aGkaGk="} {
		texts = append(texts, `"`+text+`"`)
	}
	return texts
}

// edgeNames returns member names, including quotes.
func edgeNames() []string {
	names := []string{`"name\u0000"`, `"nam\u0065"`, `"NaMe"`, `"nameName"`, `"\u212aelvin"`, `"\u017flow"`, `"É"`, `"\u00c9"`, `"e\u0301"`}
	for _, key := range oddKeys {
		names = append(names, quote(key))
	}
	for _, part := range oddParts {
		names = append(names, `"`+part+`"`, `"name`+part+`"`, `"`+part+strings.Repeat("n", 9)+`"`)
	}
	return names
}
