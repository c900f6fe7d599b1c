// SPDX-License-Identifier: Apache-2.0

package shape

import "reflect"

// Elements collects the elements of a list while it is decoded. The length is not known in advance, and the result
// must not be larger than necessary. So the first elements go to a list with the length of the last list of this
// type. If there are more, all move to a pooled scratch list and are copied at the end.
type Elements struct {
	shape   *Shape
	list    reflect.Value
	n, room int
	scratch *reflect.Value // nil while the first list suffices
}

const (
	mostUsual    = 16
	firstScratch = 8
	// mostRoom bounds the unused memory of a list in bytes, because a document may nest thousands of
	// lists.
	mostRoom    = 2 << 10
	mostScratch = 1 << 20 // bytes that a pooled scratch list may keep
)

// Elements returns a collector for list, a nil value of the List type.
func (s *Shape) Elements(list reflect.Value) Elements {
	return Elements{shape: s, list: list, room: s.room(int(s.usual.Load()))}
}

// room returns n, or fewer if n elements take too much memory, but at least one.
func (s *Shape) room(n int) int {
	size := int(s.Type.Elem().Size())
	return min(n, max(1, mostRoom/max(1, size)))
}

// Len returns the number of elements so far.
func (e *Elements) Len() int { return e.n }

// Next adds a zero element and returns it.
func (e *Elements) Next() reflect.Value {
	e.n++
	if e.n > e.room {
		return e.scratchElement()
	}
	if e.n == 1 {
		e.list.Grow(e.room)
	}
	e.list.SetLen(e.n)
	return e.list.Index(e.n - 1)
}

func (e *Elements) scratchElement() reflect.Value {
	if e.scratch == nil {
		e.takeScratch()
	}
	if e.n > e.scratch.Cap() {
		e.scratch.Grow(max(e.shape.room(firstScratch), e.n))
	}
	e.scratch.SetLen(e.n)
	return e.scratch.Index(e.n - 1)
}

// takeScratch moves the elements to a scratch list.
func (e *Elements) takeScratch() {
	if v, ok := e.shape.scratch.Get().(*reflect.Value); ok {
		e.scratch = v
	} else {
		v := reflect.New(e.shape.Type).Elem()
		e.scratch = &v
	}
	if had := e.n - 1; had > 0 {
		e.scratch.Grow(e.n)
		e.scratch.SetLen(had)
		reflect.Copy(*e.scratch, e.list)
		e.list.SetZero()
	}
}

// Done completes the list. The list is then not nil and has exactly the elements that Next added.
func (e *Elements) Done() {
	switch {
	case e.n == 0:
		e.list.Set(reflect.MakeSlice(e.shape.Type, 0, 0))
		return
	case e.scratch != nil:
		e.list.Grow(e.n)
		e.list.SetLen(e.n)
		reflect.Copy(e.list, *e.scratch)
		e.shape.release(e.scratch)
	case e.n < e.room:
		exact := reflect.MakeSlice(e.shape.Type, e.n, e.n)
		reflect.Copy(exact, e.list)
		e.list.Set(exact)
	}
	if e.n != e.room && e.n == e.shape.room(min(e.n, mostUsual)) {
		e.shape.usual.Store(int32(e.n))
	}
}

// release clears a scratch list and returns it to the pool.
func (s *Shape) release(list *reflect.Value) {
	if uintptr(list.Cap())*s.Type.Elem().Size() > mostScratch {
		return
	}
	list.Clear()
	list.SetLen(0)
	s.scratch.Put(list)
}
