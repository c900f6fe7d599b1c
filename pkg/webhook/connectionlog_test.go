// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A logbook collects log lines. It is safe for concurrent use.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) write(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// with returns the lines that contain a text.
func (l *logbook) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// TestFailedHandshakes makes five TLS handshakes fail for the same reason, for several classes of errors. The observer
// must see every failure. The log must contain one line for a class that is logged as an error, and none for any other
// class.
func TestFailedHandshakes(t *testing.T) {
	const times = 5
	for _, in := range []struct {
		class string
		error bool // logged as an error, once
		do    func(t *testing.T, e *endpoint, conn net.Conn)
		o     webhook.Options
	}{
		{class: "probe", do: func(*testing.T, *endpoint, net.Conn) {}},
		{class: "plaintext", do: func(_ *testing.T, _ *endpoint, conn net.Conn) {
			_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}},
		{class: "plaintext", do: func(_ *testing.T, _ *endpoint, conn net.Conn) {
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.9\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}},
		{class: "untrusted", error: true, do: func(t *testing.T, _ *endpoint, conn net.Conn) {
			if err := tls.Client(conn, &tls.Config{ServerName: "127.0.0.1"}).HandshakeContext(t.Context()); err == nil {
				t.Error("trusts it")
			}
		}},
		{class: "untrusted", error: true, do: func(t *testing.T, e *endpoint, conn net.Conn) {
			config := tls.Config{ServerName: "other.shop.svc", RootCAs: e.roots()}
			if err := tls.Client(conn, &config).HandshakeContext(t.Context()); err == nil {
				t.Error("trusts it")
			}
		}},
		{class: "version", do: func(t *testing.T, _ *endpoint, conn net.Conn) {
			_ = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).HandshakeContext(t.Context())
		}},
		{class: "version", do: func(t *testing.T, _ *endpoint, conn net.Conn) {
			_ = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"smtp"}}).HandshakeContext(t.Context())
		}},
		{class: "no_certificate", error: true, do: func(t *testing.T, _ *endpoint, conn net.Conn) {
			_ = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context())
		}, o: webhook.Options{TLSConfig: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("wait") }}}},
	} {
		t.Run(in.class, func(t *testing.T) {
			r, logs := &recorder{}, &logbook{}
			in.o.Observers, in.o.Logger = []webhook.Observer{r}, funcr.New(logs.write, funcr.Options{})
			e := serve(t, in.o, mutating(label))
			for range times {
				conn, done, err := e.dialUntil(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				in.do(t, e, conn)
				done()
			}
			err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
				return r.handshakesOf(in.class) == times, nil
			})
			if err != nil {
				t.Errorf("got %v", r.handshakes)
			}
			want := 0
			if in.error {
				want = 1
			}
			if lines := logs.with(`"class"`); len(lines) != want || want == 1 && !strings.Contains(lines[0], `"class"="`+in.class+`"`) {
				t.Errorf("got %q", lines)
			}
			if lines := logs.with("caBundle"); in.class == "untrusted" && len(lines) != 1 {
				t.Errorf("no advice: %q", lines)
			}
		})
	}
}
