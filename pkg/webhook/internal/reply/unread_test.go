// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// late is a body that ends after a delay.
type late struct{ after time.Duration }

func (l late) Read([]byte) (int, error) { <-time.After(l.after); return 0, io.EOF }
func (late) Close() error               { return nil }

// TestDiscardClosesTheConnectionAtItsDeadline ends a body just before, at and just after the read deadline. From the
// deadline on, Discard must close the connection. Otherwise the next read of net/http would fail. net/http would take
// that for a client that hung up, and cancel the contexts of later calls.
func TestDiscardClosesTheConnectionAtItsDeadline(t *testing.T) {
	for after, want := range map[time.Duration]any{
		DiscardUntimely - 1: nil,
		DiscardUntimely:     http.ErrAbortHandler,
		DiscardUntimely + 1: http.ErrAbortHandler,
	} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer func() {
					if got := recover(); got != want {
						t.Errorf("got %v, want %v", got, want)
					}
				}()
				r := httptest.NewRequest(http.MethodPost, "/", late{after})
				Discard(httptest.NewRecorder(), r, DiscardUntimely)
			})
		})
	}
}
