// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// marking returns the registration and the handler of a webhook that annotates ConfigMaps. It passes all laws.
func marking() (admissionregistrationv1.MutatingWebhook, http.Handler) {
	w := editing("", "v1", "configmaps", onCreate, marked).webhooks[0]
	return w.MutatingWebhook, w.NewHandler()
}

// refusing returns an address at which nothing listens.
func refusing(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestUnreachableServerIsAnError runs the harness on webhooks at unreachable or invalid URLs. Run must return an error
// with the code of the cause.
func TestUnreachableServerIsAnError(t *testing.T) {
	registration, handler := marking()
	secure, plain := httptest.NewTLSServer(handler), httptest.NewServer(handler)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	mutual := httptest.NewUnstartedServer(handler)
	mutual.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	mutual.StartTLS()
	t.Cleanup(mutual.Close)
	trusting := secure.Client()
	otherName := secure.Client().Transport.(*http.Transport).Clone()
	otherName.TLSClientConfig.ServerName = "other.default.svc"
	for _, tt := range []struct {
		name   string
		client *http.Client
		urls   []string
		code   ReasonCode
	}{
		{"nothing listens", nil, []string{"https://" + refusing(t)}, ReasonConnectionRefused},
		{"one of the replicas", trusting, []string{secure.URL, "https://" + refusing(t)}, ReasonConnectionRefused},
		{"no such name", nil, []string{"https://hook.shop.svc.invalid"}, ReasonUnknownHost},
		{"a certificate that is not trusted", nil, []string{secure.URL}, ReasonCertificateUntrusted},
		{"a certificate for others", &http.Client{Transport: otherName}, []string{secure.URL}, ReasonCertificateName},
		{"no TLS", trusting, []string{strings.Replace(plain.URL, "http", "https", 1)}, ReasonNotTLS},
		{"a client certificate", trusting, []string{mutual.URL}, ReasonHandshakeEnded},
		{"no URL", nil, []string{"webhook.shop.svc:443"}, ReasonInvalidOptions},
		{"no host", nil, []string{"https:///mutate"}, ReasonInvalidOptions},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report, err := Run(t.Context(), URL(registration, tt.client, tt.urls...), Options{Objects: 2})
			if err == nil || !strings.HasPrefix(err.Error(), "cannot test the webhook: ") || codeOf(err) != tt.code {
				t.Errorf("error %v, want the code %s; report %v", err, tt.code, report)
			}
		})
	}
}

// TestServerThatStopsFailsNoLaw stops the server at the fifth call, after the response or without one. The harness must
// not report a failed law. A law without enough cases must be inconclusive. The object of a call without a response may
// be what ended the server, so the text must contain it.
func TestServerThatStopsFailsNoLaw(t *testing.T) {
	registration, handler := marking()
	for _, inCall := range []bool{false, true} {
		var calls atomic.Int64
		var server *httptest.Server
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r)
			if calls.Add(1) == 5 {
				w.Header().Set("Connection", "close")
				_ = server.Listener.Close()
				if inCall {
					panic(http.ErrAbortHandler)
				}
			}
		}))
		t.Cleanup(server.Close)
		report, err := Run(t.Context(), URL(registration, closing(server.Client()), server.URL), Options{Objects: 2})
		if err != nil || len(report.Findings) > 0 || len(report.Incomplete) != 1 || report.Incomplete[0].Code != ReasonServerLost || !report.Incomplete[0].Is(ReasonConnectionRefused) {
			t.Errorf("%v, findings %v, incomplete: %v", err, report.Findings, report.Incomplete)
		}
		if got := verdictOf(t, report, L12); got.Verdict != Inconclusive || got.Reason.Code != ReasonRunEnded {
			t.Errorf("%+v", got)
		}
		text := report.Incomplete[0].Text(nil)
		if !strings.Contains(text, "a server stopped answering: ") || strings.Contains(text, `If that object crashes the server, correct the server. Then start it and run again. The object: {"kind":`) != inCall {
			t.Errorf("without a response %v: %s", inCall, text)
		}
	}
}

// closing returns a client that opens a new connection for each call.
func closing(client *http.Client) *http.Client {
	transport := client.Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	return &http.Client{Transport: transport}
}

// TestBrokenConnectionIsRepeatedOnce breaks some connections of a run. The harness must repeat each broken call once.
// Two broken calls cause a note. Many make the run incomplete. If the repeated calls break too, a law fails.
func TestBrokenConnectionIsRepeatedOnce(t *testing.T) {
	registration, handler := marking()
	for _, tt := range []struct {
		name   string
		breaks func(call int64) bool
		broken bool
		says   string
	}{
		{"two, which a cable may do", func(call int64) bool { return call == 50 || call == 100 }, false, "note: 2 calls had to be repeated, because the connection broke\npasses: "},
		{"one in seven, each of which would be an error for a user", func(call int64) bool { return call%7 == 0 }, false, "had to be repeated, because the server broke the connection: the API server does not repeat a call"},
		{"all from the tenth on", func(call int64) bool { return call > 10 }, true, "had to be repeated, because the connection broke: see "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.breaks(calls.Add(1)) {
					panic(http.ErrAbortHandler)
				}
				handler.ServeHTTP(w, r)
			}))
			server.Start()
			t.Cleanup(server.Close)
			report, err := Run(t.Context(), URL(registration, nil, server.URL), Options{Objects: 2})
			if err != nil || report.OK() == tt.broken {
				t.Fatalf("%v:\n%s", err, text(report))
			}
			if got := text(report); !strings.Contains(strings.ReplaceAll(got, "\n              ", " "), tt.says) || len(report.Incomplete) > 0 && strings.Contains(got, "\npasses: ") {
				t.Errorf("no %q:\n%s", tt.says, got)
			}
		})
	}
}

// TestCauseNamesTheServersFailure makes the server fail in different ways. The cause and the fix of the finding must
// fit the failure, so that the author of the webhook knows where to look.
func TestCauseNamesTheServersFailure(t *testing.T) {
	for _, tt := range []struct {
		name             string
		fail             func(w http.ResponseWriter)
		cause, note, fix string
	}{
		{"a panic", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "The server closed the connection without a response, which usually means that its handler panicked: ", ", because the connection broke: see own output (L2)", " Recover from panics, so that the answer says what failed."},
		{"an error", func(w http.ResponseWriter) { http.Error(w, "KeyError", http.StatusInternalServerError) }, "The server answered with HTTP 500, which usually means that its handler returned an error or panicked", "", "returns webhook.Deny for that."},
		{"a proxy", func(w http.ResponseWriter) { http.Error(w, "no upstream", http.StatusBadGateway) }, "HTTP 502 usually comes from a proxy in front of the webhook", "", ""},
		{"too many calls", func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, "HTTP 503 usually comes from a proxy in front of the webhook", "", ""},
		{"none of these", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotImplemented) }, explain(L2, "fails").cause, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			registration, handler := marking()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || !strings.Contains(string(body), `"annotations"`) {
					tt.fail(w)
					return
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				handler.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			without := slices.DeleteFunc(slices.Clone(Laws), func(law Law) bool { return law == L2 })
			report, err := Run(t.Context(), URL(registration, server.Client(), server.URL), Options{Objects: 4, Without: without})
			if err != nil || len(report.Findings) != 1 || !strings.HasPrefix(report.Findings[0].Cause, tt.cause) || !strings.HasSuffix(report.Findings[0].Fix, tt.fix) {
				t.Fatalf("no finding with the cause %q and the fix %q: %v\n%s", tt.cause, tt.fix, err, text(report))
			}
			if last := report.Texts(report.Notes); !strings.HasSuffix(last, tt.note) || tt.note == "" && last != "" {
				t.Errorf("notes %q, want %q", last, tt.note)
			}
		})
	}
}

func TestReplicasHaveToAgree(t *testing.T) {
	registration, handler := marking()
	_, other := marking()
	differs := editing("", "v1", "configmaps", onCreate, counted).webhooks[0].NewHandler()
	one, two, three := httptest.NewServer(handler), httptest.NewServer(other), httptest.NewServer(differs)
	for _, s := range []*httptest.Server{one, two, three} {
		t.Cleanup(s.Close)
	}
	report, err := Run(t.Context(), URL(registration, nil, one.URL, two.URL), Options{Objects: 2})
	if err != nil || !report.OK() {
		t.Errorf("%v: replicas that agree:\n%s", err, text(report))
	}
	report, err = Run(t.Context(), URL(registration, nil, one.URL, two.URL, three.URL), Options{Objects: 2})
	if err != nil || !slices.ContainsFunc(report.Findings, func(v *Violation) bool {
		return v.Verdict == Impure && strings.Contains(v.Summary, "another replica")
	}) {
		t.Errorf("%v: one that differs is not found:\n%s", err, text(report))
	}
}

// TestRedirects tests a server that redirects calls. The harness must follow redirects as the API server does. After
// status 307, the call keeps its body and succeeds. After status 302, the body is missing and a law fails.
func TestRedirects(t *testing.T) {
	registration, handler := marking()
	mux := http.NewServeMux()
	mux.Handle("/mutate", handler)
	mux.Handle("/moved", http.RedirectHandler("/mutate", http.StatusTemporaryRedirect))
	mux.Handle("/found", http.RedirectHandler("/mutate", http.StatusFound))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for path, ok := range map[string]bool{"/moved": true, "/found": false} {
		report, err := Run(t.Context(), URL(registration, nil, server.URL+path), Options{Objects: 2})
		if err != nil || report.OK() != ok {
			t.Errorf("%s: %v:\n%s", path, err, text(report))
		}
	}
}

// TestFailingNewHandlerIsAnError passes a newHandler that is nil, returns nil or panics. Run must return an error.
func TestFailingNewHandlerIsAnError(t *testing.T) {
	registration, handler := marking()
	calls := 0
	for _, tt := range []struct {
		name       string
		newHandler func() http.Handler
		says       string
	}{
		{"none", nil, "newHandler is nil"},
		{"nil", func() http.Handler { return nil }, "newHandler returned nil"},
		{"a function that is nil", func() http.Handler { return http.HandlerFunc(nil) }, "newHandler returned nil"},
		{"a panic", func() http.Handler { panic("no scheme") }, "newHandler panicked: no scheme\n"},
		{"a panic later", func() http.Handler {
			if calls++; calls == 20 {
				panic("too many")
			}
			return handler
		}, "newHandler panicked: too many\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report, err := Run(t.Context(), Handler(registration, tt.newHandler), Options{Objects: 4})
			if err == nil || !strings.HasPrefix(err.Error(), "cannot test the webhook: ") || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want one that says %q; report %v", err, tt.says, report)
			}
		})
	}
}
