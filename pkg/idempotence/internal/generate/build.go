// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"math/rand/v2"
	"strconv"
)

type object = map[string]any

// A build is the state of one generated object: the source of random numbers, the probability of optional parts, and
// the traits so far.
type build struct {
	*Generator
	r       *rand.Rand
	density float64  // probability, between 0 and 1, of each optional part
	traits  []string // of the object
}

func (b *build) chance(p float64) bool { return b.r.Float64() < p }

// between returns a number from lo to hi, both included.
func (b *build) between(lo, hi int64) int64 { return lo + b.r.Int64N(hi-lo+1) }

func pick[T any](b *build, of ...T) T { return of[b.r.IntN(len(of))] }

// fresh returns one of the names, with a number appended if taken reports that the name is in use.
func (b *build) fresh(taken func(string) bool, names ...string) string {
	name := pick(b, names...)
	if !taken(name) {
		return name
	}
	for i := b.r.IntN(3); ; i++ {
		if next := name + "-" + strconv.Itoa(i); !taken(next) {
			return next
		}
	}
}

// child returns a member of m that is an object. It creates a missing or null one, and returns nil for any
// other value.
func child(m object, name string) object {
	if v, ok := m[name]; ok && v != nil {
		c, _ := v.(object)
		return c
	}
	c := object{}
	m[name] = c
	return c
}

func listOf(m object, name string) []any { l, _ := m[name].([]any); return l }

func textOf(m object, name string) string { s, _ := m[name].(string); return s }

// objects returns the elements of a list that are objects.
func objects(m object, name string) (out []object) {
	for _, e := range listOf(m, name) {
		if o, ok := e.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

// appendTo appends elements to a copy of a list, because an edit may share the original.
func appendTo(m object, name string, elements ...any) {
	l := listOf(m, name)
	m[name] = append(l[:len(l):len(l)], elements...)
}

// put sets a member that is missing, and reports whether it did. It keeps an existing member, which belongs to the
// user.
func put(m object, name string, value any) bool {
	if _, has := m[name]; has || m == nil {
		return false
	}
	m[name] = value
	return true
}

// has reports whether an element of the list has the value in its member key.
func has(m object, list, key string, value any) bool {
	for _, o := range objects(m, list) {
		if o[key] == value {
			return true
		}
	}
	return false
}

// texts returns a list of strings.
func texts(s ...string) []any {
	out := make([]any, len(s))
	for i := range s {
		out[i] = s[i]
	}
	return out
}
