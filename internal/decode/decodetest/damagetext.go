// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"bytes"
	"math/rand"
	"slices"
)

// A textDamage changes the bytes of a document, which may then be invalid.
type textDamage struct {
	name string
	do   func(r *rand.Rand, doc []byte) []byte
}

var textDamages = []textDamage{
	{"cut off", func(r *rand.Rand, doc []byte) []byte { return doc[:r.Intn(len(doc)+1)] }},
	{"cut off near the end", func(r *rand.Rand, doc []byte) []byte { return doc[:len(doc)-min(len(doc), 1+r.Intn(3))] }},
	{"bits flipped", flipBits},
	{"a byte replaced", func(r *rand.Rand, doc []byte) []byte {
		if len(doc) > 0 {
			doc[r.Intn(len(doc))] = oddByte(r)
		}
		return doc
	}},
	{"a byte inserted", func(r *rand.Rand, doc []byte) []byte {
		return slices.Insert(doc, r.Intn(len(doc)+1), oddByte(r))
	}},
	{"bytes removed", func(r *rand.Rand, doc []byte) []byte {
		from, to := span(r, doc)
		return slices.Delete(doc, from, to)
	}},
	{"bytes repeated", func(r *rand.Rand, doc []byte) []byte {
		from, to := span(r, doc)
		return slices.Insert(doc, from, bytes.Clone(doc[from:to])...)
	}},
	{"a literal misspelled", misspell},
	{"bytes after the end", func(r *rand.Rand, doc []byte) []byte {
		return append(doc, []string{" ", "\n", "\x00", "{}", "null", ",", "}", "]", "//", "\v", "\u00a0", "1", `"`}[r.Intn(13)]...)
	}},
	{"bytes before the start", func(r *rand.Rand, doc []byte) []byte {
		return append([]byte([]string{" ", "\r\n\t ", "\ufeff", "\x00", ",", "[", "\v", "\f", "/**/"}[r.Intn(9)]), doc...)
	}},
	{"nothing left", func(r *rand.Rand, _ []byte) []byte {
		return []byte([]string{"", " ", "\n", "null", "{}", "[]", "0", `""`, "true", " null "}[r.Intn(10)])
	}},
}

func oddByte(r *rand.Rand) byte {
	if r.Intn(3) == 0 {
		return byte(r.Intn(256))
	}
	const odd = "{}[]\",:\\/0123456789eE+-.tfnul \n\x00\x1f\x7f\xff'"
	return odd[r.Intn(len(odd))]
}

func span(r *rand.Rand, doc []byte) (from, to int) {
	from = r.Intn(len(doc) + 1)
	return from, min(len(doc), from+1+r.Intn(8))
}

func flipBits(r *rand.Rand, doc []byte) []byte {
	for range 1 + r.Intn(3) {
		if len(doc) > 0 {
			doc[r.Intn(len(doc))] ^= 1 << r.Intn(8)
		}
	}
	return doc
}

func misspell(r *rand.Rand, doc []byte) []byte {
	right := []string{"null", "true", "false"}[r.Intn(3)]
	wrong := []string{"nul", "nulll", "Null", "tru", "True", "fals", "falsee", "undefined", "nil", "n", "NULL", "truefalse"}[r.Intn(12)]
	return bytes.Replace(doc, []byte(right), []byte(wrong), 1)
}
