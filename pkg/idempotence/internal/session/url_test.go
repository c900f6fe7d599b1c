// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestURLCallerBoundsTheResponse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range mostAnswerBytes>>20 + 1 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	c := &urlCaller{client: DefaultClient(), url: server.URL, connection: &Connection{}}
	if _, _, err := c.Call(t.Context(), []byte("{}")); err == nil || err.Error() != "the answer is larger than 64 MiB" {
		t.Errorf("error %v", err)
	}
}

func TestDefaultClientIgnoresTheProxyOfTheEnvironment(t *testing.T) {
	if transport := DefaultClient().Transport.(*http.Transport); transport.Proxy != nil || transport.TLSClientConfig.InsecureSkipVerify || transport.TLSClientConfig.MinVersion < tls.VersionTLS12 {
		t.Errorf("%+v", transport)
	}
}

func TestURLCallerTimesOut(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices the end of the connection only after it has read the body
		if calls.Add(1) > 1 {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	c := &urlCaller{client: DefaultClient(), url: server.URL, connection: &Connection{}}
	if _, _, err := c.Call(t.Context(), []byte("{}")); err != nil { // a timeout while connecting would end the run
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := c.Call(ctx, []byte("{}")); !errors.Is(err, context.DeadlineExceeded) || c.connection.Ended() {
		t.Errorf("error %v, connection %+v: a timeout must not end the run", err, c.connection)
	}
}

func TestTimeLeft(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{10*time.Second - time.Millisecond: 10 * time.Second, time.Millisecond: time.Second, -time.Second: time.Second} {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		if got := timeLeft(ctx); got != want {
			t.Errorf("%s: %s, want %s", left, got, want)
		}
		cancel()
	}
	if got := timeLeft(t.Context()); got != 10*time.Second {
		t.Errorf("without a deadline: %s", got)
	}
}
