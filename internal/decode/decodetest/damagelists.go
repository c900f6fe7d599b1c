// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"fmt"
	"reflect"
	"slices"
)

// hasFullList reports whether an object has a member that is a list with elements.
func hasFullList(n *node) bool { return slices.ContainsFunc(n.members, isFullList) }

func isFullList(m member) bool { return m.value.kind == '[' && len(m.value.elems) > 0 }

// duplicateOther adds a second member with the same name and another valid value. A wrong decoder would keep parts of
// the first value, such as members of structs, entries of maps or elements after the end of a list.
func duplicateOther(d *document, n *node) {
	m := *d.member(n)
	for range 1 + d.r.Intn(2) {
		d.insert(n, m.name, d.variant(m.value))
	}
}

func duplicateEmpty(d *document, n *node) {
	m := *d.member(n)
	d.insert(n, m.name, parse([]byte([]string{`null`, `{}`, `[]`}[d.r.Intn(3)]), nil))
	if d.r.Intn(2) == 0 {
		d.insert(n, m.name, d.variant(m.value))
	}
}

func duplicateLists(d *document, n *node) {
	m := *d.member(n)
	for !isFullList(m) {
		m = *d.member(n)
	}
	for range 2 {
		other := d.variant(m.value)
		d.resize(other)
		d.insert(n, m.name, other)
	}
}

func duplicateSpelling(d *document, n *node) {
	m := *d.member(n)
	name := d.escape(unquote(m.name))
	if d.r.Intn(3) == 0 { // the first two names are equal after decoding
		d.insert(n, m.name[:len(m.name)-1]+"\xff\"", d.variant(m.value))
		name = m.name[:len(m.name)-1] + "\ufffd\""
	}
	d.insert(n, name, d.variant(m.value))
}

// variant returns a value that can replace n: a newly generated one, or a changed copy of n.
func (d *document) variant(n *node) *node {
	if n.typ != nil && d.r.Intn(3) == 0 {
		return d.value(n.typ, maxLevel-3)
	}
	n = n.clone()
	var inner []*node // listed first, because the changes below add values
	n.visit(func(n *node) { inner = append(inner, n) })
	for range 1 + d.r.Intn(4) {
		d.change(inner[d.r.Intn(len(inner))])
	}
	return n
}

func (d *document) change(n *node) {
	switch {
	case d.r.Intn(4) == 0:
		n.set(scalar("null"))
	case len(n.members) > 0:
		i := d.r.Intn(len(n.members))
		n.members = slices.Delete(n.members, i, i+1)
	case n.kind == '[':
		d.resize(n)
	case n.typ != nil:
		n.set(d.value(n.typ, maxLevel-1))
	}
}

// resize gives a list a random length. The elements that it appends are copies of others, or generated.
func (d *document) resize(n *node) {
	want := []int{0, 1, 2, 3, 5, 9, 40}[d.r.Intn(7)]
	if len(n.elems) > 0 && len(n.String()) > 10_000*len(n.elems) {
		want = min(want, len(n.elems)) // long lists of long elements are slow
	}
	for len(n.elems) < want {
		switch {
		case len(n.elems) > 0 && d.r.Intn(2) == 0:
			n.elems = append(n.elems, n.elems[d.r.Intn(len(n.elems))].clone())
		case n.typ != nil && elemType(n.typ) != nil:
			n.elems = append(n.elems, d.value(elemType(n.typ), maxLevel-2))
		default:
			n.elems = append(n.elems, d.json(maxLevel-2))
		}
	}
	n.elems = n.elems[:want]
}

func nullElements(d *document, n *node) {
	for i := range n.elems {
		if d.r.Intn(2) == 0 {
			n.elems[i].set(scalar("null"))
		}
	}
}

var oddKeys = []string{
	"", "0", "-0", "+1", "01", "1.0", "1e2", " 1", "1 ", "127", "128", "-128", "-129", "255", "256", "65535", "65536",
	"2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
	"18446744073709551616", "null", "true", "a/b", "x", "0x10", "1_000", "\ufffd", "é", "2020-01-02T03:04:05Z", "10.0.0.1",
}

func strangeKey(d *document, n *node) {
	key := oddKeys[d.r.Intn(len(oddKeys))]
	name := quote(key)
	if d.r.Intn(3) == 0 {
		name = d.escape(key)
	}
	d.insert(n, name, d.value(n.typ.Elem(), maxLevel-2))
}

var oddNumbers = []string{
	"0", "-0", "-0.0", "0.0", "1.0", "1e0", "1E+0", "1e-0", "100e-2", "0e0", "0e999", "1e308", "1e309", "-1e309", "1e-400", "4.9e-324", "3.5e38", "1e39",
	"9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
	"18446744073709551615", "18446744073709551616", "123456789012345678901234567890", "0.1000000000000000055511151231257827", "1e5", "12.5",
	"01", "-01", "00", "1.", ".5", "+1", "-", "1e", "1e+", "--1", "0x1", "1_0", "1e5.5", "Infinity", "NaN", "-Infinity", "1.e3", "0.e", "- 1",
	"1.5e300", "16777217", "0.30000001192092896",
}

// edgeNumber writes a number at or beyond a limit of n's type.
func edgeNumber(d *document, n *node) {
	bits := n.typ.Bits()
	low, high := fmt.Sprint(int64(-1)<<(bits-1)), fmt.Sprint(uint64(1)<<(bits-1)-1)
	switch k := n.typ.Kind(); {
	case k >= reflect.Float32:
		n.text = []string{"3.4028235e38", "-3.4028236e38", "1e39", "1.7976931348623157e308", "1.7976931348623159e308", "-1e309", "1e-400"}[d.r.Intn(7)]
		return
	case k >= reflect.Uint:
		low, high = "0", fmt.Sprint(^uint64(0)>>(64-bits))
	}
	n.text = []string{low, high, nextNumber(high), "-" + nextNumber(low[b2i(low[0] == '-'):])}[d.r.Intn(4)]
}

func isNumeric(t reflect.Type) bool { return reflect.Int <= t.Kind() && t.Kind() <= reflect.Float64 }

// nextNumber adds one to a decimal number. No limit of an integer type ends in 9, so only the last digit changes.
func nextNumber(text string) string {
	b := []byte(text)
	b[len(b)-1]++
	return string(b)
}
