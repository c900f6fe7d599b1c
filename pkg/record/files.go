// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// The names of files begin with filePrefix and the time, so that they sort by age, and end in fileSuffix.
const (
	filePrefix = "admitkit-"
	fileSuffix = ".jsonl.gz"
	fileTime   = "20060102T150405.000Z"
)

// The first and the longest delay between attempts to open a file after an error.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// files writes lines to compressed files in a folder, and deletes the oldest files. Only err is safe for concurrent use;
// the goroutine of work calls all other methods.
type files struct {
	dir      string
	maxBytes int64
	maxAge   time.Duration
	maxFiles int
	counts   *counts
	lost     func()                               // called after records were deleted or dropped
	create   func(string) (io.WriteCloser, error) // creates a file

	to      io.WriteCloser // nil if there is no current file
	name    string         // of the current file
	kept    bool           // the current file has records on the disk
	buffer  *bufio.Writer
	gzip    *gzip.Writer
	size    int64 // of the current file, in bytes
	created time.Time
	pending int64 // lines that may not be on the disk yet
	retryAt time.Time
	wait    time.Duration
	lastErr atomic.Pointer[error]
}

func newFiles(o *Options, c *counts, lost func()) *files {
	return &files{
		dir: o.Dir, maxBytes: limit(o.MaxFileBytes, defaultFileBytes), maxAge: limit(o.MaxFileAge, defaultFileAge),
		maxFiles: limit(o.MaxFiles, defaultFiles), counts: c, lost: lost, create: createFile,
	}
}

func createFile(name string) (io.WriteCloser, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// write writes a line. After an error, it drops lines until the time of the next attempt.
func (f *files) write(line []byte) {
	f.pending++
	if f.to == nil && !f.open() {
		return
	}
	if _, err := f.gzip.Write(line); err != nil {
		f.fail(err)
		return
	}
	if f.size+int64(f.buffer.Buffered()) >= f.maxBytes {
		f.close()
	}
}

// Write counts the bytes of the current file. The buffer writes to it.
func (f *files) Write(p []byte) (int, error) {
	n, err := f.to.Write(p)
	f.size += int64(n)
	f.counts.writtenBytes.Add(int64(n))
	return n, err
}

// open creates a file. It reports whether it succeeded.
func (f *files) open() bool {
	now := time.Now()
	if now.Before(f.retryAt) {
		f.drop()
		return false
	}
	id := make([]byte, 4)
	_, _ = rand.Read(id) // it never fails
	name := filePrefix + now.UTC().Format(fileTime) + "-" + hex.EncodeToString(id) + fileSuffix
	to, err := f.create(filepath.Join(f.dir, name))
	if err != nil {
		f.fail(err)
		return false
	}
	f.to, f.name, f.kept, f.size, f.created = to, filepath.Join(f.dir, name), false, 0, now
	f.buffer = bufio.NewWriterSize(f, 64<<10)
	f.gzip, _ = gzip.NewWriterLevel(f.buffer, gzip.BestSpeed) // the level is valid
	return true
}

// prune deletes the oldest files, so that maxFiles remain.
func (f *files) prune() {
	all, err := os.ReadDir(f.dir) // sorted by name, and so by age
	if err != nil {
		f.note(err)
		return
	}
	all = slices.DeleteFunc(all, func(e os.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), filePrefix) || !strings.HasSuffix(e.Name(), fileSuffix)
	})
	if len(all) <= f.maxFiles {
		return
	}
	for _, e := range all[:len(all)-f.maxFiles] {
		if err := os.Remove(filepath.Join(f.dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			f.note(fmt.Errorf("cannot delete an old file: %w", err))
		}
	}
	f.lost()
}

// flush writes buffered lines to the disk. It closes the file if it has reached its maximum age.
func (f *files) flush() {
	switch {
	case f.to == nil:
	case time.Since(f.created) >= f.maxAge:
		f.close()
	case f.pending > 0:
		if err := errors.Join(f.gzip.Flush(), f.buffer.Flush()); err != nil {
			f.fail(err)
			return
		}
		f.written()
	}
}

// close closes the current file.
func (f *files) close() {
	if f.to == nil {
		return
	}
	err := errors.Join(f.gzip.Close(), f.buffer.Flush())
	if err != nil {
		f.fail(err)
		return
	}
	err = f.to.Close()
	f.to = nil
	if err != nil {
		f.fail(err)
		return
	}
	f.written()
}

// written counts the lines as recorded. For the first ones of a file, it deletes the oldest files: not earlier, so that a
// full disk does not replace recordings by empty files.
func (f *files) written() {
	f.counts.recorded.Add(f.pending)
	f.pending, f.wait = 0, 0
	f.lastErr.Store(nil)
	if !f.kept {
		f.kept = true
		f.prune()
	}
}

func (f *files) drop() {
	f.counts.diskFailed.Add(f.pending)
	f.pending = 0
}

// fail closes the current file after an error, and counts the lines that may not be on the disk as dropped. It deletes a
// file that has no records.
func (f *files) fail(err error) {
	if f.to != nil {
		_ = f.to.Close() // the first error counts
		f.to = nil
	}
	if f.name != "" && !f.kept {
		_ = os.Remove(f.name)
	}
	f.name = ""
	f.drop()
	f.wait = min(max(2*f.wait, firstRetry), lastRetry)
	f.retryAt = time.Now().Add(f.wait)
	f.note(err)
	f.lost()
}

func (f *files) note(err error) {
	f.counts.fail(err)
	f.lastErr.Store(&err)
}

// err returns the last disk error, or nil if lines were written after it.
func (f *files) err() error {
	if err := f.lastErr.Load(); err != nil {
		return fmt.Errorf("record: %w", *err)
	}
	return nil
}
