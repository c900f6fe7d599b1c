// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// TestCasesMakeTheirOwnCalls fills the cache of results. Only later cases must find a result there, because a law that
// sends a request twice must see both responses.
func TestCasesMakeTheirOwnCalls(t *testing.T) {
	u := reuse{}
	u.keep()
	first := &session.Outcome{}
	u.now[objects.Digest{1}] = first
	if u.earlier[objects.Digest{1}] != nil {
		t.Error("a case reuses its own result")
	}
	if u.keep(); u.earlier[objects.Digest{1}] != first || len(u.now) > 0 {
		t.Errorf("%+v", u)
	}
	for i := range 3 * mostReused {
		u.now[objects.Digest{2, byte(i)}] = first
		if u.keep(); len(u.earlier) > mostReused {
			t.Fatalf("%d results are cached", len(u.earlier))
		}
	}
}
