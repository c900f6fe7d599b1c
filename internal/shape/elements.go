// SPDX-License-Identifier: Apache-2.0

package shape

import "reflect"

// Elements are those of a list that is being decoded. How many there will be is not known, and
// the list should be no longer than it need be. So the elements go to a list that has room for as
// many as the last one of this type had; if there are more, to one in memory that is used again,
// from where they are copied in the end.
type Elements struct {
	shape   *Shape
	list    reflect.Value
	n, room int
	scratch *reflect.Value // nil as long as there is room
}

const (
	mostUsual    = 16
	firstScratch = 8
	// mostRoom bounds the memory of a list that its elements do not take yet: a document may nest
	// thousands of lists.
	mostRoom    = 2 << 10
	mostScratch = 1 << 20 // bytes kept of one
)

// Elements prepares list, which is nil and of the List type.
func (s *Shape) Elements(list reflect.Value) Elements {
	return Elements{shape: s, list: list, room: s.room(int(s.usual.Load()))}
}

// room is for n elements, or as many as take a little memory, or one.
func (s *Shape) room(n int) int {
	size := int(s.Type.Elem().Size())
	return min(n, max(1, mostRoom/max(1, size)))
}

// Len is how many elements there are.
func (e *Elements) Len() int { return e.n }

// Next adds an element, which is zero.
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

// takeScratch moves what is there so far.
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

// Done completes the list: it is neither nil nor longer than it need be.
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

// release empties a scratch list and keeps it for the next decoder.
func (s *Shape) release(list *reflect.Value) {
	if uintptr(list.Cap())*s.Type.Elem().Size() > mostScratch {
		return
	}
	list.Clear()
	list.SetLen(0)
	s.scratch.Put(list)
}
