// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/rollout"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A log is the log of a program.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// has reports whether the log has a line of this level with this text.
func (l *log) has(level, text string) bool {
	for line := range strings.Lines(l.String()) {
		var entry struct{ Level, Err, Msg string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Level == level && strings.Contains(entry.Msg+": "+entry.Err, text) {
			return true
		}
	}
	return false
}

// programWith returns a program with a hook whose modes are in the file.
func programWith(file string) program.Program {
	return program.Program{Name: "images", Hooks: func(_ context.Context, deps *program.Deps) ([]*webhook.Hook, error) {
		modes, err := rollout.New(file, rollout.Options{Interval: 20 * time.Millisecond, Logger: deps.Logger, Metrics: deps.Metrics}, denying(policy))
		if err != nil {
			return nil, err
		}
		deps.Run(modes)
		return modes.Hooks(), nil
	}}
}

// badFiles have a mode or a webhook that does not exist. The keys are parts of the message.
var badFiles = map[string]string{
	`hooks[0].mode: Unsupported value: "Wran": supported values: "Enforce", "Warn", "Shadow"`:          "hooks: [{webhook: images.example.com, mode: Wran}]",
	`hooks[0].rules[0].mode: Unsupported value: "Audit"`:                                               "hooks: [{webhook: images.example.com, rules: [{mode: Audit}]}]",
	`hooks[0].webhook: Unsupported value: "image.example.com": supported values: "images.example.com"`: "hooks: [{webhook: image.example.com, mode: Shadow}]",
	`hooks[1].webhook: Unsupported value: "tags.example.com": supported values: "images.example.com"`:  "hooks: [{webhook: images.example.com, mode: Warn}, {webhook: tags.example.com, rules: [{mode: Warn}]}]",
	"hooks: Required value: to let all hooks enforce, write hooks: []":                                 "",
	"hooks[0].rules[0].percent: Invalid value: 1000: must be from 0 to 100":                            "hooks: [{webhook: images.example.com, rules: [{percent: 1000, mode: Warn}]}]",
	"the file depends on the labels of Namespaces: set rollout.Options.Namespaces":                     "hooks: [{webhook: images.example.com, namespaceLabels: policy.example.com, version: v1}]",
	`hooks[0].rules[0].operations[0]: Unsupported value: "PATCH"`:                                      "hooks: [{webhook: images.example.com, rules: [{operations: [PATCH], mode: Warn}]}]",
}

// TestProgramDoesNotStart requires that a program with an invalid file ends with an error that names the field.
func TestProgramDoesNotStart(t *testing.T) {
	for want, content := range badFiles {
		file := write(t, "", content)
		err := programWith(file).Run(t.Context(), []string{"--addr=127.0.0.1:0", "--ops-addr="}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), file+": "+want) {
			t.Errorf("%s: got %v", content, err)
		}
	}
}

// TestProgramReportsEachChange gives a running program one invalid file after another. Each must be in the log, the metric
// must be 0, and the last valid mode must remain in use.
func TestProgramReportsEachChange(t *testing.T) {
	file := write(t, "", "hooks: [{webhook: images.example.com, mode: Shadow}]")
	p := start(t, programWith(file))
	p.expect(t, webhook.Shadow, "1")
	for want, content := range badFiles {
		write(t, file, content)
		p.eventually(t, want, func() bool { return p.log.has("ERROR", want) })
		p.expect(t, webhook.Shadow, "0")
	}
	write(t, file, "hooks: [{webhook: images.example.com, mode: Warn}]")
	p.eventually(t, "the valid file", func() bool { return p.metric(t) == "1" })
	p.expect(t, webhook.Warn, "1")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.eventually(t, "no such file", func() bool { return p.log.has("ERROR", "no such file") })
	p.expect(t, webhook.Warn, "0")
}

// A running is a program that serves.
type running struct {
	log     *log
	hook    http.Handler // sends requests to the hook
	metrics http.Handler
}

// expect requires the mode of a call, and the value of the metric.
func (r *running) expect(t *testing.T, mode webhook.Mode, valid string) {
	t.Helper()
	if got := modeOf(t, r.hook, request(t, "shop", "a", nil)); got != mode {
		t.Errorf("the mode is %s, want %s", got, mode)
	}
	if got := r.metric(t); got != valid {
		t.Errorf("the metric is %q, want %s", got, valid)
	}
}

// metric returns the value of the metric of the file, as the program serves it.
func (r *running) metric(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	_, rest, _ := strings.Cut(w.Body.String(), "\nadmitkit_rollout_file_valid ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// start runs the program until the end of the test, and waits until it is ready.
func start(t *testing.T, p program.Program) *running {
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
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: serving.Certificates[0].Certificate[0]}, "tls.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		write(t, filepath.Join(dir, name), string(pem.EncodeToMemory(block)))
	}
	if p.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	at := &url.URL{Scheme: "https", Host: p.Listener.Addr().String(), Path: "/validate/" + policy}
	r := &running{log: &log{}, hook: &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.Path = at.Scheme, at.Host, at.Path
	}}}
	served := make(chan http.Handler, 1)
	p.Options = func(o *webhook.Options) { served <- o.Metrics }
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- p.Run(ctx, []string{
			"--ops-addr=127.0.0.1:0", "--shutdown-delay=0", "--tls-cert-file=" + filepath.Join(dir, "tls.crt"), "--tls-private-key-file=" + filepath.Join(dir, "tls.key"),
		}, io.Discard, r.log)
		close(served)
	}()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	r.metrics = <-served
	r.eventually(t, "the program is ready", func() bool {
		response, err := (&http.Client{Transport: transport}).Get("https://" + at.Host + "/readyz")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	return r
}

func (r *running) eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("waiting for %q: %v\n%s", what, err, r.log)
	}
}
