// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"encoding/base64"
	"fmt"
	"math/rand"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A generator generates JSON for a Go type. Unlike an encoder, it also generates spellings that decode into the type
// but that an encoder never produces, duplicate members, and values for types that cannot be encoded.
type generator struct{ r *rand.Rand }

const maxLevel = 7

// value returns JSON that is likely to decode into a value of type t.
func (g generator) value(t reflect.Type, level int) *node {
	if t == nil {
		return g.json(level)
	}
	if t.Kind() == reflect.Pointer && g.r.Intn(12) == 0 {
		return scalar("null")
	}
	t = indirect(t)
	n := g.valueOf(t, level)
	n.typ = t
	return n
}

func (g generator) valueOf(t reflect.Type, level int) *node {
	if s, ok := spellings[t]; ok {
		return s.pick(g.r)
	}
	switch {
	case unmarshalsJSON(t):
		if t.Kind() == reflect.Struct && level < maxLevel && g.r.Intn(2) == 0 {
			return g.object(t, level)
		}
		return g.json(level)
	case unmarshalsText(t):
		return textNode(g.string())
	case isBytes(t) && g.r.Intn(8) > 0:
		text := base64.StdEncoding.EncodeToString([]byte(g.string()))
		if g.r.Intn(8) == 0 {
			text = text[:len(text)/2] + "\r\n" + text[len(text)/2:] + "\n" // a line break, as in MIME
		}
		return textNode(text)
	}
	switch t.Kind() {
	case reflect.Struct:
		return g.object(t, level)
	case reflect.Map:
		n := &node{kind: '{'}
		for range g.length(level) {
			n.members = append(n.members, member{quote(g.key(t.Key())), g.value(t.Elem(), level+1)})
		}
		return n
	case reflect.Slice:
		return g.list(t.Elem(), g.length(level), level)
	case reflect.Array:
		return g.list(t.Elem(), max(0, t.Len()+[]int{-1, 0, 0, 0, 1}[g.r.Intn(5)]), level)
	default:
		return g.scalar(t, level)
	}
}

func (g generator) length(level int) int {
	if level >= maxLevel {
		return 0
	}
	return g.r.Intn(4)
}

func (g generator) object(t reflect.Type, level int) *node {
	n := &node{kind: '{'}
	share := 1 + g.r.Intn(4)
	for _, f := range fieldsOf(t) {
		if g.r.Intn(4) >= share || level >= maxLevel {
			continue
		}
		n.members = append(n.members, member{quote(f.name), g.field(f, level+1)})
	}
	return n
}

func (g generator) field(f field, level int) *node {
	value := g.value(f.typ, level)
	if f.quoted && value.kind == 0 && value.text != "null" {
		value.text = quote(value.text)
	}
	return value
}

func (g generator) list(elem reflect.Type, length, level int) *node {
	n := &node{kind: '['}
	for range length {
		n.elems = append(n.elems, g.value(elem, level+1))
	}
	return n
}

func (g generator) scalar(t reflect.Type, level int) *node {
	switch t.Kind() {
	case reflect.Bool:
		return scalar(strconv.FormatBool(g.r.Intn(2) == 0))
	case reflect.String:
		return textNode(g.string())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return scalar(strconv.FormatInt(int64(g.bits())>>(64-t.Bits()), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return scalar(strconv.FormatUint(g.bits()>>(64-t.Bits()), 10))
	case reflect.Float32, reflect.Float64:
		return scalar([]string{"0", "1.5", "-0.25", "3e2", "1E-3", "12345678", "-0", "0.1", "16777217"}[g.r.Intn(9)])
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return g.json(level)
		}
	}
	return scalar("null") // only null decodes into other types
}

// bits returns random bits, or those of the largest or smallest int64.
func (g generator) bits() uint64 {
	switch g.r.Intn(4) {
	case 0:
		return 1<<63 - 1
	case 1:
		return 1 << 63
	default:
		return g.r.Uint64()
	}
}

func (g generator) key(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return fmt.Sprintf("20%02d-01-02T03:04:05Z", g.r.Intn(50))
	case t == reflect.TypeFor[netip.Addr]():
		return fmt.Sprintf("10.0.0.%d", g.r.Intn(9))
	case t == reflect.TypeFor[textKey]():
		return "g/" + g.string()
	case t.Kind() == reflect.String:
		return g.string()
	}
	return strconv.Itoa(g.r.Intn(20)) // fits any integer type
}

// json returns random JSON.
func (g generator) json(level int) *node {
	kind := g.r.Intn(9)
	switch {
	case kind == 0:
		return scalar("null")
	case kind == 1:
		return scalar(strconv.FormatBool(g.r.Intn(2) == 0))
	case kind == 2:
		return scalar(strconv.FormatInt(int64(g.r.Uint64())>>g.r.Intn(60), 10))
	case kind == 3:
		return scalar([]string{"0.5", "-0", "1e3", "1.0", "-1.25e-7", "9223372036854775808", "1E+2"}[g.r.Intn(7)])
	case kind < 6 || level >= maxLevel:
		return textNode(g.string())
	case kind < 8:
		n := &node{kind: '{'}
		for range g.r.Intn(4) {
			n.members = append(n.members, member{quote(g.string()), g.json(level + 2)})
		}
		return n
	}
	n := &node{kind: '['}
	for range g.r.Intn(4) {
		n.elems = append(n.elems, g.json(level+2))
	}
	return n
}

// oddStrings are strings that look like another value, or that need an escape.
var oddStrings = []string{
	"", "null", "true", "0", "-1", "1.5", "{}", "[]", `"`, `\`, "a/b", "<b>&", "é", "€", "😀", "日本語", "\u2028", "\x00", "\x7f",
	"a\nb\tc\r", " ", "\ufffd", "name", strings.Repeat("x", 70), strings.Repeat("é", 40), "aGk=", "9", strings.Repeat("long ", 60), strings.Repeat("<&>\n", 400),
}

func (g generator) string() string {
	if g.r.Intn(4) == 0 {
		return oddStrings[g.r.Intn(len(oddStrings))]
	}
	b := make([]byte, 1+g.r.Intn(12))
	for i := range b {
		b[i] = "abcdefgh-./A0"[g.r.Intn(13)]
	}
	return string(b)
}
