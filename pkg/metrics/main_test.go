// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// TestMain silences the logger of servers, whose calls fail on purpose, and fails when a test
// left a goroutine behind.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
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
