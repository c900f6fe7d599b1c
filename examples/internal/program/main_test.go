// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// TestMain fails when a program that ended left a goroutine behind.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			fmt.Println("goroutines were left behind:")
			_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
			code = 1
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	os.Exit(code)
}
