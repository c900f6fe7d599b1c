// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"bytes"
	"math/rand"
	"reflect"
)

// A Case is a document and the type that it is decoded into. Its seed determines both.
type Case struct {
	Seed   int64
	Type   reflect.Type
	Doc    []byte
	Damage []string // what was done to the document
}

// NewCase generates a case from a seed. Consecutive seeds use different types. Slightly more seeds than there are
// types reach all types.
func NewCase(seed int64) Case {
	r := random(seed)
	c := Case{Seed: seed, Type: typeOf(seed, r)}
	from := c.Type
	switch r.Intn(40) {
	case 0: // a document for another type
		from = Types()[r.Intn(len(Types()))]
		c.Damage = append(c.Damage, "made for "+from.String())
	case 1:
		from = nil
		c.Damage = append(c.Damage, "made for no type")
	}
	if source := sources[c.Type]; source != nil && r.Intn(2) == 0 {
		from = source
	}
	d := &document{generator: generator{r}, root: wellFormed(from, r)}
	d.root.annotate(c.Type)
	count := r.Intn(4)
	for range count {
		if kind := r.Intn(len(damages) + 3); kind < len(damages) && d.apply(damages[kind]) {
			c.Damage = append(c.Damage, damages[kind].name)
		}
	}
	c.Doc = d.bytes()
	if len(c.Damage) < 3 && r.Intn(6) == 0 {
		kind := textDamages[r.Intn(len(textDamages))]
		c.Doc = kind.do(r, c.Doc)
		c.Damage = append(c.Damage, kind.name)
	}
	return c
}

func (d *document) bytes() []byte {
	var w writer
	if d.spaces {
		w.r = d.r
	}
	w.write(d.root)
	return bytes.Clone(w.Bytes())
}

// randomPeriod is the number of cases per generated type. It limits the number of types, because
// the decoders cache every type forever.
const randomPeriod = 60

func typeOf(seed int64, r *rand.Rand) reflect.Type {
	number := int(uint64(seed) >> 1)
	if seed&1 == 0 {
		return builtin()[number%len(builtin())]
	}
	if r.Intn(3) == 0 {
		return randomType(int64(number / randomPeriod))
	}
	odd := oddTypes()
	return odd[number%len(odd)]
}

// wellFormed returns a valid document: the encoding of a filled value, or generated JSON.
func wellFormed(t reflect.Type, r *rand.Rand) *node {
	if t != nil && r.Intn(3) > 0 {
		if text := filled(t, r); text != nil {
			return parse(text, t)
		}
	}
	return generator{r}.value(t, 0)
}
