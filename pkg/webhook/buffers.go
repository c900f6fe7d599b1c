// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/body"
	"github.com/admitkit/admitkit/pkg/webhook/internal/server"
)

// buffers is memory that calls reuse. No handler gets it, so values that a handler keeps never change.
// See exchange for when a call releases it.
type buffers struct {
	body, answer []byte
	large        []byte         // instead of body, if the body is large
	wire         review.Request // decoded from the body
	reading      server.Reading
}

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

// hold stores the memory of a body, to be reused after the call.
func (b *buffers) hold(data []byte) {
	if cap(data) > body.MaxSmallBytes {
		b.large = data
		return
	}
	b.body = data
}

// abandon leaves the memory of the body to a handler that is still running.
func (b *buffers) abandon() { b.body, b.large = nil, nil }

func (b *buffers) release() {
	b.wire = review.Request{}
	body.Release(b.large)
	b.large = nil
	if cap(b.answer) > body.MaxSmallBytes {
		b.answer = nil
	}
	bufferPool.Put(b)
}
