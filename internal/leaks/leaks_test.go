// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"runtime"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestGone(t *testing.T) {
	before, end := runtime.NumGoroutine(), make(chan struct{})
	go func() { <-end }()
	if Gone(before, 50*time.Millisecond) {
		t.Error("a goroutine that waits is not seen")
	}
	close(end)
	if !Gone(before, time.Minute) {
		t.Error("a goroutine that has ended is still seen")
	}
}
