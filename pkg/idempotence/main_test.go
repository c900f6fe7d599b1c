// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collections rare. The tests with package corpus allocate much memory and keep little of it, so
// this saves a quarter of their time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
