// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// WantError checks that err wraps target and contains all texts. target may be nil.
func WantError(t *testing.T, err, target error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", texts)
	}
	if target != nil && !errors.Is(err, target) {
		t.Errorf("got error %q, want one that is %q", err, target)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got error %q, want %q in it", err, text)
		}
	}
}

// LogLines is a logr.LogSink that sends each line to a channel.
type LogLines struct{ Lines chan string }

// NewLogLines returns a sink whose channel has room for 10,000 lines.
func NewLogLines() *LogLines { return &LogLines{make(chan string, 10000)} }

// Init implements logr.LogSink.
func (*LogLines) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (*LogLines) Enabled(int) bool { return true }

// WithName implements logr.LogSink.
func (s *LogLines) WithName(string) logr.LogSink { return s }

// WithValues implements logr.LogSink.
func (s *LogLines) WithValues(...any) logr.LogSink { return s }

// Info implements logr.LogSink.
func (s *LogLines) Info(_ int, m string, kv ...any) { s.Lines <- fmt.Sprint(m, kv) }

// Error implements logr.LogSink.
func (s *LogLines) Error(err error, m string, kv ...any) {
	s.Lines <- fmt.Sprint("error ", err, m, kv)
}
