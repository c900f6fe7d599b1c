// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// TestLeftOut compares the result for an object that had a part already with the result for an object without it. An
// element must not count as left out if another one has the same name.
func TestLeftOut(t *testing.T) {
	const before, plain = `{"spec":{"rules":[]}}`, `{"spec":{"rules":[{"name":"a","on":"failure"}]}}`
	for result, want := range map[string]string{
		`{"spec":{"rules":[{"name":"a","on":"failure"}]}}`:                       "",
		`{"spec":{"rules":[{"name":"a","on":"failure"},{"name":"a","on":"x"}]}}`: "",
		`{"spec":{"rules":[{"name":"a","on":"x"},{"name":"a","on":"y"}]}}`:       "",
		`{"spec":{"rules":[{"name":"b","on":"x"},{"name":"b","on":"y"}]}}`:       "spec.rules[name=a]",
		`{"spec":{"rules":[]}}`: "spec.rules[name=a]",
	} {
		outcomeOf := func(text string) *session.Outcome { return session.Admitted(&objects.Object{Doc: parsed(t, text)}) }
		c, _ := partsThere{NewTrial(nil, Options{})}.leftOut(L5, outcomeOf(before).After, outcomeOf(plain), outcomeOf(result))
		if got := c.Path.String(); got != want {
			t.Errorf("%s: %q is left out, want %q", result, got, want)
		}
	}
}
