// SPDX-License-Identifier: Apache-2.0

package need

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/apiserver/build"
)

// TestAPIServerIsThere fails if the API server is missing. go test hides the output of packages that pass, so the tests
// that APIServer skips would otherwise go unnoticed.
func TestAPIServerIsThere(t *testing.T) {
	if _, missing := missing(); missing && os.Getenv(Variable) != none {
		t.Fatal("tests that need a kube-apiserver did NOT RUN: `make apiserver` builds it (about 5 minutes, once); " +
			Variable + "=" + none + " skips them")
	}
}

func TestAPIServer(t *testing.T) {
	missing, complete := t.TempDir(), t.TempDir()
	for _, name := range build.Binaries {
		if err := os.WriteFile(complete+"/"+name, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		mode, assets, want string
	}{
		{"", complete, "runs"},
		{required, complete, "runs"},
		{none, complete, "is skipped"},
		{"", missing, "is skipped"},
		{required, missing, "fails"},
		{none, missing, "is skipped"},
	} {
		t.Run(row.mode+" "+row.want, func(t *testing.T) {
			t.Setenv(Variable, row.mode)
			t.Setenv(build.Assets, row.assets)
			t.Setenv("ADMITKIT_CACHE", missing)
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() { // FailNow and SkipNow end the goroutine that calls them
				defer close(done)
				APIServer(r)
				r.outcome = "runs"
			}()
			<-done
			if r.outcome != row.want {
				t.Errorf("%s=%q: the test %s, want that it %s", Variable, row.mode, r.outcome, row.want)
			}
			if strings.Contains(r.reason, "\n\n") {
				t.Errorf("the reason is more than a few lines:\n%s", r.reason)
			}
		})
	}
}

// A recorder is a testing.TB that records how APIServer ends a test.
type recorder struct {
	testing.TB
	outcome, reason string
}

func (r *recorder) Fatal(args ...any) { r.end("fails", args) }
func (r *recorder) Skip(args ...any)  { r.end("is skipped", args) }

func (r *recorder) end(outcome string, args []any) {
	r.outcome, r.reason = outcome, fmt.Sprint(args...)
	runtime.Goexit()
}
