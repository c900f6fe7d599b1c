// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/lines"
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

// stream opens a source and decompresses it. The counter read receives the number of bytes that were read from the
// source. Reading ends when ctx ends, even if a pipe has no data.
func (s Source) stream(ctx context.Context, read *atomic.Int64) (*bufio.Reader, func() error, error) {
	in, err := s.begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	var from io.Reader = in
	if s.pipe {
		from = interruptible(ctx, in)
	}
	text, err := lines.Decompress(counter{from, read})
	if err != nil {
		return nil, nil, errors.Join(err, in.Close())
	}
	return text, in.Close, nil
}

// begin opens a source. Opening a pipe waits for a writer until ctx ends.
func (s Source) begin(ctx context.Context) (io.ReadCloser, error) {
	if !s.pipe {
		return s.open()
	}
	return objects.Await(ctx, s.open)
}

type counter struct {
	from io.Reader
	read *atomic.Int64
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// interruptible returns a reader whose reads also end when ctx ends. A read of from that is then pending is abandoned.
func interruptible(ctx context.Context, from io.Reader) io.Reader {
	reader, writer := io.Pipe()
	stop := context.AfterFunc(ctx, func() { writer.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(writer, from)
		stop()
		writer.CloseWithError(err) // without an error, the reader gets io.EOF
	}()
	return reader
}
