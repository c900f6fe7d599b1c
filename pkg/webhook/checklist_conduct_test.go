// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func TestW9_20_NeverPatchesOnDeleteNorFixedFields(t *testing.T) {
	hook := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		switch {
		case req.Object == nil:
			req.Object = &corev1.Pod{}
		case req.Name == "kind":
			req.Object.Kind = "Node"
		case req.Name == "apiVersion":
			req.Object.APIVersion = "v2"
		case req.Name == "namespace":
			req.Object.Namespace = "other"
		case req.Name == "managedFields":
			req.Object.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "me"}}
		}
		return nil
	})
	e := serve(t, webhook.Options{}, hook)
	del := call{operation: admissionv1.Delete, oldObject: thePod}
	if patch, _ := e.ask(t, hook, del).allowed(t, del, true); patch != "" {
		t.Errorf("DELETE has no object, but there is a patch: %s", patch)
	}
	for name, place := range map[string]string{
		"kind": "kind", "apiVersion": "apiVersion", "namespace": "metadata.namespace", "managedFields": "metadata.managedFields",
	} {
		want := "the handler changed " + place + ", which a webhook must not change"
		if got := e.ask(t, hook, call{name: name}).failed(t).Message; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	exec := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "exec.example.com", Rules: webhook.Rules(webhook.OnConnect("", "v1", "pods/exec"))},
		func(_ context.Context, req *webhook.Request[corev1.PodExecOptions]) error {
			req.Object.TTY = false
			return nil
		})
	connect := call{operation: admissionv1.Connect, kind: "/v1/PodExecOptions", sub: "exec", object: `{"kind":"PodExecOptions","apiVersion":"v1","tty":true,"new":1}`}
	_, options := serve(t, webhook.Options{}, exec).ask(t, exec, connect).allowed(t, connect, true)
	wantJSON(t, options, `{"kind":"PodExecOptions","apiVersion":"v1","new":1}`)
}

func TestW9_21_IsIdempotentAndRepeatsItsAnswerForAUID(t *testing.T) {
	hook := mutating(label)
	e := serve(t, webhook.Options{}, hook)
	first := e.ask(t, hook, call{})
	if again := e.ask(t, hook, call{}); !bytes.Equal(first.body, again.body) {
		t.Errorf("one call, two answers:\n%s%s", first.body, again.body)
	}
	_, patched := first.allowed(t, call{}, true)
	c := call{object: patched}
	if patch, _ := e.ask(t, hook, c).allowed(t, c, true); patch != "" {
		t.Errorf("its own output is patched again: %s", patch)
	}
}

func TestW9_22_GivesRepeatedCallsTheSameAnswer(t *testing.T) {
	hook := mutating(label)
	e := serve(t, webhook.Options{}, hook)
	update := call{operation: admissionv1.Update, object: thePod, oldObject: thePod}
	terminating := call{operation: admissionv1.Delete, oldObject: strings.Replace(thePod, `"name":"web"`, `"name":"web","deletionTimestamp":"2026-01-02T03:04:05Z"`, 1)}
	for _, c := range []call{{}, update, terminating} { // after a reinvocation or a retry, the API server sends the same request again
		want := e.ask(t, hook, c).body
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				got, err := e.try(t.Context(), hook.Path(), c.body())
				if err != nil || !bytes.Equal(got.body, want) {
					t.Errorf("got %s (%v), want %s", got.body, err, want)
				}
			})
		}
		group.Wait()
	}
}

func TestW9_23_AcceptsMissingFields(t *testing.T) {
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "any.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[struct {
			metav1.ObjectMeta `json:"metadata"`
		}]) error {
			old, _ := req.OldObject() // a handler that needs it returns the error
			err := req.DecodeOptions(&metav1.CreateOptions{})
			if req.Operation == admissionv1.Connect {
				err = nil // a CONNECT has no options, so decoding them is an error
			}
			return errors.Join(err, req.Audit("seen", fmt.Sprint(req.Object != nil, old != nil)))
		})
	e := serve(t, webhook.Options{}, hook)
	for reason, c := range map[string]call{
		"a generated name, no uid yet":       {object: `{"metadata":{"generateName":"web-"}}`, options: `{"kind":"CreateOptions"}`},
		"an item of a deletecollection":      {operation: admissionv1.Delete, oldObject: thePod},
		"nothing at all":                     {operation: admissionv1.Delete},
		"a scale, not the parent":            {operation: admissionv1.Update, kind: "autoscaling/v1/Scale", resource: "apps/v1/deployments", sub: "scale", object: `{}`, oldObject: `{}`},
		"options of CONNECT have no options": {operation: admissionv1.Connect, kind: "/v1/PodExecOptions", sub: "exec", object: `{"command":["sh"]}`},
	} {
		row(t, reason, func(t *testing.T) {
			want := fmt.Sprint(c.completed().object != "null", c.completed().oldObject != "null")
			if got := e.ask(t, hook, c).accepted(t, c, false); !got.Allowed || got.AuditAnnotations["seen"] != want {
				t.Errorf("got %+v, want %s", got, want)
			}
		})
	}
}

func TestW9_24_TakesIdentityFromTheRequest(t *testing.T) {
	hook := validating(admit)
	e := serve(t, webhook.Options{}, hook)
	other := call{object: `{"kind":"Node","apiVersion":"example.com/v9","metadata":{"name":"web"}}`}
	e.ask(t, hook, other).allowed(t, other, false)
	const want = "the hook handles kind Pod (v1), not kind Node (v1)"
	if got := e.ask(t, hook, call{kind: "/v1/Node", resource: "/v1/nodes"}).failed(t); got.Message != want || got.Code != http.StatusBadRequest {
		t.Errorf("got %d %q, want 400 %q", got.Code, got.Message, want)
	}
}

func TestW9_25_HasNoSideEffectOnADryRun(t *testing.T) {
	ran := 0
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "pods.example.com", Rules: everything, SideEffects: new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		return req.SideEffect(func() error { ran++; return nil })
	})
	e := serve(t, webhook.Options{}, hook)
	e.ask(t, hook, call{more: `"dryRun":true`}).allowed(t, call{}, false)
	if ran != 0 {
		t.Error("a dry run had a side effect")
	}
	e.ask(t, hook, call{more: `"dryRun":false`}).allowed(t, call{}, false)
	if ran != 1 {
		t.Errorf("the side effect ran %d times, want once", ran)
	}
}

func TestW9_26_SendsWarningsTheAPIServerKeeps(t *testing.T) {
	hook := validating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for _, text := range []string{"one\ntwo\tthree\x00", "one", "", strings.Repeat("long ", 50), strings.Repeat("x", 500), "bad \xff utf-8"} {
			req.Warn(text)
		}
		return webhook.Deny("no") // a denial may have warnings
	})
	got := serve(t, webhook.Options{}, hook).ask(t, hook, call{}).accepted(t, call{}, false).Warnings
	seen := map[string]bool{}
	for _, w := range got {
		if w == "" || len([]rune(w)) > 120 || strings.ContainsFunc(w, unicode.IsControl) || seen[w] {
			t.Errorf("%q is empty, long, unprintable or a repetition", w)
		}
		seen[w] = true
	}
	if len(got) < 5 || got[0] != "one" || got[1] != "two three" {
		t.Errorf("got %q", got)
	}
}

func TestW9_27_SendsAuditKeysTheAPIServerKeeps(t *testing.T) {
	hook := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for _, bad := range []string{"", "a/b", "-a", "a b", "é", strings.Repeat("a", 64)} {
			if req.Audit(bad, "x") == nil {
				return fmt.Errorf("%q was taken", bad)
			}
		}
		return errors.Join(req.Audit("Z_a.9-z", "1"), req.Audit(strings.Repeat("a", 63), "2"))
	})
	want := map[string]string{"Z_a.9-z": "1", strings.Repeat("a", 63): "2"}
	e := serve(t, webhook.Options{}, hook)
	for range 2 { // a second call gets the same annotations
		if got := e.ask(t, hook, call{}).accepted(t, call{}, true).AuditAnnotations; !reflect.DeepEqual(got, want) {
			t.Errorf("got %v", got)
		}
	}
}

// resolver sends every service reference to one address.
type resolver string

func (r resolver) ResolveEndpoint(string, string, int32) (*url.URL, error) {
	return &url.URL{Host: string(r)}, nil
}

func TestW9_28_ServesTLSAndReloadsItsCertificateUnderACall(t *testing.T) {
	ca, _ := certificate(t)
	var handshakes atomic.Int32
	issue := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { // a new one for each handshake
		handshakes.Add(1)
		c, err := ca.Serving("hooks.shop.svc", "127.0.0.1")
		return &c.Certificates[0], err
	}
	arrived, release := make(chan bool), make(chan bool)
	hook := validating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.Name == "wait" {
			arrived <- true
			<-release
		}
		return nil
	})
	e := serve(t, webhook.Options{TLSConfig: &tls.Config{GetCertificate: issue}}, hook)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Bundle)
	e.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots
	inFlight := make(chan error)
	go func() { _, err := e.try(t.Context(), hook.Path(), call{name: "wait"}.body()); inFlight <- err }()
	<-arrived

	service := apiServerClient(t, webhookutil.ClientConfig{CABundle: ca.Bundle, Service: &webhookutil.ClientConfigService{
		Namespace: "shop", Name: "hooks", Path: hook.Path()}}, resolver(strings.TrimPrefix(e.url, "https://")))
	if err := service.Post().SetHeader("Content-Type", "application/json").Body(call{}.body()).Do(t.Context()).Into(&admissionv1.AdmissionReview{}); err != nil {
		t.Errorf("a service reference: %v", err) // the SNI of a service is hooks.shop.svc; for an IP address it is empty
	}
	for version, works := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		for _, proto := range []string{"http/1.1", "h2"} {
			conn, err := tls.Dial("tcp", strings.TrimPrefix(e.url, "https://"), &tls.Config{
				RootCAs: roots, MinVersion: version, MaxVersion: version, NextProtos: []string{proto}})
			if (err == nil) != works || works && conn.ConnectionState().NegotiatedProtocol != proto {
				t.Errorf("TLS %x with %s: %v", version, proto, err)
			}
			if conn != nil {
				_ = conn.Close()
			}
		}
	}
	if n := handshakes.Load(); n < 6 {
		t.Errorf("the certificate was asked for %d times", n)
	}
	release <- true
	if err := <-inFlight; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	// TestIdleConnectionsOutliveThoseOfTheAPIServer and TestShutdown… test the rest of this line of the
	// checklist.
}

func TestW9_29_SendsNoRetryAfter(t *testing.T) {
	hook := validating(func(context.Context, *webhook.Request[corev1.Pod]) error {
		return apierrors.NewServerTimeout(schema.GroupResource{Resource: "pods"}, "get", 3)
	})
	e := serve(t, webhook.Options{}, hook)
	a := e.ask(t, hook, call{})
	// With the header, the API server would repeat the call. retryAfterSeconds in the Status is for the API client.
	if status := a.failed(t); a.header.Get("Retry-After") != "" || status.Details.RetryAfterSeconds != 3 {
		t.Errorf("got header %q and %+v", a.header.Get("Retry-After"), status)
	}
}

func TestW9_30_AnswersBeforeTheDeadlineAndStopsWhenTheClientLeaves(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			free := make(chan bool)
			hook := validating(func(context.Context, *webhook.Request[corev1.Pod]) error { <-free; return nil }) // ignores its context
			e := serveInMemory(t, webhook.Options{}, hook)
			e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
			start := time.Now()
			status := e.ask(t, hook, call{}).failed(t)
			if took := time.Since(start); took != 4500*time.Millisecond || status.Code != http.StatusGatewayTimeout {
				t.Errorf("HTTP/2 %t: %d after %s, want 504 after 4.5s", h2, status.Code, took)
			}
			close(free)
			<-time.After(time.Minute) // until both ends of the connection are closed
		})
	}
	arrived, cancelled := make(chan bool), make(chan error)
	hook := validating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
		arrived <- true
		<-ctx.Done()
		cancelled <- ctx.Err()
		return nil
	})
	for _, h2 := range []bool{false, true} {
		e := serve(t, webhook.Options{}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = e.try(ctx, hook.Path()+"?timeout=30s", call{}.body()) }()
		<-arrived
		leave()
		if err := <-cancelled; !errors.Is(err, context.Canceled) {
			t.Errorf("HTTP/2 %t: the client left, and the handler was told %v", h2, err)
		}
	}
}

func TestW9_31_AsksForClientCertificatesBeforeAnythingElse(t *testing.T) {
	client, pool := clientCertificate(t)
	ca, config := certificate(t)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, pool
	called := false
	hook := validating(func(context.Context, *webhook.Request[corev1.Pod]) error { called = true; return nil })
	e := serve(t, webhook.Options{TLSConfig: config}, hook)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Bundle)
	transport := e.client.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	if a, err := e.try(t.Context(), hook.Path(), []byte("{")); err == nil {
		t.Errorf("answered a client without a certificate: %d %s", a.code, a.body)
	}
	if called {
		t.Error("the handler was called")
	}
	transport.TLSClientConfig.Certificates = []tls.Certificate{client}
	e.ask(t, hook, call{}).allowed(t, call{}, false)
}

func TestW9_32_DoesNotDependOnEarlierChanges(t *testing.T) {
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "any.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[unstructured.Unstructured]) error {
			old, err := req.OldObject()
			return errors.Join(err, req.Audit("old", fmt.Sprint(old != nil)))
		})
	e := serve(t, webhook.Options{}, hook)
	for _, c := range []call{ // an update and a delete without an earlier create, and an eviction alone
		{operation: admissionv1.Update, name: "never-created", object: thePod, oldObject: thePod},
		{operation: admissionv1.Delete, name: "never-created", oldObject: thePod},
		{kind: "policy/v1/Eviction", sub: "eviction", name: "never-created", object: `{"kind":"Eviction","apiVersion":"policy/v1"}`},
	} {
		e.ask(t, hook, c).allowed(t, c, true)
	}
}
