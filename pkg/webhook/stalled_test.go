// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// stall opens an HTTP/2 connection whose client never accepts answers, and sends a probe request after each pause. If
// callFirst is true, it makes a call before.
func (e *endpoint) stall(t *testing.T, hook *webhook.Hook, pause time.Duration, callFirst bool) {
	t.Helper()
	conn, err := e.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	config := tlsInsecure.Clone()
	config.NextProtos = []string{"h2"}
	secure := tls.Client(conn, config)
	if _, err := io.WriteString(secure, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // for writing
	framer := http2.NewFramer(secure, secure)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	go func() {
		defer func() { _ = secure.Close() }()
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			mu.Lock()
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = framer.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !frame.IsAck() {
					_ = framer.WritePing(true, frame.Data)
				}
			}
			mu.Unlock()
		}
	}()
	id := uint32(1)
	ask := func(method, path string, body []byte) error {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		for _, field := range [][2]string{{":method", method}, {":path", path}, {":scheme", "https"}, {":authority", "a"}, {"content-type", "application/json"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		mu.Lock()
		defer mu.Unlock()
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: body == nil, EndHeaders: true})
		if body != nil && err == nil {
			err = framer.WriteData(id, true, body)
		}
		id += 2
		return err
	}
	if callFirst {
		_ = ask("POST", hook.Path(), call{}.body())
	}
	go func() {
		for ask("GET", "/healthz", nil) == nil {
			<-time.After(pause)
		}
	}()
}

// TestStalledConnectionsMakeRoom fills MaxConnections with connections whose clients do not read answers. A call on a
// new connection must succeed at once, because the server evicts one of these connections, even if it had a call
// before.
func TestStalledConnectionsMakeRoom(t *testing.T) {
	for name, callFirst := range map[string]bool{"without a call": false, "with a call": true} {
		row(t, name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook := mutating(admit)
				e := serveInMemory(t, webhook.Options{MaxConnections: 5}, hook)
				for range 5 {
					e.stall(t, hook, 7*time.Second, callFirst)
				}
				<-time.After(3 * time.Second)
				for range 10 {
					e.callAnew(t, hook, 0)
					e.stall(t, hook, 7*time.Second, callFirst)
					<-time.After(patience)
				}
				e.stopAll(t)
				<-time.After(time.Minute) // until the clients notice that their connections are closed
			})
		})
	}
}

// patience is how long a connection without a call may stay idle: newConnIdle of package server.
const patience = time.Second

// callAnew makes a call over a new connection. It fails the test if the call takes longer than most or is not admitted.
func (e *endpoint) callAnew(t *testing.T, hook *webhook.Hook, most time.Duration) {
	t.Helper()
	start, client := time.Now(), e.another()
	client.ask(t, hook, call{}).allowed(t, call{}, true)
	client.client.CloseIdleConnections()
	if took := time.Since(start); took > most {
		t.Errorf("it waited for %s", took)
	}
}

// TestProbesDoNotProtectAConnection fills MaxConnections with connections that keep sending probe requests. A call on a
// new connection must succeed at once, because the server evicts one of them.
func TestProbesDoNotProtectAConnection(t *testing.T) {
	for _, pause := range []time.Duration{10 * time.Millisecond, 400 * time.Millisecond, 900 * time.Millisecond} {
		row(t, pause.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook := mutating(admit)
				e := serveInMemory(t, webhook.Options{MaxConnections: 20}, hook)
				for range 20 {
					conn := e.dialTLS(t)
					go func() { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() }()
					go func() {
						for {
							if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
								return
							}
							<-time.After(pause)
						}
					}()
				}
				<-time.After(2 * time.Second)
				for range 10 {
					e.callAnew(t, hook, 0)
				}
				e.stopAll(t)
				<-time.After(time.Minute) // until the clients notice that their connections are closed
			})
		})
	}
}

// TestAnUnreadRestKeepsItsConnection rejects a call before its body was read, so that the next call on the connection
// must wait for the rest of that body. The server must wait 10 s for that rest before it evicts the connection,
// although another connection needs room.
func TestAnUnreadRestKeepsItsConnection(t *testing.T) {
	for name, comes := range map[string]bool{"comes": true, "does not come": false} {
		row(t, name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newBlockingHandler()
				hook := mutating(d.handle)
				e := serveInMemory(t, webhook.Options{MaxInFlight: 1, MaxConnections: 2}, hook)
				busy := make(chan answer)
				go func() { busy <- e.another().post(t, hook.Path()+"?timeout=30s", call{}.body()) }()
				<-d.arrived
				conn := e.dialTLS(t)
				answers := bufio.NewReader(conn)
				head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n ", hook.Path())
				_, _ = io.WriteString(conn, head)
				receive(t, answers, http.StatusTooManyRequests, false)
				start := time.Now()
				go func() { // a third connection, for which there is no room
					if third, err := e.dial(t.Context(), "", ""); err == nil {
						_ = third.Close()
					}
				}()
				if <-time.After(8 * time.Second); comes {
					_, _ = io.WriteString(conn, strings.Repeat(" ", 999)+head)
					resp, err := http.ReadResponse(answers, nil)
					if err != nil {
						t.Fatal(err)
					}
					// The connection was idle between the two calls, so it may have been closed with a notice.
					if got := resp.StatusCode; got != http.StatusTooManyRequests && got != http.StatusServiceUnavailable {
						t.Errorf("got %s", resp.Status)
					}
				} else {
					_, _ = io.Copy(io.Discard, answers)
					if took := time.Since(start); took != 10*time.Second {
						t.Errorf("the connection ended after %s", took)
					}
				}
				_ = conn.Close()
				d.leave <- true
				(<-busy).allowed(t, call{}, true)
				e.stopAll(t)
			})
		})
	}
}
