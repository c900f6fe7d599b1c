// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

// newOn returns a recorder whose files are made by create. It is not started.
func newOn(t testing.TB, o Options, create func(string) (io.WriteCloser, error)) *Recorder {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	redactor, key, err := o.redactor()
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(o, redactor, key)
	r.files.create = create
	return r
}

// TestStuckDisk writes to a pipe that no one reads, so that each write blocks. Calls must go on, records must be dropped
// and counted, and memory must be bounded.
func TestStuckDisk(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	const maxQueue = 1 << 20
	var log logbook
	r := newOn(t, Options{MaxQueueBytes: maxQueue, MaxBytesPerSecond: -1, Unredacted: true, Logger: funcr.New(log.write, funcr.Options{})},
		func(string) (io.WriteCloser, error) { return writer, nil })
	r.start()
	hook := pods().WithObserver(r)
	value := randomText(50 << 10)
	body := reviewOf("web", value)
	memory := heap()
	const calls = 300
	for range calls {
		if w := call(t, hook, hook.Path(), body); w.Code != http.StatusOK {
			t.Fatalf("answered %d: %s", w.Code, w.Body)
		}
		if s := r.Stats(); s.QueuedBytes > maxQueue {
			t.Fatalf("%d bytes are queued", s.QueuedBytes)
		}
	}
	// The pipe, the buffers and the call that is being written hold a few calls.
	s := r.Stats()
	if grown := heap() - memory; grown > 4*maxQueue {
		t.Errorf("the memory grew by %d bytes", grown)
	}
	if s.Calls != calls || s.QueueFull < calls-60 || s.Recorded != 0 {
		t.Errorf("got %+v", s)
	}
	await(t, "a message", func() bool { return len(log.with("calls were not recorded")) == 1 })

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); err == nil || !strings.Contains(err.Error(), "calls are not written, because the disk does not respond") {
		t.Errorf("got %v", err)
	}
	_ = reader.Close()
	if err := r.Close(t.Context()); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
	if s := r.Stats(); s.QueuedBytes != 0 || s.Calls != s.Recorded+s.NotSampled+s.dropped() {
		t.Errorf("got %+v", s)
	}
}

// randomText returns text that cannot be compressed well.
func randomText(n int) string {
	var out strings.Builder
	for x := uint64(1); out.Len() < n; x = x*6364136223846793005 + 1442695040888963407 {
		out.WriteByte(byte('!' + x>>33%93))
	}
	return out.String()
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// TestFullDisk writes to /dev/full, and then to a file again. Calls must go on, and recording must go on by itself.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		var attempts atomic.Int64
		full.Store(true)
		var log logbook
		r := newOn(t, Options{Dir: dir, Logger: funcr.New(log.write, funcr.Options{})}, func(name string) (io.WriteCloser, error) {
			attempts.Add(1)
			if full.Load() {
				return os.OpenFile("/dev/full", os.O_WRONLY, 0)
			}
			return createFile(name)
		})
		r.start()
		hook := pods().WithObserver(r)
		const seconds = 300
		for range seconds {
			if w := call(t, hook, hook.Path(), reviewOf("web", "x")); w.Code != http.StatusOK {
				t.Fatalf("answered %d: %s", w.Code, w.Body)
			}
			<-time.After(time.Second)
		}
		synctest.Wait()
		if s := r.Stats(); s.DiskFailed < seconds-2 || s.Recorded != 0 {
			t.Errorf("got %+v", s)
		}
		if n := attempts.Load(); n < 5 || n > 15 {
			t.Errorf("%d attempts to open a file in %d s", n, seconds)
		}
		if lines := log.with("calls were not recorded"); len(lines) < 4 || len(lines) > 6 || !strings.Contains(lines[0], "no space left on device") {
			t.Errorf("got %q", lines)
		}
		full.Store(false)
		<-time.After(lastRetry)
		call(t, hook, hook.Path(), reviewOf("web", "x"))
		<-time.After(2 * flushInterval)
		synctest.Wait()
		if s := r.Stats(); s.Recorded != 1 {
			t.Errorf("got %+v", s)
		}
		if calls := recorded(t, r); len(calls) != 1 {
			t.Errorf("got %d calls", len(calls))
		}
	})
}

// TestFlush requires that a record is on the disk after a second, so that it survives a crash.
func TestFlush(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Dir: dir})
		hook := pods().WithObserver(r)
		call(t, hook, hook.Path(), reviewOf("web", "x"))
		<-time.After(flushInterval + time.Millisecond)
		synctest.Wait()
		f, err := os.Open(filesOf(t, dir)[0])
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		reader := NewReader(f)
		if _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Next(); !errors.Is(err, io.EOF) || !errors.Is(reader.Report().CutOff, io.ErrUnexpectedEOF) {
			t.Errorf("got %v, %+v", err, reader.Report())
		}
		closeRecorder(t, r)
	})
}

// TestRotation requires that new files begin by size and by age, and that the oldest ones are deleted, also those of an
// earlier recorder.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.jsonl.gz")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		write := func(o Options, calls int, pause time.Duration) []*Call {
			o.Dir, o.MaxFiles, o.MaxBytesPerSecond = dir, 3, -1
			r := start(t, o)
			hook := pods().WithObserver(r)
			for range calls {
				call(t, hook, hook.Path(), reviewOf("web", randomText(40<<10)))
				<-time.After(pause)
			}
			return recorded(t, r)
		}
		write(Options{MaxFileBytes: 100 << 10, Unredacted: true}, 20, time.Millisecond)
		names := filesOf(t, dir)
		if len(names) != 3 {
			t.Fatalf("got the files %q", names)
		}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil || info.Size() > 200<<10 || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
		calls := write(Options{MaxFileAge: time.Hour}, 5, 40*time.Minute)
		if later := filesOf(t, dir); len(later) != 3 || later[0] <= names[2] {
			t.Errorf("got the files %q after %q", later, names)
		}
		if len(calls) != 5 {
			t.Errorf("got %d calls, want those of the last 3 files", len(calls))
		}
	})
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a file of others was deleted: %v", err)
	}
}
