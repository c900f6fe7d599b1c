// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
)

func TestRead(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	broken := errors.New("broken")
	for _, in := range []struct {
		reason        string
		size          int
		length, limit int64
		memory        int
		most          int // largest memory that may be reserved
		err           error
	}{
		{reason: "the length is right", size: 2000, length: 2000, limit: 1 << 30, most: 2100},
		{reason: "into memory that is large enough", size: 2000, length: 2000, limit: 1 << 30, memory: 5000, most: 5000},
		{reason: "into memory that is just too small", size: 2000, length: 2000, limit: 1 << 30, memory: 2000, most: 2100},
		{reason: "a large body of the length announced", size: len(text), length: int64(len(text)), limit: 1 << 30, most: len(text) * 3 / 2},
		{reason: "much is announced and little comes", size: 10, length: 1 << 40, limit: 1 << 50, most: maxFirstBytes},
		{reason: "little is announced and much comes", size: len(text), length: 10, limit: 1 << 30, most: 2 * len(text)},
		{reason: "nothing is announced", size: len(text), length: -1, limit: 1 << 30, most: 2 * len(text)},
		{reason: "nothing comes", size: 0, length: 0, limit: 1 << 30, most: 600},
		{reason: "a broken connection", size: 700, length: 2000, limit: 1 << 30, most: 2100, err: broken},
	} {
		t.Run(in.reason, func(t *testing.T) {
			for _, from := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader} {
				source := from(bytes.NewReader(text[:in.size]))
				if in.err != nil {
					source = io.MultiReader(source, iotest.ErrReader(in.err))
				}
				got, err := Read(source, make([]byte, in.memory/2, max(in.memory, 1)), in.length, in.limit, noLimit)
				if !errors.Is(err, in.err) || err == nil && !bytes.Equal(got, text[:in.size]) {
					t.Fatalf("%d bytes of %d, %v", len(got), in.size, err)
				}
				if cap(got) > in.most {
					t.Errorf("memory of %d bytes for %d", cap(got), in.size)
				}
			}
		})
	}
	got, err := Read(bytes.NewReader(text), nil, -1, 5000, noLimit)
	if err != nil || len(got) <= 5000 || len(got) > 20_000 {
		t.Errorf("%d bytes were read, when more than 5000 was all there was to know; %v", len(got), err)
	}
}

func noLimit(int64) error { return nil }

// TestReleasedMemoryIsReused checks that a released buffer is used for another body, and that one in use is not.
func TestReleasedMemoryIsReused(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 90_000)
	read := func() []byte {
		got, err := Read(bytes.NewReader(text), make([]byte, 0, 100), int64(len(text)), 1<<30, noLimit)
		if err != nil || !bytes.Equal(got, text) {
			t.Fatal(len(got), err)
		}
		return got
	}
	one, other := read(), read()
	clear(one)
	if !bytes.Equal(other, text) || cap(one) != 3<<19 {
		t.Errorf("two bodies share memory, of %d bytes", cap(one))
	}
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		Release(read())
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > uint64(len(text)) {
		t.Errorf("%d bytes are allocated to read %d", each, len(text))
	}
}
