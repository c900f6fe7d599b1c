// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// slowly writes a file in place, in pieces, with a pause before each piece.
func slowly(t *testing.T, path string, pause time.Duration, pieces ...string) {
	file, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = file.Close() }()
	for _, piece := range pieces {
		<-time.After(pause)
		if _, err := file.WriteString(piece); err != nil {
			t.Error(err)
		}
	}
}

// TestHalfWrittenFileIsNotLoaded reads a file at different times while it is written slowly. A half-written file looks
// like any other file, but must never be loaded.
func TestHalfWrittenFileIsNotLoaded(t *testing.T) {
	const step = DefaultPause / 5
	for delay := time.Duration(1); delay < 5*step; delay += step / 2 {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				if err := f.Load(); err != nil {
					t.Fatal(err)
				}
				go slowly(t, f.a, step, "h", "a", "l", "f")
				<-time.After(delay)
				if err := f.Reload(t.Context()); err != nil {
					t.Error(err)
				}
				f.want(t, "half+two", 2, "")
				if f.parses != 2 {
					t.Errorf("parsed %d times, want 2", f.parses)
				}
			})
		})
	}
}

// TestFirstLoadTakesNoPause checks that the first Load takes no time, even if it fails, because a program waits for it.
// Reload must not pause either if the files have not changed.
func TestFirstLoadTakesNoPause(t *testing.T) {
	for _, why := range []string{"good", "bad", "missing"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			switch why {
			case "bad":
				write(t, f.a, "BAD")
			case "missing":
				os.Remove(f.a)
			}
			start := time.Now()
			first, second := f.Load(), f.Reload(t.Context()) // unchanged files take no pause either
			if took := time.Since(start); took > 0 || (first == nil) != (why == "good") || fmt.Sprint(second) != fmt.Sprint(first) {
				t.Errorf("%s: %v and %v, in %s", why, first, second, took)
			}
		})
	}
}

func TestFileThatKeepsChangingIsNotReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		rounds := 0
		f.readFile = func(path string, most int64) ([]byte, error) {
			if path == f.a {
				rounds++
				return fmt.Append(nil, rounds), nil
			}
			return readFile(path, most)
		}
		if err := f.Load(); err != nil {
			t.Fatal(err)
		}
		f.want(t, "4+two", 1, "")
		for range 2 {
			_ = f.Reload(t.Context())
			f.want(t, "4+two", 1, f.a+", "+f.b+": did not stay unchanged for 250ms: it may be half written")
		}
		f.readFile = func(path string, most int64) ([]byte, error) { return []byte("rest"), nil }
		if err := f.Reload(t.Context()); err != nil {
			t.Error(err)
		}
		f.want(t, "rest+rest", 2, "")
	})
}

// TestRunStopsDuringAPause checks that Run returns at once when its context is canceled, even during a pause between
// two reads.
func TestRunStopsDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.opts.Pause = time.Hour
		if err := f.Load(); err != nil {
			t.Fatal(err)
		}
		write(t, f.a, "new")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { f.Run(ctx, time.Second); close(ended) }()
		<-time.After(2 * time.Second)
		start := time.Now()
		stop()
		<-ended
		if took := time.Since(start); took > 0 {
			t.Errorf("it took %s", took)
		}
		f.want(t, "one+two", 1, "")
		if len(f.reports) != 1 {
			t.Errorf("reported %q, want one", f.reports)
		}
	})
}
