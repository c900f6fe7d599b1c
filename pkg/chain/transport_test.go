// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/chain"
)

// A server answers webhook calls over TLS and records the requests.
type server struct {
	*httptest.Server
	asked chan *http.Request
}

func newServer(t *testing.T, config *tls.Config) *server {
	t.Helper()
	s := &server{asked: make(chan *http.Request, 10)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked <- r
		patching(addLabel("seen", "yes")).ServeHTTP(w, r)
	}))
	s.TLS = config
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestCallsOverTLS(t *testing.T) {
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	config, err := ca.Serving("127.0.0.1", "localhost", "hooks.team.svc")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, config)
	port := s.Listener.Addr().(*net.TCPAddr).Port
	resolve := chain.Options{ResolveService: func(_ context.Context, namespace, name string, port int32) (string, error) {
		if at := fmt.Sprintf("%s/%s:%d", namespace, name, port); at != "team/hooks:8443" {
			return "", fmt.Errorf("no service %s", at)
		}
		return s.Listener.Addr().String(), nil
	}}
	service := func(name string) *admissionregistrationv1.ServiceReference {
		return &admissionregistrationv1.ServiceReference{Namespace: "team", Name: name, Path: ptr.To("/mutate"), Port: ptr.To[int32](8443)}
	}
	for _, test := range []struct {
		name   string
		config admissionregistrationv1.WebhookClientConfig
		host   string
		proto  string
		path   string
		text   string // of the rejection
	}{
		{"URL on loopback", admissionregistrationv1.WebhookClientConfig{URL: ptr.To(fmt.Sprintf("https://127.0.0.1:%d/mutate/", port)), CABundle: ca.Bundle},
			fmt.Sprintf("127.0.0.1:%d", port), "HTTP/2.0", "/mutate", ""},
		{"URL of localhost", admissionregistrationv1.WebhookClientConfig{URL: ptr.To(fmt.Sprintf("https://localhost:%d", port)), CABundle: ca.Bundle},
			fmt.Sprintf("localhost:%d", port), "HTTP/2.0", "/", ""},
		{"service", admissionregistrationv1.WebhookClientConfig{Service: service("hooks"), CABundle: ca.Bundle},
			"hooks.team.svc:8443", "HTTP/1.1", "/mutate", ""},
		{"missing service", admissionregistrationv1.WebhookClientConfig{Service: service("other"), CABundle: ca.Bundle},
			"", "", "", `failed calling webhook "a.example.com": failed to call webhook: Post "https://other.team.svc:8443/mutate?timeout=10s": no service team/other:8443`},
		{"no caBundle", admissionregistrationv1.WebhookClientConfig{URL: ptr.To(fmt.Sprintf("https://127.0.0.1:%d/", port))},
			"", "", "", "certificate signed by unknown authority"},
		{"caBundle that is none", admissionregistrationv1.WebhookClientConfig{URL: ptr.To(fmt.Sprintf("https://127.0.0.1:%d/", port)), CABundle: []byte("x")},
			"", "", "", "could not get REST client: unable to load root certificates"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newChain(t, chain.Webhooks{Mutating: mutating(mutatingHook("a.example.com", func(h *admissionregistrationv1.MutatingWebhook) {
				h.ClientConfig = test.config
			}))}, resolve)
			got := admit(t, c, createPod("web"))
			checkResult(t, got)
			if test.text != "" {
				if r := got.Rejection; r == nil || r.Code != 500 || !strings.Contains(r.Message, test.text) {
					t.Errorf("the rejection is %+v", r)
				}
				if call := got.Calls[0]; call.Effect != chain.Failed || call.Response != nil {
					t.Errorf("the call is %+v", call)
				}
				return
			}
			if got.Rejection != nil {
				t.Fatal(got.Rejection.Message)
			}
			r := <-s.asked
			if r.Host != test.host || r.Proto != test.proto || r.URL.Path != test.path || r.UserAgent() != "kube-apiserver-admission" || r.URL.Query().Get("timeout") != "10s" {
				t.Errorf("asked %s for %s%s by %s", r.Proto, r.Host, r.URL, r.UserAgent())
			}
			if len(got.Calls) != 1 || !got.Calls[0].Mutated || len(got.Calls[0].Response) == 0 {
				t.Errorf("the calls are %+v", got.Calls)
			}
		})
	}
}

// TestWebhooksWithOneAddress registers two webhooks with the same address. The engine must call both, and must not mix
// up their calls.
func TestWebhooksWithOneAddress(t *testing.T) {
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	config, err := ca.Serving("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, config)
	at := func(h *admissionregistrationv1.MutatingWebhook) {
		h.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: ptr.To(s.URL), CABundle: ca.Bundle}
	}
	got := admit(t, newChain(t, chain.Webhooks{Mutating: mutating(mutatingHook("a.example.com", at), mutatingHook("b.example.com", at))}), createPod("web"))
	checkResult(t, got)
	if trace(got) != "a0 b0" || !got.Calls[0].Mutated || got.Calls[1].Mutated {
		t.Errorf("the calls are %s: %+v", trace(got), got.Calls)
	}
}

// TestHandlersSeeARequest checks that a handler receives a request as an HTTP server would pass it on, with the path in
// the clientConfig.
func TestHandlersSeeARequest(t *testing.T) {
	var seen *http.Request
	c := newChain(t, chain.Webhooks{
		Validating: validating(validatingHook("a.example.com", func(h *admissionregistrationv1.ValidatingWebhook) {
			h.ClientConfig = admissionregistrationv1.WebhookClientConfig{CABundle: []byte("\n"),
				Service: &admissionregistrationv1.ServiceReference{Namespace: "team", Name: "hooks", Path: ptr.To("/validate/")}}
			h.AdmissionReviewVersions = []string{"v2", "v1beta1", "v1"}
		})),
		Handlers: map[string]http.Handler{"a.example.com": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = r
			if _, ok := r.Context().Deadline(); ok {
				t.Error("a server does not know its client's deadline")
			}
			allowing().ServeHTTP(w, r)
		})},
	})
	got := admit(t, c, createPod("web"))
	if got.Rejection != nil {
		t.Fatal(got.Rejection.Message)
	}
	if seen.Host != "hooks.team.svc:443" || seen.RequestURI != "/validate?timeout=10s" || seen.Method != http.MethodPost ||
		seen.Header.Get("Content-Type") != "application/json" || seen.URL.Host != "" || seen.TLS == nil || seen.ContentLength < 100 {
		t.Errorf("the request is %+v", seen)
	}
	if !strings.HasPrefix(string(got.Calls[0].Request), `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"`) {
		t.Errorf("the body is %s", got.Calls[0].Request)
	}
}
