// SPDX-License-Identifier: Apache-2.0

// Package need skips or fails a test that needs an API server where there is none.
//
// `go test ./...` skips the tests that need an API server where none is built, and this package
// fails with one line that says how to build it. `make test` sets ADMITKIT_APISERVER=required:
// then such a test fails. `make quick` sets ADMITKIT_APISERVER=none: then such a test is skipped
// even where an API server is built.
package need

import (
	"fmt"
	"os"
	"testing"

	"github.com/admitkit/admitkit/internal/apiserver/build"
)

// Variable is the environment variable that says whether tests without an API server fail or are skipped.
const Variable = "ADMITKIT_APISERVER"

// Values of Variable.
const (
	required = "required" // a missing API server fails the test
	none     = "none"     // the test is skipped
)

// APIServer ends a test for which there is no API server: it skips the test, or fails it if Variable
// says that an API server is required.
func APIServer(t testing.TB) {
	t.Helper()
	switch reason, missing := missing(); {
	case !missing:
	case os.Getenv(Variable) == required:
		t.Fatal(reason)
	default:
		t.Skip(reason) //nolint:forbidigo // the one place that skips: make test requires the API server, and go test fails this package
	}
}

// APIServerForAll is APIServer for a TestMain whose every test needs an API server. Where the tests are
// skipped, it ends the program, and go test prints "[no tests to run]" for the package.
func APIServerForAll() {
	switch reason, missing := missing(); {
	case !missing:
	case os.Getenv(Variable) == required:
		fmt.Fprintln(os.Stderr, reason)
		os.Exit(1)
	default:
		fmt.Println("testing: warning: no tests to run")
		os.Exit(0)
	}
}

// missing reports whether tests must do without an API server, and why.
func missing() (reason string, missing bool) {
	switch mode := os.Getenv(Variable); mode {
	case "", required:
		if _, err := build.Find(); err != nil {
			return fmt.Sprintf("this test needs a kube-apiserver: %v", err), true
		}
		return "", false
	case none:
		return "this test needs a kube-apiserver, and " + Variable + " is " + none, true
	default:
		panic(Variable + " is " + mode + ", but must be unset, " + required + " or " + none)
	}
}

// Runs reports whether tests that need an API server run. They also run, and fail, where the API
// server is required but missing.
func Runs() bool {
	_, missing := missing()
	return !missing || os.Getenv(Variable) == required
}
