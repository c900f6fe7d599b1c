// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestInstanceServesRequestsAsAServerDoes calls a handler in this process. The handler must get a request like that of
// an http.Server.
func TestInstanceServesRequestsAsAServerDoes(t *testing.T) {
	var after context.Context
	c := &instance{newHandler: func() http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.TLS == nil || !r.TLS.HandshakeComplete {
				t.Errorf("TLS is %+v", r.TLS)
			}
			if host, _, err := net.SplitHostPort(r.RemoteAddr); err != nil || net.ParseIP(host) == nil {
				t.Errorf("RemoteAddr is %q: %v", r.RemoteAddr, err)
			}
			if deadline, ok := r.Context().Deadline(); ok {
				t.Errorf("the handler knows the deadline of its client, %s", deadline)
			}
			if r.GetBody != nil || r.URL.Query().Get("timeout") != "5s" {
				t.Errorf("URL %s, GetBody %t", r.URL, r.GetBody != nil)
			}
			after = r.Context()
		})
	}}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if status, _, err := c.Call(ctx, []byte("{}")); err != nil || status != http.StatusOK {
			t.Errorf("status %d, %v", status, err)
		}
		if synctest.Wait(); after.Err() == nil {
			t.Error("the context goes on after the answer")
		}
	})
}

func TestInstanceCancelsTheContextOfAnAbandonedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan error, 1)
		c := &instance{newHandler: func() http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				heard <- r.Context().Err()
			})
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.Call(ctx, []byte("{}")); err == nil {
			t.Error("a handler that does not answer is no error")
		}
		if err := <-heard; !errors.Is(err, context.Canceled) {
			t.Errorf("the context ends with %v, want context.Canceled", err)
		}
	})
}

// TestRecorderIsLikeAServer compares responses with those of a server.
func TestRecorderIsLikeAServer(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"nothing": func(http.ResponseWriter, *http.Request) {},
		"a status after the body": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a"))
			w.WriteHeader(http.StatusInternalServerError)
		},
		"two statuses": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			w.WriteHeader(http.StatusInternalServerError)
		},
		"an early status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusForbidden)
		},
		"no content": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			_, _ = w.Write([]byte("a"))
		},
		"a flush": func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(http.StatusInternalServerError)
		},
	} {
		server := httptest.NewUnstartedServer(handler)
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about the second status
		server.Start()
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		server.Close()
		in := &instance{newHandler: func() http.Handler { return handler }}
		code, answer, err := in.Call(t.Context(), nil)
		if err != nil || code != response.StatusCode || !bytes.Equal(answer, body) {
			t.Errorf("%s: %d %q %v, but a server sends %d %q", name, code, answer, err, response.StatusCode, body)
		}
	}
}
