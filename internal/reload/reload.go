// SPDX-License-Identifier: Apache-2.0

// Package reload keeps a value up to date with the files that it is read from.
//
// Files are compared by content, never by time: mounted Secrets change by a swap of symbolic links,
// and two writes may have the same time stamp.
package reload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultInterval is the default time between two reads.
const DefaultInterval = 10 * time.Second

// DefaultMaxBytes is the default maximum size of a file, in bytes. A Secret holds no more than 1 MiB.
const DefaultMaxBytes = 1 << 20

// DefaultPause is the default time for which changed files must stay the same before they are used.
const DefaultPause = 250 * time.Millisecond

// Options configure Files. Paths and Parse are required.
type Options[T any] struct {
	// Paths are the files, which are read together in this order.
	Paths []string
	// Parse converts the contents, in the order of Paths, into a value. It should depend on nothing
	// else, since unchanged contents are not parsed again. Its errors need not name the files.
	Parse func(contents [][]byte) (T, error)
	// MaxBytes is the largest size of each file, in bytes. Zero means [DefaultMaxBytes].
	MaxBytes int64
	// Pause is the time between two reads of changed files, so that a half-written file is not
	// used. Zero means [DefaultPause].
	Pause time.Duration
	// Report, if set, is called with nil when there is a new value, or when the files have the last value again. It is
	// called with an error when the files become invalid, or when the error changes. It is not called after every read.
	// It must not call Load.
	Report func(error)
}

// Files holds a value that is read from files. It keeps the last valid value until the files have a new valid one. It
// is safe for concurrent use.
type Files[T any] struct {
	opts     Options[T]
	readFile func(path string, most int64) ([]byte, error)

	mu     sync.Mutex // held by Load
	digest [sha256.Size]byte
	parsed error // the parse error of the contents with this digest

	good    atomic.Pointer[version[T]]
	trouble atomic.Pointer[error]
}

type version[T any] struct {
	value      T
	generation int
	digest     [sha256.Size]byte
}

// New returns Files that have not been read yet: call Load.
func New[T any](o Options[T]) *Files[T] {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Pause <= 0 {
		o.Pause = DefaultPause
	}
	return &Files[T]{opts: o, readFile: readFile}
}

// Get returns the last valid value and its generation. The generation of the first valid value is 1. Before that, Get
// returns the zero value and 0.
func (f *Files[T]) Get() (value T, generation int) {
	if v := f.good.Load(); v != nil {
		return v.value, v.generation
	}
	return value, 0
}

// Err returns why the last read failed, or nil.
func (f *Files[T]) Err() error {
	if err := f.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// Run reads the files once in every interval until ctx is done. An interval of zero means [DefaultInterval]. With a
// negative interval, Run only waits until ctx is done.
func (f *Files[T]) Run(ctx context.Context, interval time.Duration) {
	if interval < 0 {
		<-ctx.Done()
		return
	}
	if interval == 0 {
		interval = DefaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = f.Reload(ctx) // Report gets the error
		}
	}
}

// Load reads the files at once, without a pause. Call it to get the first value. It returns the error that Err
// returns afterwards.
func (f *Files[T]) Load() error { return f.load(context.Background(), 0) }

// Reload reads the files again. It uses changed files only after they have stayed the same for [Options.Pause], and
// fails after three pauses. If ctx ends first, nothing changes.
func (f *Files[T]) Reload(ctx context.Context) error { return f.load(ctx, f.opts.Pause) }

func (f *Files[T]) load(ctx context.Context, pause time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	contents, digest, err := f.settled(ctx, pause)
	if ctx.Err() != nil {
		return f.Err()
	}
	before := f.good.Load()
	if err == nil {
		err = f.take(contents, digest)
	}
	f.setResult(err, f.good.Load() != before)
	return err
}

// take parses the contents and stores the new value. It does not parse contents again whose digest has not changed.
func (f *Files[T]) take(contents [][]byte, digest [sha256.Size]byte) error {
	good := f.good.Load()
	if good != nil && digest == good.digest {
		f.digest, f.parsed = digest, nil
		return nil
	}
	if digest == f.digest {
		return f.parsed
	}
	value, err := f.opts.Parse(contents)
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(f.opts.Paths, ", "), err)
	} else {
		next := &version[T]{value: value, generation: 1, digest: digest}
		if good != nil {
			next.generation = good.generation + 1
		}
		f.good.Store(next)
	}
	f.digest, f.parsed = digest, err
	return err
}

// setResult stores the result of a read and reports it if it is new.
func (f *Files[T]) setResult(err error, changed bool) {
	last := f.Err()
	if err == nil {
		f.trouble.Store(nil)
	} else {
		f.trouble.Store(&err)
	}
	if f.opts.Report == nil {
		return
	}
	switch {
	case err == nil && (changed || last != nil):
		f.opts.Report(nil)
	case err != nil && !sameText(err, last):
		f.opts.Report(err)
	}
}

// settled reads until two reads in a row agree. Otherwise it might combine files from before and after a swap, or use a
// half-written file. If the files never settle, it fails. If the pause is zero, it returns the contents of the last
// read instead.
func (f *Files[T]) settled(ctx context.Context, pause time.Duration) ([][]byte, [sha256.Size]byte, error) {
	contents, digest, err := f.read()
	for range 3 {
		if err == nil && digest == f.digest || err != nil && sameText(err, f.Err()) {
			return contents, digest, err // these contents were read before, and had settled
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause): // at once without a pause
		}
		last, failed := digest, err != nil
		contents, digest, err = f.read()
		if failed && err != nil || !failed && err == nil && digest == last {
			return contents, digest, err
		}
	}
	if err == nil && pause > 0 {
		err = fmt.Errorf("%s: did not stay unchanged for %s: it may be half written", strings.Join(f.opts.Paths, ", "), pause)
	}
	return contents, digest, err
}

func sameText(a, b error) bool { return a != nil && b != nil && a.Error() == b.Error() }

func (f *Files[T]) read() ([][]byte, [sha256.Size]byte, error) {
	var digest [sha256.Size]byte
	contents := make([][]byte, len(f.opts.Paths))
	sum := sha256.New()
	for i, path := range f.opts.Paths {
		content, err := f.readFile(path, f.opts.MaxBytes)
		if err != nil {
			return nil, digest, err
		}
		contents[i] = content
		_ = binary.Write(sum, binary.LittleEndian, int64(len(content))) // a hash never fails
		sum.Write(content)
	}
	return contents, [sha256.Size]byte(sum.Sum(digest[:0])), nil
}

// readFile reads a regular file up to a maximum size. Other files, such as pipes, might never end.
func readFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the file was only read
	var content bytes.Buffer
	if _, err := content.ReadFrom(io.LimitReader(file, most+1)); err != nil {
		return nil, err
	}
	if int64(content.Len()) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return content.Bytes(), nil
}
