// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/internal/leaks"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const (
	review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Secret"},` +
		`"name":"db","namespace":"shop","operation":"CREATE","object":{"kind":"Secret","apiVersion":"v1","data":{"a":"aHVudGVyMg=="}}}}`
	denial = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1","allowed":false,"status":{"code":403,"message":"no hunter2"}}}`
)

// A running is a proxy that runs.
type running struct {
	t      *testing.T
	out    buffer
	url    string
	dir    string
	cancel context.CancelFunc
	done   chan error
}

// A buffer is a bytes.Buffer that is safe for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// options returns the defaults of the flags.
func options(to string) Options {
	return Options{Listen: "127.0.0.1:0", To: to, Rate: 1, Speed: "64Ki", FileSize: "64Mi",
		Record: record.Options{Novel: 3, MaxFileAge: time.Hour, MaxFiles: 10}}
}

func run(t *testing.T, o Options) *running {
	t.Helper()
	r := &running{t: t, dir: filepath.Join(t.TempDir(), "recordings"), done: make(chan error, 1)}
	o.Record.Dir = r.dir
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	t.Cleanup(cancel)
	go func() { r.done <- Run(ctx, &screen.Screen{Err: &r.out, Getenv: os.Getenv}, o) }()
	listening := regexp.MustCompile(`listening at (\S+)`)
	r.await("the address", func() bool {
		m := listening.FindStringSubmatch(r.out.String())
		if m != nil {
			r.url = m[1]
		}
		return m != nil
	})
	return r
}

func (r *running) await(what string, holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		select {
		case err := <-r.done:
			r.t.Fatalf("the proxy ended while waiting for %s: %v\n%s", what, err, r.out.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain for %s: %s", what, r.out.String())
		}
	}
}

// stop ends the proxy and returns the calls that it recorded.
func (r *running) stop() (calls []*record.Call) {
	r.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		r.t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(r.dir, "*.gz"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			r.t.Fatal(err)
		}
		reader := record.NewReader(f)
		for call, err := range reader.All() {
			if err != nil {
				r.t.Fatal(err)
			}
			calls = append(calls, call)
		}
		_ = f.Close()
	}
	return calls
}

func post(t *testing.T, client *http.Client, url, body string) (int, string) {
	t.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader(body)) //nolint:noctx // the server answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// pki returns a CA, and the files with a serving certificate for localhost.
func pki(t *testing.T) (ca *devcert.CA, caFile, certFile, keyFile string) {
	t.Helper()
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	config, err := ca.Serving("localhost", "hook.shop.svc")
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(config.Certificates[0].PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: config.Certificates[0].Certificate[0]})
	return ca, write("ca.crt", ca.Bundle), write("tls.crt", certificate), write("tls.key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}))
}

// TestProxy records calls of a webhook with TLS on both sides. The webhook and the client must see what they would see
// without the proxy.
func TestProxy(t *testing.T) {
	ca, caFile, certFile, keyFile := pki(t)
	var mu sync.Mutex
	var seen []string
	hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%s %s %s %s %d", r.Method, r.Host, r.URL, r.Header.Get("Authorization"), len(data)))
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, denial)
		}
	}))
	var err error
	if hook.TLS, err = ca.Serving("hook.shop.svc"); err != nil {
		t.Fatal(err)
	}
	hook.StartTLS()
	defer hook.Close()

	o := options(hook.URL)
	o.CAFile, o.ServerName, o.TLSCert, o.TLSKey, o.MetricsListen = caFile, "hook.shop.svc", certFile, keyFile, "127.0.0.1:0"
	r := run(t, o)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: withToken{transport}}
	r.await("the check of --to", func() bool {
		mu.Lock()
		defer mu.Unlock()
		if len(seen) == 0 {
			return false
		}
		seen = nil
		return true
	})
	if code, text := post(t, client, r.url+"/a%2Fb/policy?timeout=5s", review); code != http.StatusOK || text != denial {
		t.Errorf("answered %d %s", code, text)
	}
	resp, err := client.Get(r.url + "/healthz") //nolint:noctx // the server answers
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("answered %v, %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	host := strings.TrimPrefix(r.url, "https://")
	if want := []string{fmt.Sprintf("POST %s /a%%2Fb/policy?timeout=5s Bearer hunter2hunter2 %d", host, len(review)), "GET " + host + " /healthz Bearer hunter2hunter2 0"}; fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("the webhook saw %q, want %q", seen, want)
	}
	calls := r.stop()
	if len(calls) != 1 || calls[0].Outcome != webhook.Denied || calls[0].Code != 403 || calls[0].Path != "/a/b/policy" {
		t.Fatalf("got %+v", calls)
	}
	if text := string(calls[0].Request) + string(calls[0].Answer); strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") || !strings.Contains(text, `"message":"no `) {
		t.Errorf("got %s", text)
	}
	if !strings.Contains(r.out.String(), "admitkit: recorded 1 call in "+r.dir+"\n") {
		t.Errorf("got %s", r.out.String())
	}
}

type withToken struct{ http.RoundTripper }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer hunter2hunter2")
	return w.RoundTripper.RoundTrip(r)
}

// TestUnreachableWebhook requires an answer with a message for the user, and a warning on stderr.
func TestUnreachableWebhook(t *testing.T) {
	r := run(t, options("http://127.0.0.1:1"))
	for range 3 {
		code, text := post(t, http.DefaultClient, r.url+"/policy", review)
		const want = `"message":"the recording proxy cannot call the webhook at http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused","reason":"ServiceUnavailable","code":502}`
		if code != http.StatusBadGateway || !strings.Contains(text, want) {
			t.Errorf("answered %d %s", code, text)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	calls := r.stop()
	if len(calls) != 3 || calls[0].Outcome != webhook.Failed || calls[0].Code != http.StatusBadGateway {
		t.Errorf("got %+v", calls)
	}
	out := r.out.String()
	for _, want := range []string{"admitkit: --tls-cert is not set, so the proxy serves HTTP", "admitkit: the recording proxy cannot call the webhook", "hint: calls fail until the webhook is reachable"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
}

// TestRewindable requires that the transport can read a body again, unless the body is larger than maxRewound.
func TestRewindable(t *testing.T) {
	large := strings.Repeat("x", maxRewound+1)
	for _, body := range []string{review, large} {
		handler := rewindable(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			for i := range 3 {
				data, err := io.ReadAll(r.Body)
				if err != nil || string(data) != body || r.ContentLength != int64(len(body)) {
					t.Errorf("read %d: %d bytes of %d, %v", i, len(data), len(body), err)
				}
				if (r.GetBody == nil) != (body == large) {
					t.Errorf("%d bytes can be read again: %t", len(body), r.GetBody != nil)
				}
				if r.GetBody == nil {
					return
				}
				if r.Body, err = r.GetBody(); err != nil {
					t.Fatal(err)
				}
			}
		}))
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		request.GetBody = nil
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
}

// TestShutdown requires that a call in flight is answered and recorded.
func TestShutdown(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			close(began)
			<-release
			_, _ = io.WriteString(w, denial)
		}
	}))
	defer hook.Close()
	r := run(t, options(hook.URL))
	answered := make(chan int, 1)
	go func() {
		resp, err := http.Post(r.url+"/policy", "application/json", strings.NewReader(review)) //nolint:noctx // the server answers
		if err != nil {
			answered <- 0
			return
		}
		_ = resp.Body.Close()
		answered <- resp.StatusCode
	}()
	<-began
	r.cancel()
	close(release)
	if code := <-answered; code != http.StatusOK {
		t.Errorf("answered %d", code)
	}
	http.DefaultClient.CloseIdleConnections()
	if calls := r.stop(); len(calls) != 1 {
		t.Errorf("got %+v", calls)
	}
}

func TestBadOptions(t *testing.T) {
	for _, in := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.To = "" }, "--to is missing"},
		{func(o *Options) { o.To = "127.0.0.1:8443" }, "--to 127.0.0.1:8443 is not a URL like https://127.0.0.1:8443"},
		{func(o *Options) { o.To = "https://ada:x@h" }, "--to https://ada:x@h: the URL of a webhook must not have a query, a fragment or a user"},
		{func(o *Options) { o.TLSCert = "a" }, "--tls-cert and --tls-key must be set together"},
		{func(o *Options) { o.Rate = 1.5 }, "--rate=1.5 is not a share from 0 to 1"},
		{func(o *Options) { o.Record.Novel = -1 }, "--novel=-1 is negative: the minimum is 0"},
		{func(o *Options) { o.Record.MaxFiles = 0 }, "--max-files=0 is too small: the minimum is 1"},
		{func(o *Options) { o.Record.MaxFileAge = 0 }, "--max-file-age=0s is too short: it must be greater than 0"},
		{func(o *Options) { o.ShutdownDelay = -1 }, "--shutdown-delay=-1ns is negative: use a time such as 10s"},
		{func(o *Options) { o.Listen = "9443" }, "--listen 9443 is not an address like :9443 or 127.0.0.1:9443"},
		{func(o *Options) { o.Listen = "192.0.2.1:9443" }, "--listen 192.0.2.1:9443: listen tcp 192.0.2.1:9443: bind: cannot assign requested address"},
		{func(o *Options) { o.Speed = "fast" }, "--max-bytes-per-second=fast is not a size like 64Mi"},
		{func(o *Options) { o.FileSize = "0" }, "--max-file-size=0 is not a size like 64Mi"},
		{func(o *Options) { o.CAFile = "no.crt" }, "--ca-file: open no.crt: no such file or directory"},
		{func(o *Options) { o.CAFile = "record_test.go" }, "--ca-file record_test.go has no certificate"},
		{func(o *Options) { o.To, o.CAFile = "http://h", "x" }, "--ca-file and --server-name need an https URL in --to"},
		{func(o *Options) { o.TLSCert, o.TLSKey = "no.crt", "no.key" }, "no.crt"},
		{func(o *Options) { o.MetricsListen = "9" }, "--metrics-listen 9: "},
		{func(o *Options) { o.Record.SecretPaths = []string{"a["} }, `--secret-path: "a[" is not a field path`},
	} {
		o := options("https://127.0.0.1:1")
		o.Record.Dir = t.TempDir()
		in.change(&o)
		var out buffer
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := Run(ctx, &screen.Screen{Err: &out, Getenv: os.Getenv}, o)
		if cancel(); err == nil || !strings.Contains(err.Error(), in.want) {
			t.Errorf("got %v, want %s", err, in.want)
		}
	}
	if err := Run(t.Context(), &screen.Screen{}, Options{}); len(problem.Hints(err)) != 1 {
		t.Errorf("got %v", err)
	}
}
