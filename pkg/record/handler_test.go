// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestHandler records calls of handlers that are not hooks.
func TestHandler(t *testing.T) {
	respond := func(code int, answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, answer)
		}
	}
	const begin = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1",`
	body := reviewOf("web", "hunter2")
	for _, in := range []struct {
		reason  string
		handler http.Handler
		outcome webhook.Outcome
		code    int
		answer  string // a part of the recorded one
	}{
		{"an admission", respond(200, begin+`"allowed":true}}`), webhook.Allowed, 200, `"allowed":true`},
		{"a patch", respond(200, begin+`"allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d"}}`),
			webhook.Mutated, 200, `"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d"`},
		{"a denial", respond(200, begin+`"allowed":false,"status":{"code":422,"message":"no hunter2"}}}`), webhook.Denied, 422, `"message":"no `},
		{"a denial without a code", respond(200, begin+`"allowed":false}}`), webhook.Denied, 400, `"allowed":false`},
		{"an error", respond(500, "database hunter2 down\n"), webhook.Failed, 500, "down"},
		{"an admission with a bad code", respond(500, begin+`"allowed":true}}`), webhook.Failed, 500, `"allowed":true`},
		{"no review", respond(200, `{}`), webhook.Failed, 200, "{}"},
		{"a patch that is not base64", respond(200, begin+`"allowed":true,"patch":"?hunter2"}}`), webhook.Failed, 200, `"patch":"`},
		{"no answer", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "", 0, ""},
		{"no answer after reading", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}), webhook.Failed, 0, ""},
		{"a hook", pods(), webhook.Allowed, 200, `"allowed":true`},
	} {
		t.Run(in.reason, func(t *testing.T) {
			r := start(t, Options{})
			server := httptest.NewServer(r.Handler(in.handler))
			defer server.Close()
			resp, err := http.Post(server.URL+"/policy?timeout=5s", "application/json", bytes.NewReader(body))
			if (err != nil) != (in.code == 0) {
				t.Fatal(err)
			}
			if err == nil { // without reading, the client would close the connection, perhaps before the handler has returned
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			server.Close()
			calls := recorded(t, r)
			if in.outcome == "" {
				if len(calls) != 0 {
					t.Errorf("got %+v", calls)
				}
				return
			}
			if len(calls) != 1 {
				t.Fatalf("got %d calls, %+v", len(calls), r.Stats())
			}
			got := calls[0]
			if got.Outcome != in.outcome || got.Code != in.code || got.Path != "/policy" || got.Webhook != "" || got.Duration <= 0 || (got.Type == "mutating") != (in.outcome == webhook.Mutated) {
				t.Errorf("got %+v", got)
			}
			if text := string(got.Answer); !strings.Contains(text, in.answer) || (text == "") != (in.answer == "") || strings.Contains(text+string(got.Request), "hunter2") {
				t.Errorf("got the answer %s to %s", got.Answer, got.Request)
			}
		})
	}
}

// TestHandlerChangesNothing compares the request and the answer with those of the handler alone. Only the header
// Accept-Encoding must be missing.
func TestHandlerChangesNothing(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Test", "a")
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, "%s %s %s [%s] ", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("Accept-Encoding"))
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(data)
	})
	r := start(t, Options{})
	for method, encoding := range map[string]string{http.MethodPost: "", http.MethodGet: "identity"} {
		want := ask(t, next, method)
		if got := ask(t, r.Handler(next), method); got != strings.Replace(want, "[identity]", "["+encoding+"]", 1) {
			t.Errorf("%s: got %q, want %q", method, got, want)
		}
	}
	if calls := recorded(t, r); len(calls) != 1 {
		t.Errorf("recorded %d calls", len(calls))
	}
}

// ask sends a review to a handler over HTTP and returns the answer as text.
func ask(t *testing.T, handler http.Handler, method string) string {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/a%2Fb?timeout=5s", bytes.NewReader(reviewOf("web", "x")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer hunter2hunter2")
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status + resp.Header.Get("X-Test") + string(data)
}

// TestCanceledCall requires that a call whose client goes away has the outcome Canceled.
func TestCanceledCall(t *testing.T) {
	r := start(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	handler := r.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		cancel()
		<-req.Context().Done()
		w.WriteHeader(http.StatusBadGateway)
	}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(reviewOf("web", "x"))))
	if calls := recorded(t, r); len(calls) != 1 || calls[0].Outcome != webhook.Canceled {
		t.Errorf("got %+v", calls)
	}
}

// TestHandlerWithoutMemory requires that a call which is too large for the queue goes on, and is counted.
func TestHandlerWithoutMemory(t *testing.T) {
	r := start(t, Options{MaxQueueBytes: 100})
	if w := call(t, r.Handler(pods()), "/", reviewOf("web", "x")); w.Code != http.StatusOK || !responseIn(t, w.Body.Bytes()).Allowed {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if calls := recorded(t, r); len(calls) != 0 || r.Stats() != (Stats{Calls: 1, QueueFull: 1}) {
		t.Errorf("got %+v", r.Stats())
	}
}
