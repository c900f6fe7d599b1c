// SPDX-License-Identifier: Apache-2.0

package shape

import "reflect"

// Scratch lists are where a decoder collects the elements of a list until it knows how many
// there are. They hold nothing when they are not in use.
const (
	firstScratch = 8
	mostScratch  = 1 << 20 // bytes kept of one
)

// Scratch returns an empty list of a List shape, to be given back with Release.
func (s *Shape) Scratch() *reflect.Value {
	if v, ok := s.scratch.Get().(*reflect.Value); ok {
		return v
	}
	v := reflect.New(s.Type).Elem()
	return &v
}

// Extend makes a scratch list one element longer and returns that element, which is zero.
func Extend(list *reflect.Value) reflect.Value {
	n := list.Len()
	if n == list.Cap() {
		list.Grow(max(firstScratch, n))
	}
	list.SetLen(n + 1)
	return list.Index(n)
}

// Take moves the elements of a scratch list to dst, a list of that type: neither nil nor
// longer than it need be.
func (s *Shape) Take(dst reflect.Value, list *reflect.Value) {
	n := list.Len()
	if n == 0 {
		dst.Set(reflect.MakeSlice(s.Type, 0, 0))
		return
	}
	dst.SetZero()
	dst.Grow(n)
	dst.SetLen(n)
	reflect.Copy(dst, *list)
}

// Release empties a scratch list and keeps it for the next decoder.
func (s *Shape) Release(list *reflect.Value) {
	if uintptr(list.Cap())*s.Type.Elem().Size() > mostScratch {
		return
	}
	list.Clear()
	list.SetLen(0)
	s.scratch.Put(list)
}
