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

// A damage changes a document: its meaning, its validity, or only its spelling. It reports whether it found a
// place for the change.
type damage struct {
	name string
	do   func(d *document) bool
}

type document struct {
	generator
	root   *node
	spaces bool
}

var damages = []damage{
	{"null in place of a value", func(d *document) bool { return d.replace(scalar("null")) }},
	{"an empty value", func(d *document) bool {
		return d.replace(parse([]byte([]string{`{}`, `[]`, `""`, `0`, `false`}[d.r.Intn(5)]), nil))
	}},
	{"a value of another kind", func(d *document) bool { return d.replace(d.json(maxLevel - 3)) }},
	{"a value quoted or unquoted", requote},
	{"a value in its own spelling", respell},
	{"two values swapped", swapValues},
	{"an unknown member", addUnknown},
	{"a member of the type added", addKnown},
	{"a member dropped", dropMember},
	{"members shuffled", shuffleMembers},
	{"a name in other case", func(d *document) bool { return d.rename(otherCase) }},
	{"a name with a letter changed", func(d *document) bool { return d.rename(d.almost) }},
	{"a name with needless escapes", func(d *document) bool {
		return d.respellName(func(name string) string { return d.escape(unquote(name)) })
	}},
	{"a broken character in a name", func(d *document) bool { return d.respellName(d.insertOdd) }},
	{"a name twice, same value", duplicateSame},
	{"a name twice, another value", duplicateOther},
	{"a name twice, null or empty", duplicateEmpty},
	{"a list three times, other lengths", duplicateLists},
	{"a name twice, spelled otherwise", duplicateSpelling},
	{"null elements", nullElements},
	{"more or fewer elements", resizeList},
	{"a map key of another kind", strangeKey},
	{"an odd number", oddNumber},
	{"a number at the edge of its type", edgeNumber},
	{"a string with needless escapes", func(d *document) bool {
		return d.respellString(func(text string) string { return d.escape(unquote(text)) })
	}},
	{"a broken character in a string", func(d *document) bool { return d.respellString(d.insertOdd) }},
	{"base64 with line ends or bad padding", oddBase64},
	{"deep nesting", nestDeep},
	{"white space", func(d *document) bool { d.spaces = true; return true }},
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

func withMembers(n *node) bool { return len(n.members) > 0 }

func (d *document) replace(value *node) bool {
	d.pick(anyNode).set(value)
	return true
}

func requote(d *document) bool {
	n := d.pick(func(n *node) bool { return n.kind == 0 })
	if n == nil {
		return false
	}
	if n.isString() && d.r.Intn(2) == 0 {
		n.text = unquote(n.text)
	} else {
		n.text = quote(n.text)
	}
	return true
}

func respell(d *document) bool {
	n := d.pick(func(n *node) bool { _, ok := spellings[n.typ]; return ok })
	if n == nil {
		return false
	}
	s := spellings[n.typ]
	list := slices.Concat(s.good, s.bad)
	n.set(parse([]byte(list[d.r.Intn(len(list))]), nil))
	return true
}

func swapValues(d *document) bool {
	a, b := d.pick(anyNode), d.pick(anyNode)
	one, two := a.clone(), b.clone()
	a.set(two)
	b.set(one)
	return true
}

func isObject(n *node) bool { return n.kind == '{' }

func addUnknown(d *document) bool {
	n := d.pick(isObject)
	if n == nil {
		return false
	}
	d.insert(n, member{quote("zz" + d.string()), d.json(1)})
	return true
}

func (d *document) insert(n *node, m member) {
	n.members = slices.Insert(n.members, d.r.Intn(len(n.members)+1), m)
}

func addKnown(d *document) bool {
	n := d.pick(func(n *node) bool {
		return n.kind == '{' && n.typ != nil && n.typ.Kind() == reflect.Struct && n.typ.NumField() > 0
	})
	if n == nil {
		return false
	}
	fields := fieldsOf(n.typ)
	if len(fields) == 0 {
		return false
	}
	f := fields[d.r.Intn(len(fields))]
	value := d.field(f, maxLevel-3)
	if d.r.Intn(8) == 0 {
		value = d.json(maxLevel - 3)
	}
	d.insert(n, member{quote(f.name), value})
	return true
}

func dropMember(d *document) bool {
	n := d.pick(withMembers)
	if n == nil {
		return false
	}
	i := d.r.Intn(len(n.members))
	n.members = slices.Delete(n.members, i, i+1)
	return true
}

func shuffleMembers(d *document) bool {
	d.root.visit(func(n *node) {
		d.r.Shuffle(len(n.members), func(i, j int) { n.members[i], n.members[j] = n.members[j], n.members[i] })
	})
	return true
}

// respellName changes the spelling of a name. rename changes the name.
func (d *document) respellName(change func(name string) string) bool {
	n := d.pick(withMembers)
	if n == nil {
		return false
	}
	m := &n.members[d.r.Intn(len(n.members))]
	m.name = change(m.name)
	return true
}

func (d *document) rename(change func(name string) string) bool {
	return d.respellName(func(name string) string { return quote(change(unquote(name))) })
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

func (d *document) respellString(change func(text string) string) bool {
	n := d.pick((*node).isString)
	if n == nil {
		return false
	}
	n.text = change(n.text)
	return true
}

func oddBase64(d *document) bool {
	n := d.pick(func(n *node) bool { return isBytes(n.typ) })
	if n == nil {
		return false
	}
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
	return true
}

// The added depth does not always reach the limit: it depends on the depth of the chosen place.
func nestDeep(d *document) bool {
	depth := []int{50, 200, 9990, 9999, 10000, 10001}[d.r.Intn(6)]
	inner := []string{"", "1", "null", `"x"`, "{}"}[d.r.Intn(5)]
	text := strings.Repeat("[", depth) + inner + strings.Repeat("]", depth)
	if d.r.Intn(2) == 0 {
		name := []string{`{"a":`, `{"left":`, `{"items":`}[d.r.Intn(3)]
		text = strings.Repeat(name, depth) + inner + "1"[:b2i(inner == "")] + strings.Repeat("}", depth)
	}
	value := scalar(text)
	if n := d.pick(isObject); n != nil && d.r.Intn(2) == 0 {
		d.insert(n, member{`"zzDeep"`, value})
	} else {
		d.pick(anyNode).set(value)
	}
	return true
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func random(seed int64) *rand.Rand { return rand.New(rand.NewSource(seed)) }
