// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"log/slog"
	"os"
	"testing"
)

// TestMain silences the logger that hooks without one fall back to: here most calls fail on
// purpose.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
