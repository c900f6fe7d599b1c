// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A shape describes the values that the generator can write at one place in a review.
type shape struct {
	values  []string         // JSON values to choose from, or
	members map[string]shape // the members of an object, or
	element *shape           // the elements of a list or of a map with any names
	isMap   bool
}

var (
	texts   = []string{`""`, `"a"`, `"Pod"`, `"v1"`, `"\u003ca\\b\/\n\ud83d\ude00\""`, `"\ud83d"`, `"\ude00\ud83dx"`, "\"\xff\xc3\"", `"é€😀"`}
	anyJSON = []string{`{}`, `[]`, `""`, `0`, `-0`, `true`, `{"a":{"a":1,"a":2}}`, `[1, "x",null ]`, `1e999`, `12345678901234567890`,
		`{"metadata":{"creationTimestamp":null},"args":["\u003c","\u2028"]}`, "\"\xff\""}

	text      = shape{values: texts}
	list      = shape{element: &text}
	document  = shape{values: anyJSON}
	gvkShape  = shape{members: map[string]shape{"group": text, "version": text, "kind": text}}
	gvrShape  = shape{members: map[string]shape{"group": text, "version": text, "resource": text}}
	userShape = shape{members: map[string]shape{"username": text, "uid": text, "groups": list, "extra": {element: &list, isMap: true}}}

	requestShape = shape{members: map[string]shape{
		"uid": mostly([]string{`""`}, `"0df28fbd"`, `"\u0075"`), "name": text, "namespace": text, "operation": text,
		"kind": gvkShape, "resource": gvrShape, "subResource": text,
		"requestKind": gvkShape, "requestResource": gvrShape, "requestSubResource": text,
		"userInfo": userShape, "dryRun": {values: []string{`true`, `false`}},
		"object": document, "oldObject": document, "options": document,
	}}
	reviewShape = shape{members: map[string]shape{
		"kind":       mostly([]string{`"Pod"`}, `"AdmissionReview"`, `"Admission\u0052eview"`),
		"apiVersion": mostly([]string{`"v2"`}, `"admission.k8s.io/v1"`, `"admission.k8s.io\/v1beta1"`),
		"request":    requestShape,
	}}
)

// mostly returns a shape that usually has one of the values, and rarely one of the others.
func mostly(others []string, values ...string) shape {
	return shape{values: append(slices.Repeat(values, 10), others...)}
}

// A generator writes random reviews, both ordinary ones and unusual ones.
type generator struct {
	*rand.Rand
	odd   float64 // probability of an unusual spelling at each place: null, a duplicate, an escape, …
	wrong float64 // probability of a value of the wrong type, or a name in the wrong case
	out   []byte
}

// generateReview returns review number n of a fixed random sequence. Every fourth review is unusual only in
// its order and white space.
func generateReview(n uint64) []byte {
	g := generator{Rand: rand.New(rand.NewPCG(n, 1))}
	switch n % 4 {
	case 1:
		g.odd, g.wrong = 0.02, 0.01
	case 2, 3:
		g.odd = 0.1
	}
	g.value(reviewShape)
	g.space()
	if n%8 == 1 {
		g.damage()
	}
	return g.out
}

func (g *generator) oddly() bool { return g.Float64() < g.odd }

func (g *generator) write(parts ...string) {
	g.out = append(g.out, strings.Join(parts, "")...)
}

func (g *generator) space() {
	if g.IntN(6) == 0 {
		g.write([]string{" ", "\n", "\t", "\r\n", "  "}[g.IntN(5)])
	}
}

func (g *generator) value(s shape) {
	g.space()
	defer g.space()
	switch {
	case g.oddly():
		g.write("null")
	case g.Float64() < g.wrong:
		g.write(anyJSON[g.IntN(len(anyJSON))])
	case s.members != nil:
		g.object(s)
	case s.isMap:
		g.list('{', '}', func() { g.name(fmt.Sprint("key", g.IntN(3))); g.value(*s.element) })
	case s.element != nil:
		g.list('[', ']', func() { g.value(*s.element) })
	default:
		g.write(s.values[g.IntN(len(s.values))])
	}
}

func (g *generator) list(open, closing byte, element func()) {
	g.out = append(g.out, open)
	for i := range g.IntN(4) {
		if i > 0 {
			g.write(",")
		}
		element()
	}
	g.out = append(g.out, closing)
}

func (g *generator) object(s shape) {
	// Sorted, because the order of a map is random and the sequence must be fixed.
	names := slices.Sorted(maps.Keys(s.members))
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i := range names {
		if g.oddly() {
			names = append(names, names[i])
		}
	}
	if g.oddly() {
		names = append(names, "unknown")
	}
	g.write("{")
	comma := false
	for _, name := range names {
		if g.oddly() {
			continue
		}
		if comma {
			g.write(",")
		}
		comma = true
		g.name(name)
		if member, ok := s.members[name]; ok {
			g.value(member)
		} else {
			g.value(document)
		}
	}
	g.write("}")
}

// name writes a member's name, sometimes with an escape or in another case.
func (g *generator) name(name string) {
	g.space()
	switch {
	case g.oddly():
		at := g.IntN(len(name))
		name = fmt.Sprintf(`%s\u%04x%s`, name[:at], name[at], name[at+1:])
	case g.Float64() < g.wrong:
		name = strings.ToUpper(name)
	}
	g.write(`"`, name, `":`)
}

// damage makes the text invalid, or almost invalid.
func (g *generator) damage() {
	at := g.IntN(len(g.out))
	switch g.IntN(6) {
	case 0:
		g.out = g.out[:at]
	case 1:
		g.out[at] = byte(g.IntN(256))
	case 2:
		g.out = append(g.out[:at], g.out[at+1:]...)
	case 3:
		g.write([]string{"x", "{}", "\x00", ",", "null"}[g.IntN(5)])
	case 4:
		depth := jsonraw.MaxDepth - 1 + g.IntN(2)
		g.out = append([]byte(`{"deep":`+nested(depth)+`,`), strings.TrimLeft(string(g.out), " \r\n\t{")...)
	case 5:
		g.out = append([]byte("\n\ufeff")[:1+3*g.IntN(2)], g.out...)
	}
}
