// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"io"
	"log"
	"log/slog"
	"testing"

	"github.com/admitkit/admitkit/internal/leaks"
)

// TestMain silences the default logger of hooks, since most calls here fail on purpose.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard) // net/http's clients log close notices as unsolicited responses
	leaks.Main(m)
}
