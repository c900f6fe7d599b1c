// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"testing"
)

// turnedAway says that the answer asks for the call to be made again after that many seconds.
func (a answer) turnedAway(tb testing.TB, code int, retryAfter string) {
	tb.Helper()
	if status := a.failed(tb); a.code != code || a.header.Get("Retry-After") != retryAfter || status.Code != int32(code) {
		tb.Fatalf("got %d with Retry-After %q, want %d with %q: %s", a.code, a.header.Get("Retry-After"), code, retryAfter, a.body)
	}
}
