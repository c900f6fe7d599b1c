// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// same reports whether two values are equal. Where one encoder wrote both they are if their
// bytes are; where they may be spelt in several ways both have a hash.
func same(x, y *node) bool {
	return x.hash == y.hash && (bytes.Equal(x.raw, y.raw) || x.hash != 0 && equal(x, y))
}

// equal compares values of different bytes by what RFC 6902 calls equal in section 4.6: neither
// the order of members, nor white space, nor escapes count, and numbers are equal as numbers.
func equal(x, y *node) bool {
	kind := x.kind()
	if kind != y.kind() {
		return false
	}
	switch kind {
	case jsonraw.Object:
		p, q := x.members(), y.members()
		for i := range min(len(p), len(q)) {
			if !bytes.Equal(p[i].name, q[i].name) || !same(&p[i].node, &q[i].node) {
				return false
			}
		}
		return len(p) == len(q)
	case jsonraw.Array:
		p, q := x.elems(), y.elems()
		for i := range min(len(p), len(q)) {
			if !same(&p[i], &q[i]) {
				return false
			}
		}
		return len(p) == len(q)
	case jsonraw.String, jsonraw.Number:
		return bytes.Equal(plainScalar(x), plainScalar(y))
	}
	return false // null, true and false have one spelling each
}

var hashSeed = maphash.MakeSeed()

// hashOf returns the hash of a value that may be spelt in several ways. It decides nothing but
// where to look: whether values are equal is for same.
func hashOf(n *node) uint64 {
	h := uint64(n.kind())
	switch n.kind() {
	case jsonraw.Object:
		for _, m := range n.members() {
			h = mix(mix(h, maphash.Bytes(hashSeed, m.name)), m.hash)
		}
	case jsonraw.Array:
		for _, elem := range n.elems() {
			h = mix(h, elem.hash)
		}
	default:
		h = mix(h, maphash.Bytes(hashSeed, plainScalar(n)))
	}
	return h | 1
}

func mix(h, x uint64) uint64 {
	h = (h ^ x) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// plainScalar writes a scalar in the one way that all spellings of it share.
func plainScalar(n *node) []byte {
	switch n.kind() {
	case jsonraw.String:
		c := jsonraw.At(n.raw, 0, 0)
		text, _ := c.TextBytes() // it was checked
		return text
	case jsonraw.Number:
		return plainNumber(n.raw)
	}
	return n.raw
}

// plainNumber writes a number as its digits, without zeros at either end, and a power of ten.
// It is exact: no number is too large or too long, but for one whose exponent does not fit an
// int32, which is equal only to itself in the same spelling.
func plainNumber(raw []byte) []byte {
	unsigned, negative := bytes.CutPrefix(raw, []byte("-"))
	digits, power, exponent := unsigned, 0, unsigned[len(unsigned):]
	if i := bytes.IndexAny(unsigned, "eE"); i >= 0 {
		digits, exponent = unsigned[:i], unsigned[i+1:]
	}
	if whole, fraction, found := bytes.Cut(digits, []byte(".")); found {
		digits, power = slices.Concat(whole, fraction), -len(fraction)
	}
	digits = bytes.TrimLeft(digits, "0")
	power += len(digits)
	digits = bytes.TrimRight(digits, "0")
	power -= len(digits)
	if len(digits) == 0 {
		return []byte("0") // and so is -0
	}
	if len(exponent) > 0 {
		n, err := strconv.ParseInt(string(exponent), 10, 32)
		if err != nil {
			return raw
		}
		power += int(n)
	}
	plain := make([]byte, 0, len(digits)+12)
	if negative {
		plain = append(plain, '-')
	}
	plain = append(plain, digits...)
	return strconv.AppendInt(append(plain, 'e'), int64(power), 10)
}

// A numbering gives equal values equal numbers, from 0 in the order in which they come.
type numbering struct {
	newest map[uint64]int // of each hash the last value
	values []*node
	older  []int // of each value the one before with its hash, or none
}

func newNumbering(n int) *numbering {
	return &numbering{newest: make(map[uint64]int, n), values: make([]*node, 0, n), older: make([]int, 0, n)}
}

// number returns the number of the value, a new one if it is new.
func (t *numbering) number(n *node) int {
	hash := hashIn(n)
	if k := t.search(n, hash); k != none {
		return k
	}
	newest, found := t.newest[hash]
	if !found {
		newest = none
	}
	t.newest[hash] = len(t.values)
	t.values = append(t.values, n)
	t.older = append(t.older, newest)
	return len(t.values) - 1
}

// find returns the number of the value, or none.
func (t *numbering) find(n *node) int { return t.search(n, hashIn(n)) }

func (t *numbering) search(n *node, hash uint64) int {
	k, found := t.newest[hash]
	if !found {
		return none
	}
	for k != none && !same(t.values[k], n) {
		k = t.older[k]
	}
	return k
}

func hashIn(n *node) uint64 {
	if n.hash != 0 {
		return n.hash
	}
	return maphash.Bytes(hashSeed, n.raw)
}
