// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// dryRun checks L7: a dry run gives the same result and has no side effect.
type dryRun struct{ *Trial }

func (l dryRun) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok || !l.TakesDryRuns() {
		return nil
	}
	never := l.F(l.Fresh(), session.Query{Object: x})
	s := l.Fresh()
	before := l.observe()
	dry := l.F(s, session.Query{Object: x, DryRun: true})
	if after := l.observe(); !bytes.Equal(before, after) {
		return l.Finding(c, SideEffect, fmt.Sprintf("a dry run has a side effect: %s → %s", before, after), dry)
	}
	if v := l.sameAs(c, never, dry, "a dry run"); v != nil {
		return v
	}
	return l.sameAs(c, never, l.F(s, session.Query{Object: x}), "the call after a dry run")
}

// observe returns the state that the webhook writes outside of the object, from Options.Observe.
func (l dryRun) observe() []byte {
	if l.Observe == nil {
		return nil
	}
	text, err := json.Marshal(l.Observe())
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
