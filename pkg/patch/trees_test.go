// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"math/big"
	"math/rand"
	"slices"
	"strings"
)

func writeTree(n *tree, s style) []byte {
	var b bytes.Buffer
	s.write(&b, n)
	return b.Bytes()
}

// equalValue compares two values as section 4.6 of RFC 6902 defines equality.
func (n *tree) equalValue(o *tree) bool {
	if n.kind != o.kind || len(n.kids) != len(o.kids) {
		return false
	}
	for name, kid := range n.kids {
		if other := o.kids[name]; other == nil || !kid.equalValue(other) {
			return false
		}
	}
	return (n.text == o.text || n.is('s') && sameNumber(n.text, o.text)) && slices.EqualFunc(n.elems, o.elems, (*tree).equalValue)
}

func sameNumber(x, y string) bool {
	digitsX, powerX, _ := strings.Cut(strings.ToLower(x), "e")
	digitsY, powerY, _ := strings.Cut(strings.ToLower(y), "e")
	powerX, powerY = strings.TrimLeft(powerX, "+-0"), strings.TrimLeft(powerY, "+-0")
	zeroX, zeroY := strings.Trim(digitsX, "-0.") == "", strings.Trim(digitsY, "-0.") == ""
	switch {
	case zeroX || zeroY:
		return zeroX && zeroY
	case len(powerX) > 5 && len(powerY) > 5:
		return true // too large to compare
	case len(powerX) > 5 || len(powerY) > 5:
		return false
	}
	p, ok := new(big.Rat).SetString(x)
	q, too := new(big.Rat).SetString(y)
	return ok && too && p.Cmp(q) == 0
}

// randomTree returns a document with few different values, so that lists have equal elements and duplicate
// keys.
func randomTree(r *rand.Rand, depth int) *tree {
	switch kind := r.Intn(10); {
	case depth > 0 && kind < 3:
		n := newObject()
		for range r.Intn(5) {
			n.set(randomName(r), randomTree(r, depth-1))
		}
		return n
	case depth > 0 && kind < 6:
		n := &tree{kind: '['}
		for range r.Intn(7) {
			n.elems = append(n.elems, randomTree(r, depth-1))
		}
		return n
	case depth > 0 && kind < 8: // a list with a merge key, unless there are duplicates
		n, key := &tree{kind: '['}, []string{"name", "type", "containerPort"}[r.Intn(3)]
		for range r.Intn(6) {
			elem := newObject()
			elem.set(key, randomTree(r, 0))
			elem.set(randomName(r), randomTree(r, depth-1))
			n.elems = append(n.elems, elem)
		}
		return n
	}
	texts := []string{"null", "true", "false", "0", "1", "1.0", "-1.50", "10e-1", "12345678901234567890", "1e400"}
	if r.Intn(2) == 0 {
		return &tree{kind: '"', text: randomName(r)}
	}
	return &tree{kind: 's', text: texts[r.Intn(len(texts))]}
}

func randomName(r *rand.Rand) string {
	return append([]string{"name", "type", "a", "b", "c"}, oddStrings...)[r.Intn(5+len(oddStrings))]
}

// editTree makes one random change in a document.
func editTree(n *tree, r *rand.Rand) {
	kids := len(n.names) + len(n.elems)
	if kids > 0 && r.Intn(3) > 0 { // edit a value inside
		if k := r.Intn(kids); k < len(n.names) {
			editTree(n.kids[n.names[k]], r)
		} else {
			editTree(n.elems[k-len(n.names)], r)
		}
		return
	}
	switch {
	case n.is('{') && r.Intn(4) > 0:
		if len(n.names) > 0 && r.Intn(2) == 0 {
			n.drop(n.names[r.Intn(len(n.names))])
		} else {
			n.set(randomName(r), randomTree(r, 2))
		}
	case n.is('[') && r.Intn(6) > 0:
		editElements(n, r)
	default:
		*n = *randomTree(r, 2)
	}
}

func editElements(n *tree, r *rand.Rand) {
	count := len(n.elems)
	i := r.Intn(count + 1)
	switch choice := r.Intn(6); {
	case choice < 2 || count == 0:
		elem := randomTree(r, 2)
		if count > 0 && r.Intn(2) == 0 {
			elem = n.elems[r.Intn(count)].clone() // the copy may be edited later
		}
		n.elems = slices.Insert(n.elems, i, elem)
	case choice == 2:
		n.elems = slices.Delete(n.elems, i%count, i%count+1)
	case choice == 3:
		slices.Reverse(n.elems)
	case choice == 4:
		r.Shuffle(count, func(i, j int) { n.elems[i], n.elems[j] = n.elems[j], n.elems[i] })
	default:
		j := r.Intn(count)
		n.elems[i%count], n.elems[j] = n.elems[j], n.elems[i%count]
	}
}
