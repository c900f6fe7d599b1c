// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A late body ends, but not before some time has passed.
type late struct{ after time.Duration }

func (l late) Read([]byte) (int, error) { <-time.After(l.after); return 0, io.EOF }
func (late) Close() error               { return nil }

// TestDiscardIsOverWithItsTime has a body end at the last moment, or at one at which the deadline for
// reading is over: then what net/http reads next fails, and it would take that for a client that
// hung up, and end the contexts of the calls that follow.
func TestDiscardIsOverWithItsTime(t *testing.T) {
	for after, want := range map[time.Duration]any{
		discardOthers - 1: nil,
		discardOthers:     http.ErrAbortHandler,
		discardOthers + 1: http.ErrAbortHandler,
	} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer func() {
					if got := recover(); got != want {
						t.Errorf("got %v, want %v", got, want)
					}
				}()
				r := httptest.NewRequest(http.MethodPost, "/", late{after})
				discard(httptest.NewRecorder(), r, discardOthers)
			})
		})
	}
}
