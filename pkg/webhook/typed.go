// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"sync"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/received"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/object"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// A typedCall is a call of a handler for objects of type T.
type typedCall[T any] struct {
	exchange
	typed typedObject[T]
}

func (c *typedCall[T]) ReadObject(body []byte, offset int) (end int, err error) {
	return c.typed.read(body, offset)
}

func (c *typedCall[T]) accept(wire *review.Request) (*review.Decision, error) {
	return c.typed.accept(&c.exchange, wire)
}

func (c *typedCall[T]) handle() outcome { return c.typed.call(&c.exchange) }

func (c *typedCall[T]) changes(patch.Patch) (patch.Patch, error) {
	return c.typed.changes(&c.exchange)
}

// A typedHandler is a handler and the settings that its calls need.
type typedHandler[T any] struct {
	handle      func(context.Context, *Request[T]) error
	sideEffects bool
	mutating    bool
	view        *view // nil if T holds the whole object
}

// A typedObject is the object of one call, decoded for its handler.
type typedObject[T any] struct {
	typedHandler[T]
	req       Request[T]
	object    T
	wasRead   bool
	missing   bool               // the object has nothing at the path of the view
	decodeErr error              // set if the object is not a T
	origin    *received.Document // the document that object was decoded from, in a mutating hook
}

// read decodes the object at an offset of body. A decode error is reported only after the kind was
// checked, so that a wrong kind gets the clearer error.
func (o *typedObject[T]) read(body []byte, offset int) (end int, err error) {
	if o.wasRead { // the last of duplicate members counts
		o.object, o.decodeErr, o.missing = *new(T), nil, false
	}
	o.wasRead = true
	if o.view.isPart() {
		return o.readPart(body, offset)
	}
	if end, err = o.decode(body, offset, objectDepth); err == nil {
		return end, nil
	}
	o.decodeErr = err
	return skipObject(body, offset)
}

// readPart decodes the part of the object at the path of the view.
func (o *typedObject[T]) readPart(body []byte, offset int) (end int, err error) {
	at, end, err := object.Find(body, offset, objectDepth, o.view.path)
	switch {
	case err != nil:
		return skipObject(body, offset) // returns the error with its offset
	case !at.Found:
		o.missing = true
	default:
		_, o.decodeErr = o.decode(body, at.Offset, at.Depth)
	}
	return end, nil
}

func (o *typedObject[T]) decode(body []byte, offset, depth int) (end int, err error) {
	defer reply.Recover("decoding the object", &err)
	if !o.mutating {
		return decode.At(body, offset, depth, object.Content(&o.object), nil)
	}
	if o.origin == nil {
		o.origin = origins.Get().(*received.Document)
	}
	return o.origin.Decode(body, offset, depth, object.Content(&o.object))
}

// origins holds the received.Documents of earlier calls for reuse. Handlers never see them.
var origins = sync.Pool{New: func() any { return new(received.Document) }}

// maxReusedBytes is the largest object whose received.Document is reused. A Document may be ten times
// as large as its object.
const maxReusedBytes = 1 << 20

// objectDepth is the nesting depth of the object inside a review.
const objectDepth = 2

func skipObject(body []byte, offset int) (end int, err error) {
	cursor := jsonraw.At(body, offset, objectDepth)
	err = cursor.Skip()
	return cursor.Offset(), err
}

func (o *typedObject[T]) accept(x *exchange, wire *review.Request) (*review.Decision, error) {
	o.req = Request[T]{Metadata: wire.Metadata, docs: &x.docs, sideEffects: o.sideEffects, timeout: x.timeout, view: o.view}
	if wire.Object == nil {
		return nil, nil
	}
	o.req.Object = &o.object
	if err := o.decodeFailure(); err != nil {
		return nil, err
	}
	if h := x.hook; h.unknown != IgnoreUnknownFields && h.applyUnknownFields(o.req.unknownFields(wire.Object), &wire.Metadata, &o.req.decision) {
		return &o.req.decision, nil
	}
	return nil, nil
}

// decodeFailure returns the failure of the call if the object could not be decoded as a T, or nil.
func (o *typedObject[T]) decodeFailure() error {
	if o.missing {
		return o.view.missing("object")
	}
	if o.decodeErr == nil {
		return nil
	}
	var p *reply.Panic
	if errors.As(o.decodeErr, &p) {
		return p
	}
	return object.DecodeFailure(o.decodeErr, object.Content(&o.object), "object", o.view.pointer())
}

func (o *typedObject[T]) call(x *exchange) outcome {
	d, err := o.req.decide(o.handle(&x.ctx, &o.req))
	return outcome{decision: d, err: err}
}

func (o *typedObject[T]) changes(x *exchange) (p patch.Patch, err error) {
	if !o.mutating {
		return nil, nil
	}
	defer reply.Recover("comparing the object", &err)
	if x.docs.object == nil {
		return nil, nil // DELETE: there is nothing that a patch could apply to
	}
	if p, err = object.Changes(o.origin, o.req.Object, o.view.pointer()); len(x.docs.object) <= maxReusedBytes {
		o.origin.Reset() // otherwise the pooled document would refer to the body's memory
		origins.Put(o.origin)
	}
	return p, err
}
