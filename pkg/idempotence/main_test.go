// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"os"
	"runtime/debug"
	"testing"
)

// The tests of the corpus create much garbage and keep little of it. Collecting it less often saves a quarter of their
// time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
