// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// stackKey is the key of the stack trace that package webhook logs after a panic.
const stackKey = "stack"

// A traceHandler writes each record as one line of text, and below it the stack trace, one indented line for each frame.
type traceHandler struct {
	slog.Handler
	out   io.Writer
	trace string // stack trace for all records, from WithAttrs
}

func newTraceHandler(out io.Writer) *traceHandler {
	return &traceHandler{Handler: slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn}), out: out}
}

// Handle writes a record, and below it the stack trace if the record has one.
func (h *traceHandler) Handle(ctx context.Context, r slog.Record) error {
	var all []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		all = append(all, a)
		return true
	})
	others, trace := h.split(all)
	line := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	line.AddAttrs(others...)
	err := h.Handler.Handle(ctx, line)
	if err == nil && trace != "" {
		_, err = io.WriteString(h.out, framesOf(trace))
	}
	return err
}

// split separates a stack trace from other attributes.
func (h *traceHandler) split(attrs []slog.Attr) (others []slog.Attr, trace string) {
	trace = h.trace
	for _, a := range attrs {
		if a.Key == stackKey {
			trace = a.Value.String()
		} else {
			others = append(others, a)
		}
	}
	return others, trace
}

// WithAttrs returns a handler whose records have further attributes.
func (h *traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	others, trace := h.split(attrs)
	return &traceHandler{h.Handler.WithAttrs(others), h.out, trace}
}

// WithGroup returns a handler whose attributes are in a group.
func (h *traceHandler) WithGroup(name string) slog.Handler {
	return &traceHandler{h.Handler.WithGroup(name), h.out, h.trace}
}

// framesOf returns the functions and positions of a stack trace, from the panic up to the code that calls the handler
// of a hook.
func framesOf(trace string) string {
	if _, below, ok := strings.Cut(trace, "\npanic("); ok { // above it are the functions that wrote the trace
		_, trace, _ = strings.Cut(below, "\n")
		_, trace, _ = strings.Cut(trace, "\n")
	}
	var out strings.Builder
	lines := strings.Split(strings.TrimSpace(trace), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		function, position := lines[i], strings.TrimSpace(lines[i+1])
		if strings.HasPrefix(function, "github.com/admitkit/admitkit/pkg/webhook.(") {
			break
		}
		position, _, _ = strings.Cut(position, " +0x")
		out.WriteString("    at " + position + "  " + function + "\n")
	}
	return out.String()
}
