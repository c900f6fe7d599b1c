// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"
	"testing"
)

// What is said of a webhook that fails is not what is said of a law that is broken otherwise.
func TestFailuresHaveTheirOwnCause(t *testing.T) {
	for _, law := range []Law{L2, L4a, L5, L6, L9} {
		if cause := explain(law, FailureServerError).cause; cause == explain(law, "another way").cause && law != L2 || cause == "" {
			t.Errorf("%s fails: %q", law, cause)
		}
		if fix := explain(law, FailureServerError).fix; fix == "" {
			t.Errorf("%s fails: no fix", law)
		}
	}
}

// Each failure mode has a cause and a fix, in whole sentences.
func TestEveryFailureModeIsExplained(t *testing.T) {
	for _, mode := range failureModes {
		for _, law := range Laws {
			cause, fix := explain(law, mode).cause, explain(law, mode).fix
			if cause != "" && !strings.HasSuffix(cause, ".") || !strings.HasSuffix(fix, ".") && !strings.HasSuffix(fix, ")") || fix == "" {
				t.Errorf("%s %s: cause %q, fix %q", law, mode, cause, fix)
			}
		}
	}
}
