// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/admitkit/admitkit/internal/problem"
)

// A Source is a log. It can be read once.
type Source struct {
	Name string
	// Size is the number of bytes, or 0 if it is unknown.
	Size int64
	pipe bool // reads may block
	open func() (io.ReadCloser, error)
}

// Sources returns the logs with these names, where "-" is standard input. The error names the logs that cannot be read.
func Sources(names []string, stdin io.Reader) ([]Source, error) {
	var all []Source
	standard := false
	for _, name := range names {
		if name == "-" {
			if standard {
				return nil, problem.New("standard input can be read only once")
			}
			standard = true
			all = append(all, Source{Name: "standard input", pipe: true, open: func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil }})
			continue
		}
		source, err := file(name)
		if err != nil {
			return nil, err
		}
		all = append(all, source)
	}
	return all, nil
}

func file(name string) (Source, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Source{}, problem.New("there is no file %s", name).Hint("the API server writes to the file that its flag --audit-log-path names")
	case err != nil:
		return Source{}, problem.New("cannot read the log: %w", err)
	case info.IsDir():
		return Source{}, problem.New("%s is a folder", name).Hint("admitkit audit %s", filepath.Join(name, "*"))
	}
	source := Source{Name: name, open: func() (io.ReadCloser, error) { return os.Open(name) }}
	if !info.Mode().IsRegular() {
		source.pipe = true // opening a pipe consumes its content
		return source, nil
	}
	source.Size = info.Size()
	f, err := os.Open(name)
	if err != nil {
		return Source{}, problem.New("cannot read the log: %w", err)
	}
	return source, f.Close()
}

// stream opens a source and decompresses it. It counts the bytes that it reads from the source in read. Reading ends
// when ctx ends, even if a pipe has no data.
func (s Source) stream(ctx context.Context, read *atomic.Int64) (io.Reader, func() error, error) {
	in, err := s.begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	var from io.Reader = in
	if s.pipe {
		from = newInterruptibleReader(ctx, in)
	}
	buffered := bufio.NewReaderSize(counter{from, read}, chunk)
	if magic, _ := buffered.Peek(2); len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return buffered, in.Close, nil // later reads return the same error
	}
	expanded, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, nil, errors.Join(err, in.Close())
	}
	return bufio.NewReaderSize(expanded, chunk), in.Close, nil
}

// begin opens a source. Opening a pipe waits for a writer until ctx ends.
func (s Source) begin(ctx context.Context) (io.ReadCloser, error) {
	if !s.pipe {
		return s.open()
	}
	type opened struct {
		in  io.ReadCloser
		err error
	}
	done := make(chan opened, 1)
	go func() {
		in, err := s.open()
		done <- opened{in, err}
	}()
	select {
	case o := <-done:
		return o.in, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// chunk is the size of a read in bytes.
const chunk = 256 << 10

type counter struct {
	from io.Reader
	read *atomic.Int64
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// An interruptibleReader is a reader that returns when ctx ends. The pending read is then abandoned.
type interruptibleReader struct {
	ctx  context.Context
	next chan piece
	rest []byte
	err  error
}

type piece struct {
	data []byte
	err  error
}

func newInterruptibleReader(ctx context.Context, from io.Reader) *interruptibleReader {
	p := &interruptibleReader{ctx: ctx, next: make(chan piece)}
	go func() {
		for {
			data := make([]byte, chunk/4)
			n, err := from.Read(data)
			select {
			case p.next <- piece{data[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *interruptibleReader) Read(to []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		select {
		case got := <-p.next:
			p.rest, p.err = got.data, got.err
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
