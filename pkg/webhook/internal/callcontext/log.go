// SPDX-License-Identifier: Apache-2.0

package callcontext

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// A HookLog is the logger of a hook.
type HookLog struct {
	Name   string
	Logger *logr.Logger // nil without WithLogger
}

// in returns the logger of the hook, or else the logger in ctx, or else slog's default.
func (l *HookLog) in(ctx context.Context) logr.Logger {
	log := LoggerIn(ctx)
	if l.Logger != nil {
		log = *l.Logger
	}
	return log.WithValues("webhook", l.Name)
}

// enabled reports whether V(1) is logged. It must be cheap, since every call uses it.
func (l *HookLog) enabled(ctx context.Context) bool {
	if l.Logger != nil {
		return l.Logger.V(1).Enabled()
	}
	if log, err := logr.FromContext(ctx); err == nil {
		return log.V(1).Enabled()
	}
	return slog.Default().Enabled(ctx, slog.LevelInfo-1)
}

// LoggerIn returns the logger in ctx, or else slog's default.
func LoggerIn(ctx context.Context) logr.Logger {
	if log, err := logr.FromContext(ctx); err == nil {
		return log
	}
	return logr.FromSlogHandler(slog.Default().Handler())
}

// loggerKey is the key under which logr.FromContext finds the logger of a context.
var loggerKey = func() any {
	var probe keyProbe
	_, _ = logr.FromContext(&probe)
	return probe.key
}()

// A keyProbe is a context that records the key of the last call of its method Value.
type keyProbe struct {
	context.Context
	key any
}

func (p *keyProbe) Value(key any) any { p.key = key; return nil }
