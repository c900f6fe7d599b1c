// SPDX-License-Identifier: Apache-2.0

package body

import "sync"

// MaxSmallBytes is the largest size of a small buffer, in bytes. Callers keep small buffers themselves.
const MaxSmallBytes = 256 << 10

// Bodies larger than MaxSmallBytes use buffers of a few fixed sizes. So buffers can be reused without wasting much
// memory. A call gets such a buffer only after a good part of its body has arrived.
var (
	largeSizes = [...]int{MaxSmallBytes, 384 << 10, 512 << 10, 768 << 10, 1 << 20, 3 << 19, 2 << 20, 3 << 20, 4 << 20}
	largePools [len(largeSizes)]sync.Pool
)

// sizeFor returns the size of the buffer to allocate for n bytes: the smallest of largeSizes that holds them. It
// returns n if n is at most MaxSmallBytes, if none of largeSizes is large enough, or if that size would exceed most.
func sizeFor(n, most int) int {
	if n <= MaxSmallBytes {
		return n
	}
	for _, size := range largeSizes {
		if n <= size && size <= most {
			return size
		}
	}
	return n
}

// allocate returns an empty buffer with a capacity of size.
func allocate(size int) []byte {
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

// Release makes a large buffer available to other calls. It ignores buffers of other sizes. The caller must not use b
// afterwards.
func Release(b []byte) {
	for i, size := range largeSizes {
		if cap(b) == size {
			again := b
			largePools[i].Put(&again)
		}
	}
}
