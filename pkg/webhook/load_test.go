// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestLoad checks the result of Server.Load before a call, while its handler runs, after the call has timed out, and
// after the handler has returned.
func TestLoad(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{MaxInFlight: 10, MaxInFlightBytes: 20 << 20, MaxConnections: 30}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		check := func(when string, calls, waiting, connections int, held bool) {
			t.Helper()
			synctest.Wait()
			got := e.server.Load()
			if (got.Bytes > int64(len(call{}.body()))) != held {
				t.Errorf("%s: %d bytes", when, got.Bytes)
			}
			got.Bytes = 0
			want := webhook.Load{Calls: calls, MaxCalls: 10, Waiting: waiting, MaxBytes: 20 << 20, Connections: connections, MaxConnections: 30}
			if got != want {
				t.Errorf("%s:\n got %+v\nwant %+v", when, got, want)
			}
		}
		check("before", 0, 0, 0, false)
		answered := make(chan answer)
		go func() { answered <- e.ask(t, hook, call{}) }()
		<-d.arrived
		check("busy", 1, 1, 1, true)
		if a := <-answered; a.code != http.StatusGatewayTimeout {
			t.Errorf("got %s", a.body)
		}
		open := 0 // over HTTP/1.1 the answer closes the connection
		if h2 {
			open = 1
		}
		check("left behind", 1, 0, open, true)
		d.leave <- true
		check("back", 0, 0, open, false)
	})
}

func TestLoadOfAServerThatDoesNotServe(t *testing.T) {
	want := webhook.Load{MaxCalls: math.MaxInt, MaxBytes: math.MaxInt64, MaxConnections: 7}
	if got := webhook.NewServer(webhook.Options{MaxInFlight: -1, MaxInFlightBytes: -1, MaxConnections: 7}).Load(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheLimitsAreLogged(t *testing.T) {
	log := &logbook{}
	e := serve(t, webhook.Options{MaxInFlight: 7, MaxInFlightBytes: 24 << 20, Logger: funcr.New(log.write, funcr.Options{})}, mutating(admit))
	if err := e.stop(); err != nil { // the limits are logged by then
		t.Error(err)
	}
	const want = `"msg"="the limits of the webhook server" "maxInFlight"="7" "maxInFlightBytes"="24Mi" "maxBodyBytes"="16Mi" "maxConnections"="100" `
	if lines := log.with("the limits"); len(lines) != 1 || !strings.Contains(lines[0], want) {
		t.Errorf("got %q", lines)
	}
}

// TestDurationsAreReadableInJSON checks that durations are logged as text: slog would write
// nanoseconds, and zap seconds.
func TestDurationsAreReadableInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		logger := logr.FromSlogHandler(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
		ask(t, mutating(func(context.Context, *webhook.Request[corev1.Pod]) error {
			<-time.After(1500 * time.Millisecond)
			return nil
		}).WithLogger(logger), call{})
		if !strings.Contains(text.String(), `"duration":"1.5s"`) {
			t.Errorf("got %s", &text)
		}
	})
}
