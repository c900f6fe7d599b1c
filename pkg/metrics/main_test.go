// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"log/slog"
	"testing"

	"github.com/admitkit/admitkit/internal/leaks"
)

// TestMain silences the logger of servers, since calls fail on purpose.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	leaks.Main(m)
}
