// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A hostileClient runs a client that never completes a call, until the client is disconnected or ctx is done.
type hostileClient func(ctx context.Context, e *endpoint) error

// TestHostileClients runs many hostile clients of one kind at once, and makes normal calls at the same time. The normal
// calls must succeed. After the server stops, none of its goroutines may be left.
func TestHostileClients(t *testing.T) {
	for _, in := range []struct {
		reason string
		n      int
		do     hostileClient
	}{
		{reason: "connections that say nothing", n: 2000, do: silent},
		{reason: "idle connections", n: 300, do: idle},
		{reason: "slow headers", n: 200, do: slowly("POST /mutate/pods.example.com HTTP/1.1\r\nHost: a\r\nX-", "a")},
		{reason: "endless headers", n: 20, do: endlessly("POST /mutate/pods.example.com HTTP/1.1\r\nHost: a\r\nX-A: ")},
		{reason: "slow bodies", n: 50, do: slowly("POST /mutate/pods.example.com?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n", " ")},
		{reason: "endless bodies", n: 20, do: endlessly("POST /mutate/pods.example.com?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n")},
		{reason: "garbage for a handshake", n: 300, do: garbage},
		{reason: "streams that are reset", n: 5, do: resets},
	} {
		row(t, in.reason, func(t *testing.T) {
			hook := mutating(label)
			before := runtime.NumGoroutine()
			e := serve(t, webhook.Options{MaxConnections: 100, DrainTimeout: 5 * time.Second}, hook)
			e.ask(t, hook, call{}).allowed(t, call{}, true)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan string, in.n)
			for range in.n {
				go func() { ended <- fmt.Sprint(in.do(ctx, e)) }()
			}
			for left := in.n; left > 0; {
				for range 20 {
					e.ask(t, hook, call{}).allowed(t, call{}, true)
				}
				cancel() // after the first valid calls, end the hostile clients that are still connected
				for drained := false; !drained && left > 0; {
					select {
					case <-ended:
						left--
					default:
						drained = true
					}
				}
			}
			e.ask(t, hook, call{}).allowed(t, call{}, true)
			e.stopAll(t)
			e.client.CloseIdleConnections()
			cancel()
			err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
				return runtime.NumGoroutine() <= before+1, nil
			})
			if err != nil {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, before there were %d\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		})
	}
}

// dialUntil connects to the server. The connection closes when ctx is done or the returned function is called.
func (e *endpoint) dialUntil(ctx context.Context) (net.Conn, func(), error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(e.url, "https://"))
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, func() { stop(); _ = conn.Close() }, nil
}

// secured connects like dialUntil, and then makes a TLS handshake with this application protocol.
func (e *endpoint) secured(ctx context.Context, protocol string) (*tls.Conn, func(), error) {
	raw, done, err := e.dialUntil(ctx)
	if err != nil {
		return nil, nil, err
	}
	config := tlsInsecure.Clone()
	config.NextProtos = []string{protocol}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		done()
		return nil, nil, err
	}
	return conn, done, nil
}

func silent(ctx context.Context, e *endpoint) error {
	conn, done, err := e.dialUntil(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = io.Copy(io.Discard, conn)
	return err
}

func idle(ctx context.Context, e *endpoint) error {
	conn, done, err := e.secured(ctx, "http/1.1")
	if err != nil {
		return err
	}
	defer done()
	_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
	_, err = io.Copy(io.Discard, conn)
	return err
}

func slowly(head, more string) hostileClient {
	return func(ctx context.Context, e *endpoint) error {
		conn, done, err := e.secured(ctx, "http/1.1")
		if err != nil {
			return err
		}
		defer done()
		_, _ = io.WriteString(conn, head)
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for range ticks.C {
			if _, err := io.WriteString(conn, more); err != nil {
				return err
			}
		}
		return nil
	}
}

func endlessly(head string) hostileClient {
	return func(ctx context.Context, e *endpoint) error {
		conn, done, err := e.secured(ctx, "http/1.1")
		if err != nil {
			return err
		}
		defer done()
		_, _ = io.WriteString(conn, head)
		for chunk := strings.Repeat(" ", 1<<14); err == nil; {
			_, err = io.WriteString(conn, chunk)
		}
		return err
	}
}

func garbage(ctx context.Context, e *endpoint) error {
	conn, done, err := e.dialUntil(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, _ = io.WriteString(conn, strings.Repeat("\x16\x03\x01garbage", 100))
	_, err = io.Copy(io.Discard, conn)
	return err
}

// resets begins calls over HTTP/2 and resets each stream at once.
func resets(ctx context.Context, e *endpoint) error {
	conn, done, err := e.secured(ctx, "h2")
	if err != nil {
		return err
	}
	defer done()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, nil)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	for id := uint32(1); id < 1<<20; id += 2 {
		block.Reset()
		for _, f := range []hpack.HeaderField{
			{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "a"},
			{Name: ":path", Value: "/mutate/pods.example.com?timeout=30s"}, {Name: "content-type", Value: "application/json"},
		} {
			_ = encoder.WriteField(f)
		}
		err = errors.Join(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(block.String()), EndHeaders: true}),
			framer.WriteRSTStream(id, http2.ErrCodeCancel))
		if err != nil {
			return fmt.Errorf("after %d streams: %w", id/2, err)
		}
	}
	return nil
}
