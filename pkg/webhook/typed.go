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
	handler     func(context.Context, *Request[T]) error
	sideEffects bool
	mutating    bool

	req       Request[T]
	object    T
	read      bool
	decodeErr error              // set if the object is not a T
	origin    *received.Document // the document that object was decoded from, in a mutating hook
}

// ReadObject decodes the object. A decode error is reported only after the kind was checked, so that
// a wrong kind gets the clearer error.
func (c *typedCall[T]) ReadObject(body []byte, offset int) (end int, err error) {
	if c.read { // the last of duplicate members counts
		c.object, c.decodeErr = *new(T), nil
	}
	c.read = true
	if end, err = c.decode(body, offset); err == nil {
		return end, nil
	}
	c.decodeErr = err
	return skipObject(body, offset)
}

func (c *typedCall[T]) decode(body []byte, offset int) (end int, err error) {
	defer reply.Recover("decoding the object", &err)
	if !c.mutating {
		return decode.At(body, offset, objectDepth, object.Content(&c.object), nil)
	}
	if c.origin == nil {
		c.origin = origins.Get().(*received.Document)
	}
	return c.origin.Decode(body, offset, objectDepth, object.Content(&c.object))
}

// origins holds the documents of earlier calls for reuse. Handlers never see them.
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

func (c *typedCall[T]) accept(wire *review.Request) (*review.Decision, error) {
	c.req = Request[T]{Metadata: wire.Metadata, docs: &c.docs, sideEffects: c.sideEffects, timeout: c.timeout}
	if wire.Object == nil {
		return nil, nil
	}
	c.req.Object = &c.object
	if err := c.decodeFailure(); err != nil {
		return nil, err
	}
	if h := c.hook; h.unknown != IgnoreUnknownFields && h.applyUnknownFields(object.UnknownFields[T](wire.Object), &wire.Metadata, &c.req.decision) {
		return &c.req.decision, nil
	}
	return nil, nil
}

// decodeFailure returns the failure of an object that is not a T, or nil.
func (c *typedCall[T]) decodeFailure() error {
	if c.decodeErr == nil {
		return nil
	}
	var p *reply.Panic
	if errors.As(c.decodeErr, &p) {
		return p
	}
	return object.DecodeFailure(c.decodeErr, object.Content(&c.object), "object")
}

func (c *typedCall[T]) handle() outcome {
	d, err := c.req.decide(c.handler(&c.ctx, &c.req))
	return outcome{decision: d, err: err}
}

func (c *typedCall[T]) changes(patch.Patch) (p patch.Patch, err error) {
	if !c.mutating {
		return nil, nil
	}
	defer reply.Recover("comparing the object", &err)
	if c.docs.object == nil {
		return nil, nil // DELETE: there is nothing that a patch could apply to
	}
	if p, err = object.Changes(c.origin, c.req.Object); len(c.docs.object) <= maxReusedBytes {
		c.origin.Reset() // otherwise the pooled document would refer to the body's memory
		origins.Put(c.origin)
	}
	return p, err
}
