// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Properties that an encoder would not give a document. All are legal: clients and newer API servers send documents
// with them.
const (
	crowd        = 1 << iota // lists of similar elements
	plantUnknown             // members that the Go type does not know, in every struct
	sparse                   // members that are missing or null, or present although an encoder would omit them
	respell                  // quantities in other units, times in other zones
	shuffle                  // names in any order
	spaces                   // white space and needless escapes
	allWays      = 1<<iota - 1
)

// strangeDocument returns data, the encoding of an object, with changes that give it the properties in ways. Each
// property has its own random source, so that leaving one out does not change the others.
func strangeDocument(data []byte, v view, ways int, seed int64) []byte {
	root, t, next := parseTree(data), v.kind, 0
	random := func(way int) *rand.Rand { return rand.New(rand.NewSource(seed*64 + int64(way))) }
	if ways&crowd != 0 {
		r := random(crowd)
		root.visit(place{typ: t}, func(n *tree, s place) { addAlmostAlike(n, s, r) })
	}
	if ways&sparse != 0 {
		r := random(sparse)
		root.visit(place{typ: t}, func(n *tree, s place) { makeSparse(n, s, r) })
	}
	if ways&plantUnknown != 0 {
		r := random(plantUnknown)
		sometimes := r.Intn(3) == 0
		root.visit(place{typ: t}, func(n *tree, s place) {
			if s.isStruct() && n.is('{') && !(sometimes && r.Intn(2) == 0) {
				next++
				n.set(fmt.Sprint(future, next), unknownValue(r, next, v))
			}
		})
	}
	if ways&respell != 0 {
		r := random(respell)
		root.visit(place{typ: t}, func(n *tree, s place) { respellScalar(n, s, r) })
	}
	if ways&shuffle != 0 {
		r := random(shuffle)
		root.visit(place{typ: t}, func(n *tree, s place) {
			r.Shuffle(len(n.names), func(i, j int) { n.names[i], n.names[j] = n.names[j], n.names[i] })
		})
	}
	var b bytes.Buffer
	style{random(spaces), ways&spaces != 0}.write(&b, root)
	return b.Bytes()
}

// visit calls f for n and each value inside it, the innermost first. s describes n.
func (n *tree) visit(s place, f func(*tree, place)) {
	for _, name := range slices.Clone(n.names) {
		n.kids[name].visit(s.member(name), f)
	}
	for _, elem := range n.elems {
		elem.visit(s.elem(), f)
	}
	f(n, s)
}

// addAlmostAlike adds copies of elements in which one member may differ.
func addAlmostAlike(n *tree, s place, r *rand.Rand) {
	if len(n.elems) == 0 || s.opaque() || indirect(s.typ).Kind() == reflect.Array || r.Intn(3) > 0 {
		return
	}
	for range 1 + r.Intn(3) {
		twin := n.elems[r.Intn(len(n.elems))].clone()
		if names := slices.Clone(twin.names); len(names) > 0 && r.Intn(4) > 0 {
			name := names[r.Intn(len(names))]
			switch kind := indirect(s.elem().member(name).typ); {
			case kind == nil:
			case kind.Kind() == reflect.String && twin.kids[name].is('"'):
				twin.kids[name].text += "x"
			case kind.Kind() == reflect.Int32:
				twin.kids[name].text = fmt.Sprint(r.Intn(100))
			}
		}
		n.elems = slices.Insert(n.elems, r.Intn(len(n.elems)+1), twin)
	}
}

func unknownValue(r *rand.Rand, id int, v view) *tree {
	values := []any{id, nil, "x", []any{id}, map[string]any{"id": id, "name": "n"}}
	if v.isTyped() { // too large for any Go type
		values = append(values, json.Number("12345678901234567890123e400"))
	}
	return parseTree(mustEncode(values[r.Intn(len(values))]))
}

var null = &tree{kind: 's', text: "null"}

func makeSparse(n *tree, s place, r *rand.Rand) {
	if !n.is('{') || !s.isStruct() {
		if !s.opaque() && nullable(s.elem()) {
			for i := range n.elems {
				if r.Intn(80) == 0 {
					n.elems[i] = null
				}
			}
		}
		return
	}
	for _, name := range slices.Clone(n.names) {
		chance := 60 // for members that are not empty
		if kid := n.kids[name]; kid.null() || kid.text == "0" || kid.text == "false" ||
			len(kid.text)+len(kid.names)+len(kid.elems) == 0 {
			chance = 3
		}
		switch r.Intn(chance) {
		case 0:
			n.drop(name)
		case 1:
			if nullable(s.member(name)) {
				n.set(name, null)
			}
		}
	}
	for _, f := range fieldsOf(indirect(s.typ)) {
		if n.kids[f.name] == nil && r.Intn(12) == 0 {
			switch fs := (place{typ: f.typ}); {
			case fs.isStruct() && r.Intn(2) == 0:
				n.set(f.name, newObject())
			case nullable(fs):
				n.set(f.name, null)
			}
		}
	}
}

// nullable returns false for metav1.Duration, which does not accept null.
func nullable(s place) bool { return indirect(s.typ) != reflect.TypeFor[metav1.Duration]() }

var zones = []*time.Location{time.UTC, time.FixedZone("", 7200), time.FixedZone("", -12600)}

func respellScalar(n *tree, s place, r *rand.Rand) {
	text := n.text
	if n.kind != '"' || text == "" {
		return
	}
	switch indirect(s.typ) {
	case reflect.TypeFor[resource.Quantity]():
		q, milli := resource.MustParse(text), resource.Quantity{}
		if milli.Set(q.MilliValue()); r.Intn(2) == 0 {
			if same := resource.MustParse(fmt.Sprintf("%dm", milli.Value())); same.Cmp(q) == 0 {
				n.text = fmt.Sprintf("%dm", milli.Value())
			}
		} else if whole := *resource.NewQuantity(q.Value(), resource.DecimalSI); whole.Cmp(q) == 0 {
			n.kind, n.text = 's', fmt.Sprint(q.Value()) // a number is as valid as a string
		}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			panic(err)
		}
		format := time.RFC3339
		if indirect(s.typ) == reflect.TypeFor[metav1.MicroTime]() {
			format = metav1.RFC3339Micro
		}
		n.text = at.In(zones[r.Intn(len(zones))]).Format(format)
	}
}
