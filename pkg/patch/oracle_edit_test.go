// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"
)

// A trace records where each list element was before the edits. Members and elements without an entry did not move.
type trace struct {
	kids  map[string]*trace
	elems []*trace
	from  int  // the original index, or -1
	fresh bool // all values below are new
}

func (t *trace) kid(name string) *trace {
	if t.kids[name] == nil {
		if t.kids == nil {
			t.kids = map[string]*trace{}
		}
		t.kids[name] = &trace{fresh: t.fresh}
	}
	return t.kids[name]
}

// list returns the traces of a list of n elements.
func (t *trace) list(n int) []*trace {
	if t.elems == nil {
		for i := range n {
			if t.elems = append(t.elems, &trace{from: i}); t.fresh {
				t.elems[i] = newTrace()
			}
		}
	}
	return t.elems
}

func newTrace() *trace { return &trace{from: -1, fresh: true} }

// renew records that the value was replaced.
func (t *trace) renew() { *t = trace{from: t.from, fresh: true} }

// An editor makes one random edit. All editors of a case prefer the same members, so that several edits often happen
// in one list.
type editor struct {
	r       *rand.Rand
	fill    *randfill.Filler
	favour  uint64
	untyped bool // edit maps and lists inside an any
	did     string
}

func (e *editor) one(n int) bool { return e.r.Intn(n) == 0 }

func (e *editor) note(at, format string, args ...any) {
	e.did = at + ": " + fmt.Sprintf(format, args...)
}

func (e *editor) fresh(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if !e.one(8) { // sometimes a zero value
		e.fill.Fill(p.Interface())
	}
	return p.Elem()
}

// clone copies a value deeply.
func clone(v reflect.Value) reflect.Value {
	p := reflect.New(v.Type())
	if err := kjson.UnmarshalCaseSensitivePreserveInts(mustEncode(v.Interface()), p.Interface()); err != nil {
		panic(err)
	}
	return p.Elem()
}

// edit changes v, or something inside it.
func (e *editor) edit(v reflect.Value, t *trace, at string) {
	switch {
	case v.Kind() == reflect.Pointer:
		e.pointer(v, t, at)
	case v.Kind() == reflect.Interface && e.untyped:
		e.anything(v, t, at)
	case (place{typ: v.Type()}).opaque():
		e.scalar(v, at)
	case v.Kind() == reflect.Struct:
		e.structure(v, t, at)
	case v.Kind() == reflect.Map:
		e.mapping(v, t, at)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		e.list(v, t, at)
	case v.Kind() == reflect.Array:
		e.array(v, t, at)
	default:
		e.scalar(v, at)
	}
}

func (e *editor) anything(v reflect.Value, t *trace, at string) {
	if inside := v.Elem(); hasInside(inside) && !e.one(12) {
		p := reflect.New(inside.Type()).Elem()
		p.Set(inside)
		e.edit(p, t, at)
		v.Set(p)
		return
	}
	t.renew()
	v.Set(e.fresh(v.Type()))
	e.note(at, "now %s", mustEncode(v.Interface()))
}

func (e *editor) pointer(v reflect.Value, t *trace, at string) {
	switch {
	case v.IsNil():
		v.Set(reflect.New(v.Type().Elem()))
		e.note(at, "set")
		if !e.one(3) {
			v.Elem().Set(e.fresh(v.Type().Elem()))
		}
		t.renew()
	case e.one(7):
		v.SetZero()
		t.renew()
		e.note(at, "nil")
	default:
		e.edit(v.Elem(), t, at)
	}
}

func (e *editor) scalar(v reflect.Value, at string) {
	if e.one(2) && e.respell(v) {
		e.note(at, "same value, spelt otherwise")
		return
	}
	if e.one(3) {
		v.SetZero()
	} else {
		v.Set(e.fresh(v.Type()))
	}
	e.note(at, "now %s", mustEncode(v.Interface()))
}

// respell changes the spelling of a value, such as the unit of a quantity, but not its meaning. It reports whether it
// changed the value.
func (e *editor) respell(v reflect.Value) bool {
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		formats := []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}
		if other := resource.NewQuantity(x.Value(), formats[e.r.Intn(3)]); other.Cmp(*x) == 0 {
			*x = *other
			return true
		}
	case *metav1.Time:
		if !x.IsZero() {
			x.Time = x.In(time.FixedZone("", 3600))
			return true
		}
	}
	return false
}

func (e *editor) structure(v reflect.Value, t *trace, at string) {
	if e.one(25) {
		v.SetZero()
		t.renew()
		e.note(at, "zero")
		return
	}
	if e.one(25) {
		v.Set(e.fresh(v.Type()))
		t.renew()
		e.note(at, "all new")
		return
	}
	fields := fieldsOf(v.Type())
	// Usually edit fields that are set, and fields that have members or elements.
	for _, wanted := range []func(reflect.Value) bool{isSet, hasInside} {
		if some := e.fieldsThat(wanted, v, fields); len(some) > 0 && !e.one(4) {
			fields = some
		}
	}
	if len(fields) == 0 {
		e.note(at, "nothing to edit")
		return
	}
	f := fields[e.r.Intn(len(fields))]
	if !e.one(3) {
		f = slices.MinFunc(fields, func(x, y jsonField) int { return cmp.Compare(e.rank(x.name), e.rank(y.name)) })
	}
	if field, err := v.FieldByIndexErr(f.index); err == nil {
		e.edit(field, t.kid(f.name), below(at, f.name))
		return
	}
	v.Field(f.index[0]).Set(reflect.New(v.Field(f.index[0]).Type().Elem())) // an embedded pointer
	e.edit(v.FieldByIndex(f.index), t.kid(f.name), below(at, f.name))
}

// rank returns a pseudo-random number for a name. It is the same for all editors of a case, and differs between cases.
func (e *editor) rank(name string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, e.favour, name)
	return h.Sum64()
}

func isSet(v reflect.Value) bool { return !v.IsZero() }

func hasInside(v reflect.Value) bool {
	v = reflect.Indirect(v)
	return v.Kind() == reflect.Struct || v.Kind() == reflect.Map || v.Kind() == reflect.Slice
}

func (e *editor) fieldsThat(wanted func(reflect.Value) bool, v reflect.Value, fields []jsonField) []jsonField {
	return slices.DeleteFunc(slices.Clone(fields), func(f jsonField) bool {
		field, err := v.FieldByIndexErr(f.index)
		return err != nil || !wanted(field)
	})
}

func (e *editor) mapping(v reflect.Value, t *trace, at string) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int {
		return slices.Compare(mustEncode(fmt.Sprint(x)), mustEncode(fmt.Sprint(y)))
	})
	if len(keys) == 0 || e.one(4) {
		key := e.fresh(v.Type().Key())
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		v.SetMapIndex(key, e.fresh(v.Type().Elem()))
		t.kid(keyName(key)).renew()
		e.note(at, "new entry %q", keyName(key))
		return
	}
	key := keys[e.r.Intn(len(keys))]
	choice := e.r.Intn(8)
	if at == "" {
		choice = max(choice, 1) // an object is never nil
	}
	switch choice {
	case 0:
		v.SetZero()
		t.renew()
		e.note(at, "nil")
	case 1, 2:
		v.SetMapIndex(key, reflect.Value{})
		t.kid(keyName(key)).renew()
		e.note(at, "delete %q", keyName(key))
	default:
		entry := reflect.New(v.Type().Elem()).Elem()
		entry.Set(v.MapIndex(key))
		e.edit(entry, t.kid(keyName(key)), below(at, keyName(key)))
		v.SetMapIndex(key, entry)
	}
}

// keyName returns the name of the member that encodes a map entry.
func keyName(key reflect.Value) string {
	m := reflect.MakeMap(reflect.MapOf(key.Type(), reflect.TypeFor[int]()))
	m.SetMapIndex(key, reflect.ValueOf(0))
	var names map[string]int
	if err := json.Unmarshal(mustEncode(m.Interface()), &names); err != nil {
		panic(err)
	}
	for name := range names {
		return name
	}
	panic("no name")
}

func (e *editor) list(v reflect.Value, t *trace, at string) {
	n := v.Len()
	traces := t.list(n)
	if n == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 0, 1))
		if e.note(at, "empty"); !e.one(4) {
			e.insert(v, t, 0, e.fresh(v.Type().Elem()))
			e.note(at, "first element")
		}
		return
	}
	i, j := e.r.Intn(n), e.r.Intn(n)
	swap := func(i, j int) {
		reflect.Swapper(v.Interface())(i, j)
		traces[i], traces[j] = traces[j], traces[i]
	}
	choice := e.r.Intn(20)
	if n > 1 && e.one(3) {
		choice = 6 + e.r.Intn(3)
	}
	switch choice {
	case 0:
		v.SetZero()
		t.renew()
		e.note(at, "nil")
	case 1:
		v.Set(e.fresh(v.Type()))
		t.renew()
		e.note(at, "all new")
	case 2, 3:
		place := []int{0, n, e.r.Intn(n + 1)}[e.r.Intn(3)]
		e.insert(v, t, place, e.fresh(v.Type().Elem()))
		e.note(at, "insert at %d", place)
	case 4, 5:
		v.Set(reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+1, n)))
		t.elems = slices.Delete(traces, i, i+1)
		e.note(at, "remove %d", i)
	case 6:
		swap(i, j)
		e.note(at, "swap %d and %d", i, j)
	case 7:
		for k := range n / 2 {
			swap(k, n-1-k)
		}
		e.note(at, "reverse")
	case 8:
		e.r.Shuffle(n, swap)
		e.note(at, "shuffle")
	case 9, 10:
		twin := clone(v.Index(i))
		e.rename(twin)
		e.insert(v, t, j, twin)
		e.note(at, "copy of %d, other name, to %d", i, j)
	case 11, 12:
		v.Index(i).Set(e.fresh(v.Type().Elem()))
		traces[i] = newTrace()
		e.note(at, "replace %d", i)
	case 13, 14, 15:
		for k := range n {
			if e.one(2) {
				e.edit(v.Index(k), traces[k], below(at, k))
			}
		}
		v.Set(reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+1, n)))
		t.elems = slices.Delete(traces, i, i+1)
		e.note(at, "edit some, remove %d", i)
	default:
		e.edit(v.Index(i), traces[i], below(at, i))
	}
}

// array edits a random element, or swaps it with the first one.
func (e *editor) array(v reflect.Value, t *trace, at string) {
	traces, i := t.list(v.Len()), e.r.Intn(v.Len())
	if e.one(3) {
		reflect.Swapper(v.Slice(0, v.Len()).Interface())(0, i)
		traces[0], traces[i] = traces[i], traces[0]
		e.note(at, "swap 0 and %d", i)
		return
	}
	e.edit(v.Index(i), traces[i], below(at, i))
}

func (e *editor) insert(v reflect.Value, t *trace, i int, elem reflect.Value) {
	list := reflect.Append(v.Slice3(0, i, i), elem)
	v.Set(reflect.AppendSlice(list, v.Slice(i, v.Len())))
	t.elems = slices.Insert(t.elems, i, newTrace())
}

// rename changes the merge key of an element, if it has a field for one.
func (e *editor) rename(elem reflect.Value) {
	if object, ok := elem.Interface().(map[string]any); ok && object["name"] != nil {
		object["name"] = fmt.Sprintf("copy-%d", e.r.Intn(1000))
	}
	if elem.Kind() != reflect.Struct {
		return
	}
	for _, name := range []string{"Name", "ID", "Number", "ContainerPort", "MountPath", "IP", "UID", "Type"} {
		switch field := elem.FieldByName(name); field.Kind() {
		case reflect.String:
			field.SetString(fmt.Sprintf("copy-%d", e.r.Intn(1000)))
		case reflect.Int32:
			field.SetInt(int64(e.r.Intn(10000)))
		}
	}
}
