// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admitkit/admitkit/pkg/external"
)

// A pipe is an in-memory listener. Its connections work in a synctest bubble, unlike those of a network.
type pipe chan net.Conn

func (p pipe) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipe) Close() error   { close(p); return nil }
func (p pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask returns an Options.Send that asks over HTTP whether an image is clean.
func ask(client *http.Client) func(context.Context, scan) (bool, error) {
	return func(ctx context.Context, q scan) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://scanner/?image="+url.QueryEscape(q.Images[0]), http.NoBody)
		if err != nil {
			return false, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return false, err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return false, errors.New("the scanner answered " + resp.Status)
		}
		var answer struct{ Clean *bool }
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			return false, err
		}
		if answer.Clean == nil {
			return false, errors.New("the scanner's answer has no field clean")
		}
		return *answer.Clean, nil
	}
}

// TestFaults breaks a service in many ways. In each case, a call with a deadline of 5 s ends after 4.5 s at most. Its
// result is the one that OnFailure chooses.
func TestFaults(t *testing.T) {
	reply := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for reason, in := range map[string]struct {
		handler http.HandlerFunc
		gone    bool
		works   bool
	}{
		"it works": {handler: reply(http.StatusOK, `{"clean":true}`), works: true},
		"it is slow": {handler: func(w http.ResponseWriter, r *http.Request) {
			pass(4 * time.Second)
			reply(http.StatusOK, `{"clean":true}`)(w, r)
		}, works: true},
		"it is too slow": {handler: func(w http.ResponseWriter, r *http.Request) {
			pass(5 * time.Second)
			reply(http.StatusOK, `{"clean":true}`)(w, r)
		}},
		"it hangs": {handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"it hangs in the body": {handler: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"clean":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		"it trickles": {handler: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				pass(time.Second)
			}
		}},
		"it answers garbage":        {handler: reply(http.StatusOK, "<html>")},
		"it answers another object": {handler: reply(http.StatusOK, `{"dirty":false}`)},
		"it answers an error":       {handler: reply(http.StatusInternalServerError, "")},
		"it closes connections":     {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"it is gone":                {gone: true},
	} {
		for _, failOpen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fail open is %v", reason, failOpen), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					listener := make(pipe)
					transport := &http.Transport{DialContext: listener.dial}
					if in.gone {
						transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
					}
					server := &http.Server{Handler: in.handler, ReadHeaderTimeout: time.Hour}
					go func() { _ = server.Serve(listener) }()
					o := options{Name: "scanner", Send: ask(&http.Client{Transport: transport}), OnFailure: external.Fail[scan, bool]}
					if failOpen {
						o.OnFailure = external.AnswerWith[scan](true)
					}
					service, err := external.New(o)
					if err != nil {
						t.Fatal(err)
					}
					for i := range 20 { // after ten failures the circuit is open
						start := time.Now()
						call, cancel := context.WithTimeout(t.Context(), 5*time.Second)
						clean, err := service.Ask(call, image(fmt.Sprint(i)))
						if took := time.Since(start); took > 4500*time.Millisecond || call.Err() != nil {
							t.Errorf("took %v", took)
						}
						cancel()
						if clean != (in.works || failOpen) || (err == nil) != (in.works || failOpen) {
							t.Errorf("got %v, %v", clean, err)
						}
					}
					pass(10 * time.Second) // the last request ends
					transport.CloseIdleConnections()
					_ = server.Close()
				})
			})
		}
	}
}
