// SPDX-License-Identifier: Apache-2.0

// Package leaks makes the tests of a package fail if goroutines are still running after the last test.
package leaks

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// Main runs the tests of a package and exits the process. The exit code is 1 if a test fails, or if goroutines are
// still running 10 seconds after the last test. Call Main in TestMain.
func Main(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if fuzz := flag.Lookup("test.fuzz"); fuzz != nil && fuzz.Value.String() != "" {
		os.Exit(code) // go test -fuzz keeps goroutines of its own until the process ends
	}
	if !Gone(before, 10*time.Second) {
		fmt.Println("goroutines were left behind:")
		_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
		code = 1
	}
	os.Exit(code)
}

// Gone waits until the number of goroutines is at most before. It reports whether that happened within
// patience. A goroutine that was stopped needs a moment to end.
func Gone(before int, patience time.Duration) bool {
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			return false
		}
		<-time.After(10 * time.Millisecond)
	}
	return true
}
