// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"bytes"
	"math/rand"
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// A Case is a document and the type that it is decoded into. Its seed determines both.
type Case struct {
	Seed   int64
	Type   reflect.Type
	Doc    []byte
	Damage []string // the changes that were made to the document
}

// NewCase generates a case from a seed. Consecutive seeds use different types. To reach every type, use slightly more
// consecutive seeds than there are types.
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
	if c.Type == reflect.TypeFor[podView]() && r.Intn(2) == 0 {
		from = reflect.TypeFor[corev1.Pod]()
	}
	d := &document{generator: generator{r}, root: generator{r}.value(from, 0)}
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
const randomPeriod = 20

func typeOf(seed int64, r *rand.Rand) reflect.Type {
	number := int(uint64(seed) >> 1)
	if seed&1 == 0 {
		return builtin()[number%len(builtin())]
	}
	if r.Intn(2) == 0 {
		return randomType(int64(number / randomPeriod))
	}
	odd := oddTypes()
	return odd[number%len(odd)]
}
