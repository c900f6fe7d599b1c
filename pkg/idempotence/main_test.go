// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"os"
	"runtime/debug"
	"testing"
)

// The tests of the corpus allocate much memory and keep little of it. Fewer garbage collections save a quarter of their
// time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
