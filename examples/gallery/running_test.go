// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A running is the program while it serves.
type running struct {
	url     string
	client  *http.Client
	metrics http.Handler
	hooks   map[string]registered // by the name of the hook
}

// A registered is what the API server knows about a hook.
type registered struct {
	url     string
	timeout time.Duration
}

// serve runs the program with these arguments until the end of the test, and waits until it is ready.
func serve(t *testing.T, config *rest.Config, args ...string) *running {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{url: "https://" + listener.Addr().String()}
	certFile, keyFile, trusted := r.certificate(t)
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, MaxIdleConnsPerHost: 100}} //nolint:gosec // the default version is current
	p := newProgram()
	p.Config, p.Listener = config, listener
	options := make(chan http.Handler, 1)
	p.Options = func(o *webhook.Options) { options <- o.Metrics }
	r.hooks = hooksOf(t, r.url, args)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- p.Run(ctx, append([]string{"--ops-addr=127.0.0.1:0", "--shutdown-delay=0", "--tls-cert-file=" + certFile, "--tls-private-key-file=" + keyFile}, args...), io.Discard, io.Discard)
	}()
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case r.metrics = <-options:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	eventually(t, "the program is ready", r.ready)
	return r
}

// certificate writes a serving certificate and its key to files.
func (r *running) certificate(t *testing.T) (certFile, keyFile string, trusted *x509.CertPool) {
	t.Helper()
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	serving, err := ca.Serving("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(serving.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile, trusted = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca.Bundle)
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: serving.Certificates[0].Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, trusted
}

// hooksOf returns the hooks in the configurations that the program prints.
func hooksOf(t *testing.T, url string, args []string) map[string]registered {
	t.Helper()
	var output bytes.Buffer
	if err := newProgram().Run(t.Context(), append([]string{"--print-configuration", "--url=" + url}, args...), &output, io.Discard); err != nil {
		t.Fatal(err)
	}
	hooks := map[string]registered{}
	for document := range strings.SplitSeq(output.String(), "---\n") {
		var c admissionregistrationv1.ValidatingWebhookConfiguration // the other kind has the same fields
		if err := yaml.Unmarshal([]byte(document), &c); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.Webhooks {
			hooks[w.Name] = registered{*w.ClientConfig.URL, time.Duration(*w.TimeoutSeconds) * time.Second}
		}
	}
	return hooks
}

// ready reports whether the readiness probe passes.
func (r *running) ready() bool {
	response, err := r.client.Get(r.url + "/readyz")
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK
}

// metric returns the value of a metric with its labels, or zero if there is none.
func (r *running) metric(t *testing.T, name string) float64 {
	t.Helper()
	w := httptest.NewRecorder()
	r.metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	return 0
}

// A verdict is what the API server makes of an answer.
type verdict string

const (
	admits  verdict = "admits"
	changes verdict = "changes"
	warns   verdict = "warns"
	denies  verdict = "denies"
	fails   verdict = "fails" // the failurePolicy decides
)

// call calls the hook as the API server does. The deadline of the call is the timeout or, if that is zero, the
// timeoutSeconds of the hook. It fails the test if the hook does not answer. An answer may come after the deadline,
// because a test cannot tell a slow hook from a busy machine.
func (r *running) call(t *testing.T, hook string, request *admissionv1.AdmissionRequest, timeout time.Duration) (verdict, string) {
	t.Helper()
	h := r.hooks[hook]
	if timeout == 0 {
		timeout = h.timeout
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout+30*time.Second)
	defer cancel()
	review := admissionv1.AdmissionReview{Request: request}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		t.Error(err)
		return "", ""
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s?timeout=%s", h.url, timeout), bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return "", ""
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := r.client.Do(post)
	if err != nil {
		t.Errorf("%s: no answer: %v", hook, err)
		return "", ""
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%s: no whole answer: %v", hook, err)
	}
	if response.StatusCode != http.StatusOK {
		return fails, string(answer)
	}
	review = admissionv1.AdmissionReview{}
	if err := json.Unmarshal(answer, &review); err != nil || review.Response == nil {
		t.Errorf("%s: %v: %s", hook, err, answer)
		return "", ""
	}
	switch decided := review.Response; {
	case !decided.Allowed:
		return denies, string(answer)
	case decided.Patch != nil:
		return changes, string(answer)
	case len(decided.Warnings) > 0:
		return warns, string(answer)
	}
	return admits, string(answer)
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}
