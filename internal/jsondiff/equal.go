// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// same reports whether two values are equal. Values from one encoder have no hash and are equal if their
// bytes are. Values that may be spelt in several ways have a hash.
func same(x, y *node) bool {
	return x.hash == y.hash && (bytes.Equal(x.raw, y.raw) || x.hash != 0 && equal(x, y))
}

// equal compares values with different bytes as RFC 6902 section 4.6 defines equality: the order of members,
// white space and escapes do not count, and numbers are compared by value.
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

func mix(h, x uint64) uint64 {
	h = (h ^ x) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// plainScalar returns the canonical spelling of a scalar.
func plainScalar(n *node) []byte {
	switch n.kind() {
	case jsonraw.String:
		c := jsonraw.At(n.raw, 0, 0)
		text, _ := c.TextBytes() // cannot fail: the text was checked
		return text
	case jsonraw.Number:
		return plainNumber(n.raw)
	}
	return n.raw
}

// plainNumber returns a number's digits, without zeros at either end, and a power of ten. It is exact for
// every number whose exponent fits an int32. A number with a larger exponent is returned as it is spelt.
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
		return []byte("0") // also for -0
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

// A numbering numbers values from 0 in order of arrival. Equal values get equal numbers.
type numbering struct {
	newest map[uint64]int // by hash: the number of the last value with the hash
	values []*node
	older  []int // by value: the previous value with the same hash, or none
}

func newNumbering(n int) *numbering {
	return &numbering{newest: make(map[uint64]int, n), values: make([]*node, 0, n), older: make([]int, 0, n)}
}

// number returns the value's number and assigns the next one to a new value.
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

// find returns the value's number, or none.
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

// hashOf returns the hash of a value that may be spelt in several ways. Equal values have equal hashes;
// the reverse need not hold, so same compares the values too.
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
