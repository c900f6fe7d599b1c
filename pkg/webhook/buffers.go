// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"

	"github.com/admitkit/admitkit/pkg/review"
)

// buffers are the memory that one call after the other uses, which no handler ever sees, so that
// what a handler keeps cannot change. See exchange for when they come back.
type buffers struct {
	body, answer []byte
	large        []byte         // instead of body
	wire         review.Request // what the body says
	reading      reading
}

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

// maxPooledBytes is the most memory that is kept with what else a call needs. It is used for bodies
// of the size only, and counts in full: see readAll.
const maxPooledBytes = 256 << 10

// hold has the body be used again, once this call is over.
func (b *buffers) hold(body []byte) {
	if cap(body) > maxPooledBytes {
		b.large = body
		return
	}
	b.body = body
}

// lose leaves what holds a body to others.
func (b *buffers) lose() { b.body, b.large = nil, nil }

func (b *buffers) release() {
	b.wire = review.Request{}
	giveBack(b.large)
	b.large = nil
	if cap(b.answer) > maxPooledBytes {
		b.answer = nil
	}
	bufferPool.Put(b)
}

// Large bodies have memory of their own, of a few sizes, so that none holds much more than it
// needs and small ones hold nothing of it. A call gets it once a good part of it has come.
var (
	largeSizes = [...]int{maxPooledBytes, 384 << 10, 512 << 10, 768 << 10, 1 << 20, 3 << 19, 2 << 20, 3 << 20, 4 << 20}
	largePools [len(largeSizes)]sync.Pool
)

// roomFor returns how much memory to use for n bytes, which may be no more than most.
func roomFor(n, most int) int {
	if n <= maxPooledBytes {
		return n
	}
	for _, size := range largeSizes {
		if n <= size && size <= most {
			return size
		}
	}
	return n
}

// memoryOf returns memory of a size that roomFor returned.
func memoryOf(size int) []byte {
	for i := range largeSizes {
		if size != largeSizes[i] {
			continue
		}
		if b, _ := largePools[i].Get().(*[]byte); b != nil {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, size)
}

// giveBack takes memory back that nobody uses any more.
func giveBack(b []byte) {
	for i, size := range largeSizes {
		if cap(b) == size {
			again := b
			largePools[i].Put(&again)
		}
	}
}
