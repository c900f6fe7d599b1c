// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"encoding/base64"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// A damage changes one value of a document. It changes the meaning, the validity or only the spelling of the document.
type damage struct {
	name string
	fits func(n *node) bool // whether the damage can change n
	do   func(d *document, n *node)
}

type document struct {
	generator
	root   *node
	spaces bool
}

var damages = []damage{
	{"null in place of a value", anyNode, func(_ *document, n *node) { n.set(scalar("null")) }},
	{"an empty value", anyNode, func(d *document, n *node) {
		n.set(parse([]byte([]string{`{}`, `[]`, `""`, `0`, `false`}[d.r.Intn(5)]), nil))
	}},
	{"a value of another kind", anyNode, func(d *document, n *node) { n.set(d.json(maxLevel - 3)) }},
	{"a value quoted or unquoted", func(n *node) bool { return n.kind == 0 }, requote},
	{"a value in its own spelling", func(n *node) bool { _, ok := spellings[n.typ]; return ok }, respell},
	{"two values swapped", anyNode, swapValues},
	{"an unknown member", isObject, func(d *document, n *node) { d.insert(n, quote("zz"+d.string()), d.json(1)) }},
	{"a member of the type added", hasFields, addKnown},
	{"a member dropped", hasMembers, dropMember},
	{"members shuffled", anyNode, shuffleMembers},
	{"a name in other case", hasMembers, func(d *document, n *node) { d.rename(n, otherCase) }},
	{"a name with a letter changed", hasMembers, func(d *document, n *node) { d.rename(n, d.almost) }},
	{"a name with needless escapes", hasMembers, func(d *document, n *node) {
		m := d.member(n)
		m.name = d.escape(unquote(m.name))
	}},
	{"a broken character in a name", hasMembers, func(d *document, n *node) {
		m := d.member(n)
		m.name = d.insertOdd(m.name)
	}},
	{"a name twice, same value", hasMembers, func(d *document, n *node) {
		m := d.member(n)
		d.insert(n, m.name, m.value.clone())
	}},
	{"a name twice, another value", hasMembers, duplicateOther},
	{"a name twice, null or empty", hasMembers, duplicateEmpty},
	{"a list three times, other lengths", hasFullList, duplicateLists},
	{"a name twice, spelled otherwise", hasMembers, duplicateSpelling},
	{"null elements", func(n *node) bool { return len(n.elems) > 0 }, nullElements},
	{"more or fewer elements", func(n *node) bool { return n.kind == '[' }, (*document).resize},
	{"a map key of another kind", func(n *node) bool {
		return isObject(n) && n.typ != nil && n.typ.Kind() == reflect.Map
	}, strangeKey},
	{"an odd number", (*node).isNumber, func(d *document, n *node) { n.text = oddNumbers[d.r.Intn(len(oddNumbers))] }},
	{"a number at the edge of its type", func(n *node) bool {
		return n.isNumber() && n.typ != nil && isNumeric(n.typ)
	}, edgeNumber},
	{"a string with needless escapes", (*node).isString, func(d *document, n *node) { n.text = d.escape(unquote(n.text)) }},
	{"a broken character in a string", (*node).isString, func(d *document, n *node) { n.text = d.insertOdd(n.text) }},
	{"base64 with line ends or bad padding", func(n *node) bool { return isBytes(n.typ) }, oddBase64},
	{"deep nesting", anyNode, nestDeep},
	{"white space", anyNode, func(d *document, _ *node) { d.spaces = true }},
}

// apply changes a random value that the damage can change. It reports whether there is one.
func (d *document) apply(damage damage) bool {
	n := d.pick(damage.fits)
	if n == nil {
		return false
	}
	damage.do(d, n)
	return true
}

// pick returns a random value for which fits returns true, or nil.
func (d *document) pick(fits func(*node) bool) *node {
	var found []*node
	d.root.visit(func(n *node) {
		if fits(n) {
			found = append(found, n)
		}
	})
	if len(found) == 0 {
		return nil
	}
	return found[d.r.Intn(len(found))]
}

func anyNode(*node) bool { return true }

func isObject(n *node) bool { return n.kind == '{' }

func hasMembers(n *node) bool { return len(n.members) > 0 }

func hasFields(n *node) bool {
	return isObject(n) && n.typ != nil && n.typ.Kind() == reflect.Struct && len(fieldsOf(n.typ)) > 0
}

// member returns a random member of an object.
func (d *document) member(n *node) *member { return &n.members[d.r.Intn(len(n.members))] }

func (d *document) insert(n *node, name string, value *node) {
	n.members = slices.Insert(n.members, d.r.Intn(len(n.members)+1), member{name, value})
}

func requote(d *document, n *node) {
	if n.isString() && d.r.Intn(2) == 0 {
		n.text = unquote(n.text)
	} else {
		n.text = quote(n.text)
	}
}

func respell(d *document, n *node) {
	s := spellings[n.typ]
	list := slices.Concat(s.good, s.bad)
	n.set(parse([]byte(list[d.r.Intn(len(list))]), nil))
}

func swapValues(d *document, a *node) {
	b := d.pick(anyNode)
	one, two := a.clone(), b.clone()
	a.set(two)
	b.set(one)
}

func addKnown(d *document, n *node) {
	fields := fieldsOf(n.typ)
	f := fields[d.r.Intn(len(fields))]
	value := d.field(f, maxLevel-3)
	if d.r.Intn(8) == 0 {
		value = d.json(maxLevel - 3)
	}
	d.insert(n, quote(f.name), value)
}

func dropMember(d *document, n *node) {
	i := d.r.Intn(len(n.members))
	n.members = slices.Delete(n.members, i, i+1)
}

func shuffleMembers(d *document, _ *node) {
	d.root.visit(func(n *node) {
		d.r.Shuffle(len(n.members), func(i, j int) { n.members[i], n.members[j] = n.members[j], n.members[i] })
	})
}

func (d *document) rename(n *node, change func(name string) string) {
	m := d.member(n)
	m.name = quote(change(unquote(m.name)))
}

func otherCase(name string) string {
	for i, c := range name {
		if unicode.IsLower(c) {
			return name[:i] + string(unicode.ToUpper(c)) + name[i+len(string(c)):]
		}
	}
	// The two characters fold to the letters that they replace.
	return strings.NewReplacer("K", "\u212a", "S", "\u017f").Replace(strings.ToLower(name) + "K")
}

func (d *document) almost(name string) string {
	b := []byte(name)
	i := d.r.Intn(len(b) + 1)
	switch d.r.Intn(4) {
	case 0:
		b = slices.Insert(b, i, "axs\x00 "[d.r.Intn(5)])
	case 1:
		b = b[:i]
	case 2:
		b = append(b, b[i:]...)
	default:
		if i < len(b) {
			b[i] ^= 1
		}
	}
	return string(b)
}

// escape writes a string with needless \u escapes.
func (d *document) escape(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c < 1<<16 && (d.r.Intn(3) == 0 || c < ' ' || c == '"' || c == '\\'):
			fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[d.r.Intn(2)], c)
		case c >= 1<<16 && d.r.Intn(2) == 0:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(c-1<<16)>>10, 0xdc00+(c-1<<16)&0x3ff)
		case c == '/':
			b.WriteString(`\/`)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

var oddParts = []string{
	"\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc0\xaf", "\xf0\x9f\x98", "\x80", "\ufffd", "\ufeff", "\u2028", "😀",
	`\ud800`, `\udc00`, `\ud800\ud800`, `\udc00\ud800`, `\ud83d\u0041`, `\ud83d\ude00`, `\uD83DA`, `\ud83d\n`, `\ud83d\\`, `\uffff`, `\u0000`,
	"\x00", "\x01", "\n", "\t", "\x1f", "\x7f", `\n`, `\b\f\r\t\"\\\/`, `\'`, `\x41`, `\a`, `\u12`, `\u12g4`, `\`, `\U00e9`, `"`, `\u`, `\ud83d\u`,
	strings.Repeat("\xff", 20), `\u0022`, `\u005c`, `\u00/0`, `\u00:0`, `\u00@0`, `\u00G0`, "\\u00`0", `\u-001`, `\u+001`, `\u0x1f`, `\u00_1`,
}

func (d *document) insertOdd(text string) string {
	if len(text) < 2 {
		return text
	}
	i := 1 + d.r.Intn(len(text)-1)
	return text[:i] + oddParts[d.r.Intn(len(oddParts))] + text[i:]
}

func oddBase64(d *document, n *node) {
	text := base64.StdEncoding.EncodeToString([]byte(d.string()))
	if n.isString() {
		text = unquote(n.text)
	}
	i := d.r.Intn(len(text) + 1)
	odd := []string{"\r\n", "\n", "\r"}[d.r.Intn(3)]
	if d.r.Intn(3) == 0 {
		odd = []string{"=", "==", " ", "-", "_", "A", "A===", "\t", "é", "\\n"}[d.r.Intn(10)]
	}
	n.set(textNode([]string{text[:i] + odd + text[i:], text + odd, odd + text, strings.TrimRight(text, "="), odd}[d.r.Intn(5)]))
}

// nestDeep puts a deeply nested value in place of n, or adds it to n. Whether the document then exceeds the maximum
// depth of 10,000 also depends on the depth of n.
func nestDeep(d *document, n *node) {
	depth := []int{50, 200, 9990, 9999, 10000, 10001}[d.r.Intn(6)]
	inner := []string{"", "1", "null", `"x"`, "{}"}[d.r.Intn(5)]
	text := strings.Repeat("[", depth) + inner + strings.Repeat("]", depth)
	if d.r.Intn(2) == 0 {
		name := []string{`{"a":`, `{"left":`, `{"items":`}[d.r.Intn(3)]
		text = strings.Repeat(name, depth) + inner + "1"[:b2i(inner == "")] + strings.Repeat("}", depth)
	}
	if isObject(n) && d.r.Intn(2) == 0 {
		d.insert(n, `"zzDeep"`, scalar(text))
	} else {
		n.set(scalar(text))
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func random(seed int64) *rand.Rand { return rand.New(rand.NewSource(seed)) }
