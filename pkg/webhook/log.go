// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// A hookLog is the logger of a hook.
type hookLog struct {
	name   string
	logger *logr.Logger // nil without WithLogger
}

// in returns the logger of the hook, or else the logger in ctx, or else slog's default.
func (l *hookLog) in(ctx context.Context) logr.Logger {
	log := contextLogger(ctx)
	if l.logger != nil {
		log = *l.logger
	}
	return log.WithValues("webhook", l.name)
}

// enabled reports whether V(1) is logged. It must be cheap, since every call uses it.
func (l *hookLog) enabled(ctx context.Context) bool {
	if l.logger != nil {
		return l.logger.V(1).Enabled()
	}
	if log, err := logr.FromContext(ctx); err == nil {
		return log.V(1).Enabled()
	}
	return slog.Default().Enabled(ctx, slog.LevelInfo-1)
}

// contextLogger returns the logger in ctx, or else slog's default.
func contextLogger(ctx context.Context) logr.Logger {
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

// A keyProbe is a context that records the key of the last Value.
type keyProbe struct {
	context.Context
	key any
}

func (p *keyProbe) Value(key any) any { p.key = key; return nil }
