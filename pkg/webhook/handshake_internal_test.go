// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// TestHandshakeObserverThatPanics checks that a panic in HandshakeFailed is recovered and logged.
func TestHandshakeObserverThatPanics(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	handshakeObserver(log, []Observer{struct {
		Observer
		panicking
	}{}})("probe")
	if len(lines) != 1 || !strings.Contains(lines[0], "an observer of calls panicked") {
		t.Errorf("got %q", lines)
	}
}

type panicking struct{}

func (panicking) HandshakeFailed(string) { panic("oh") }
