// SPDX-License-Identifier: Apache-2.0

// Package need skips or fails a test that needs an API server, if this machine has none.
//
// If no API server is built, `go test ./...` skips the tests that need one. The test of this package then fails with
// one line that says how to build it. `make test` sets ADMITKIT_APISERVER=required, so that a missing API server fails
// each test that needs one. `make quick` sets ADMITKIT_APISERVER=none, so that these tests are skipped even if an API
// server is built.
package need

import (
	"fmt"
	"os"
	"testing"

	"github.com/admitkit/admitkit/internal/apiserver/build"
)

// Variable is the environment variable that decides whether a missing API server fails or skips the tests that need
// one.
const Variable = "ADMITKIT_APISERVER"

// Values of Variable.
const (
	required = "required" // a missing API server fails the test
	none     = "none"     // the test is skipped
)

// APIServer skips the test if there is no API server, or if the environment variable ADMITKIT_APISERVER is "none". If the
// variable is "required", a missing API server fails the test.
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

// APIServerForAll is for the TestMain of a package in which every test needs an API server. It skips or fails all of
// them as APIServer does. If it skips them, it ends the program, and go test prints "[no tests to run]" for the
// package.
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

// missing reports whether the tests that need an API server cannot run, and why.
func missing() (reason string, missing bool) {
	switch mode := os.Getenv(Variable); mode {
	case "", required:
		if _, err := build.Find(""); err != nil {
			return fmt.Sprintf("this test needs a kube-apiserver: %v", err), true
		}
		return "", false
	case none:
		return "this test needs a kube-apiserver, and " + Variable + " is " + none, true
	default:
		panic(Variable + " is " + mode + ", but must be unset, " + required + " or " + none)
	}
}

// Runs reports whether tests that need an API server run. If the API server is required but missing, they also run, and
// fail.
func Runs() bool {
	_, missing := missing()
	return !missing || os.Getenv(Variable) == required
}
