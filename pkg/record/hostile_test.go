// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A noSpace is a file on a disk that has space for the first bytes only.
type noSpace struct {
	*os.File
	full *atomic.Bool
}

func (f noSpace) Write(p []byte) (int, error) {
	if !f.full.Load() {
		return f.File.Write(p)
	}
	n, err := f.File.Write(p[:min(len(p), 10)])
	if err != nil {
		return n, err
	}
	return n, syscall.ENOSPC
}

// TestFullDiskKeepsFiles requires that a full disk does not make a recorder delete the recordings that it has, nor leave
// files without records.
func TestFullDiskKeepsFiles(t *testing.T) {
	dir := t.TempDir()
	var before []string
	for i := range 3 {
		name := filepath.Join(dir, fmt.Sprintf("%s19990101T00000%d.000Z-00000000%s", filePrefix, i, fileSuffix))
		if err := os.WriteFile(name, []byte("a recording"), 0o600); err != nil {
			t.Fatal(err)
		}
		before = append(before, name)
	}
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		full.Store(true)
		r := newOn(t, Options{Dir: dir, MaxFiles: 3}, func(name string) (io.WriteCloser, error) {
			f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			return noSpace{f, &full}, err
		})
		r.start()
		hook := pods().WithObserver(r)
		for range 300 {
			call(t, hook, hook.Path(), reviewOf("web", "x"))
			<-time.After(time.Second)
		}
		synctest.Wait()
		if after := filesOf(t, dir); !slices.Equal(after, before) {
			t.Errorf("the files are %q, want %q", after, before)
		}
		full.Store(false)
		<-time.After(lastRetry)
		call(t, hook, hook.Path(), reviewOf("web", "x"))
		<-time.After(2 * flushInterval)
		synctest.Wait()
		if after := filesOf(t, dir); len(after) != 3 || !slices.Equal(after[:2], before[1:]) {
			t.Errorf("the files are %q, want the last two of %q and a new one", after, before)
		}
		closeRecorder(t, r)
	})
}

// TestHandlerAnswersFirst requires that the client gets the answer of a handler before the call is decoded and sampled.
// The test holds the lock of the sampler until then.
func TestHandlerAnswersFirst(t *testing.T) {
	for reason, length := range map[string]string{"with a length": "2", "without a length": ""} {
		t.Run(reason, func(t *testing.T) {
			r := start(t, Options{})
			server := httptest.NewServer(r.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				_, _ = io.WriteString(w, "{}")
			})))
			defer server.Close()
			r.sampler.mu.Lock()
			answered := make(chan error, 1)
			go func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, bytes.NewReader(reviewOf("web", "x")))
				if err != nil {
					answered <- err
					return
				}
				resp, err := http.DefaultClient.Do(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				answered <- err
			}()
			select {
			case err := <-answered:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("there is no answer")
			}
			r.sampler.mu.Unlock()
			await(t, "the record", func() bool { return r.Stats().Calls == 1 })
		})
	}
}
