// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Sown is a field that Unknown put into an object.
type Sown struct {
	// Path is the path of the field. Its name is unique in the object, so it can be found after it was moved.
	// The earlier steps identify list elements by their keys.
	Path tree.Path
	// Value is a text, or a number that does not fit a float64. It is unique in the object.
	Value any
}

// Name is the name of the field.
func (s Sown) Name() string { return s.Path.Last() }

// unknownPrefix begins the name of each unknown field.
const unknownPrefix = "sownField"

// Unknown adds fields to obj that no type has: at its top, in spec, in the spec of a Pod template, and in some
// elements of lists. Their names and values are unique. It returns the fields in the order of their paths. It
// changes obj.
func (s *Schema) Unknown(r *rand.Rand, obj map[string]any) []Sown {
	w := sower{r: r, start: r.Int64N(1 << 20)}
	w.object(s.root, obj, 1)
	values := map[string]any{}
	for i := range w.n {
		name := unknownPrefix + strconv.FormatInt(w.start+i, 10)
		values[name] = w.value(i)
	}
	var out []Sown
	// The paths are computed last, because an element without keys is identified by its whole value.
	tree.Leaves(obj, func(p tree.Path, _ any) {
		if v, ok := values[p.Last()]; ok && !p[len(p)-1].Element {
			out = append(out, Sown{Path: slices.Clone(p), Value: v})
		}
	})
	return out
}

type sower struct {
	r        *rand.Rand
	start, n int64
}

// aboveFloat is the first whole number that does not fit a float64.
const aboveFloat = 1<<53 + 1

func (w *sower) value(i int64) any {
	if i%3 == 2 {
		return aboveFloat + 2*(w.start+i)
	}
	return "sown-" + strconv.FormatInt(w.start+i, 10)
}

// The probabilities that an object gets a field.
const (
	inElement = 0.4
	inMember  = 0.1
)

// object visits the objects with declared members. Maps have no unknown members.
func (w *sower) object(n *node, o object, chance float64) {
	if n == nil || n.sort != objectSort {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		inner := n.member(name)
		switch v := o[name].(type) {
		case object:
			switch {
			case name == "spec":
				w.object(inner, v, 1)
			case inner != nil && inner.typ == reflect.TypeFor[metav1.ObjectMeta]():
				w.object(inner, v, 0) // the API server itself reads metadata
			default:
				w.object(inner, v, inMember)
			}
		case []any:
			w.list(inner, v)
		}
	}
	if w.r.Float64() < chance {
		o[unknownPrefix+strconv.FormatInt(w.start+w.n, 10)] = w.value(w.n)
		w.n++
	}
}

func (w *sower) list(n *node, list []any) {
	if n == nil || n.collection == Set {
		return
	}
	for _, e := range list {
		if o, ok := e.(object); ok {
			w.object(n.elem, o, inElement)
		}
	}
}
