// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func newProgram() Program {
	return Program{Name: "example", Hooks: func(context.Context, *Deps) ([]*webhook.Hook, error) {
		return []*webhook.Hook{webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })}, nil
	}}
}

// The program serves with the certificate in its files, loads changed files, serves metrics, and ends without an error
// when it is stopped.
func TestServesAndReadsTheCertificateAgain(t *testing.T) {
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first := writeCertificate(t, ca, dir)
	p := newProgram()
	p.reload = 10 * time.Millisecond
	hooks, ops := start(t, p, "--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"))

	client := clientOf(ca)
	eventually(t, "it is ready", func() bool { return isReady(t, client, "http://"+ops+"/readyz") })
	serving := func() []byte { return get(t, client, "https://"+hooks+"/readyz").TLS.PeerCertificates[0].Raw }
	if !bytes.Equal(serving(), first) {
		t.Error("the certificate is not the one in the file")
	}
	second := writeCertificate(t, ca, dir)
	eventually(t, "the new certificate is served", func() bool { return bytes.Equal(serving(), second) })
	text, err := io.ReadAll(get(t, client, "http://"+ops+"/metrics").Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"admitkit_", "go_goroutines", "process_"} {
		if !strings.Contains(string(text), "\n"+name) {
			t.Errorf("there are no metrics that begin with %s", name)
		}
	}
}

// A client without a token is rejected, but a probe is not.
func TestTokens(t *testing.T) {
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeCertificate(t, ca, dir)
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("s3cret-of-2026-xyz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hooks, ops := start(t, newProgram(), "--token-file="+tokens,
		"--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"))
	client := clientOf(ca)
	eventually(t, "it is ready", func() bool { return isReady(t, client, "http://"+ops+"/readyz") })
	for token, want := range map[string]int{"": http.StatusUnauthorized, "Bearer guess-of-2026-xyz": http.StatusUnauthorized, "Bearer s3cret-of-2026-xyz": http.StatusMethodNotAllowed} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+hooks+"/validate/pods.example.com", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", token)
		if got := do(t, client, req).StatusCode; got != want {
			t.Errorf("with %q: status %d, want %d", token, got, want)
		}
	}
}

// start runs the program until the end of the test. It returns the addresses of the hooks and of the metrics.
func start(t *testing.T, p Program, args ...string) (hooks, ops string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	logs, logWriter := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- p.Run(ctx, append(args, "--addr=127.0.0.1:0", "--ops-addr=127.0.0.1:0", "--shutdown-delay=0"), io.Discard, logWriter)
		_ = logWriter.Close()
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	return addrsIn(t, logs)
}

// addrsIn reads the log until the program has logged its addresses, and then discards the rest in the background.
func addrsIn(t *testing.T, logs io.Reader) (hooks, ops string) {
	t.Helper()
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		var line struct{ Addr, Msg string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("a log line is not JSON: %s", lines.Text())
		}
		switch line.Msg {
		case "serving webhooks":
			hooks = line.Addr
		case "serving probes and metrics":
			ops = line.Addr
		}
		if hooks != "" && ops != "" {
			go func() { _, _ = io.Copy(io.Discard, logs) }()
			return hooks, ops
		}
	}
	t.Fatal("the program ended before it listened")
	return "", ""
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func get(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, client, req)
}

// isReady reports whether the probe at url succeeds. TLS handshakes fail until the certificate is loaded, which
// counts as not ready.
func isReady(t *testing.T, client *http.Client, url string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

func do(t *testing.T, client *http.Client, req *http.Request) *http.Response {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// clientOf returns a client that trusts the CA and opens a new connection for each request.
func clientOf(ca *devcert.CA) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Bundle)
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
}

// writeCertificate writes a new certificate and its key into dir, under the file names that cert-manager uses. It
// returns the certificate in DER.
func writeCertificate(t *testing.T, ca *devcert.CA, dir string) []byte {
	t.Helper()
	config, err := ca.Serving("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	cert := config.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.key": {Type: "PRIVATE KEY", Bytes: key},
		"tls.crt": {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
	} {
		replacement := filepath.Join(dir, name+".new")
		if err := os.WriteFile(replacement, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(replacement, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return cert.Certificate[0]
}

func TestPrintConfiguration(t *testing.T) {
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(caFile, ca.Bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		args []string
		want admissionregistrationv1.WebhookClientConfig
	}{
		{[]string{"--url=https://hooks.example.com:9443/base", "--ca-file=" + caFile}, admissionregistrationv1.WebhookClientConfig{
			URL: ptr.To("https://hooks.example.com:9443/base/validate/pods.example.com"), CABundle: ca.Bundle}},
		{[]string{"--service=s", "--namespace=n", "--inject-ca-from=n/cert"}, admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Name: "s", Namespace: "n", Path: ptr.To("/validate/pods.example.com"), Port: ptr.To(int32(443))}}},
	}
	for _, row := range rows {
		var out bytes.Buffer
		if err := newProgram().Run(t.Context(), append(row.args, "--print-configuration"), &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		var got admissionregistrationv1.ValidatingWebhookConfiguration
		if err := yaml.UnmarshalStrict(out.Bytes(), &got); err != nil {
			t.Fatalf("%v:\n%s", err, out.String())
		}
		if got.Name != "example" || len(got.Webhooks) != 1 {
			t.Fatalf("got\n%s", out.String())
		}
		gotText, _ := yaml.Marshal(got.Webhooks[0].ClientConfig)
		wantText, _ := yaml.Marshal(row.want)
		if !bytes.Equal(gotText, wantText) {
			t.Errorf("%q: clientConfig is\n%s\nwant\n%s", row.args, gotText, wantText)
		}
		if injected := got.Annotations["cert-manager.io/inject-ca-from"]; injected != "" != (row.want.Service != nil) {
			t.Errorf("%q: the annotation is %q", row.args, injected)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	rows := []struct {
		args []string
		want string
	}{
		{[]string{"serve"}, `unexpected argument "serve"`},
		{[]string{"--log-level=loud"}, "log-level"},
		{[]string{"--tls-cert-file=/nowhere", "--addr=127.0.0.1:0", "--ops-addr=", "--shutdown-delay=1h"}, "or add --self-managed, and the program makes its certificate"},
		{[]string{"--addr=127.0.0.1:http-or-so"}, "--addr: "},
		{[]string{"--max-in-flight-bytes=much"}, "max-in-flight-bytes"},
		{[]string{"--self-managed"}, "no cluster is configured"},
		{[]string{"--self-managed", "--kubeconfig=/nowhere"}, "--kubeconfig: "},
		{[]string{"--self-managed", "--kubeconfig=/nowhere", "--uninstall"}, "--kubeconfig: "},
		{[]string{"--self-managed", "--ca-secret=", "--print-rbac"}, "self-managed certificates: Secret"},
		{[]string{"--uninstall"}, "add --self-managed"},
		{[]string{"--output=x.yaml"}, "--output is only for"},
		{[]string{"--print-configuration", "--print-rbac"}, "exclude each other"},
		{[]string{"--print-configuration", "--ca-file=/nowhere"}, "--ca-file"},
		{[]string{"--print-configuration", "--url=http://x"}, "must begin with https://"},
	}
	for _, row := range rows {
		err := newProgram().Run(t.Context(), row.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: got %v, want %q", row.args, err, row.want)
		}
	}
	var usage *usageError
	var stderr bytes.Buffer
	for _, flag := range []string{"--nope", "--log-level=loud", "--max-in-flight-bytes=much"} {
		stderr.Reset()
		err := newProgram().Run(t.Context(), []string{flag}, io.Discard, &stderr)
		if !errors.As(err, &usage) {
			t.Fatalf("%s is not a usage error: %v", flag, err)
		}
		if want := "example: " + err.Error() + "\nrun example --help for the flags\n"; stderr.String() != want {
			t.Errorf("%s: got %q, want %q", flag, &stderr, want)
		}
	}
	stderr.Reset()
	if err := newProgram().Run(t.Context(), []string{"-h"}, io.Discard, &stderr); !errors.Is(err, flag.ErrHelp) || !strings.Contains(stderr.String(), "-log-level") {
		t.Errorf("-h: %v: %s", err, &stderr)
	}
}

// The program closes its listener even if it fails before it serves.
func TestErrorsCloseTheListener(t *testing.T) {
	for _, args := range [][]string{{"--nope"}, {"--tls-cert-file=/nowhere", "--ops-addr="}} {
		p := newProgram()
		p.Listener = listen(t)
		if err := p.Run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
		if _, err := p.Listener.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%q: the listener is open: %v", args, err)
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// After SIGTERM the program serves for a while. The caches of the hooks, and the context that Program.Hooks got, must
// live until the server accepts no more connections.
func TestBackgroundWorkOutlivesTheServer(t *testing.T) {
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeCertificate(t, ca, dir)
	p := newProgram()
	p.Listener = listen(t)
	addr, hooks := p.Listener.Addr().String(), p.Hooks
	running, dialed := make(chan struct{}), make(chan error, 2)
	p.Hooks = func(ctx context.Context, deps *Deps) ([]*webhook.Hook, error) {
		dialAtTheEnd := func(ctx context.Context) {
			<-ctx.Done()
			conn, err := (&net.Dialer{}).DialContext(context.WithoutCancel(ctx), "tcp", addr)
			if err == nil {
				_ = conn.Close()
			}
			dialed <- err
		}
		go dialAtTheEnd(ctx)
		deps.Run(runnableFunc(func(ctx context.Context) error { close(running); dialAtTheEnd(ctx); return ctx.Err() }))
		return hooks(ctx, deps)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- p.Run(ctx, []string{"--tls-cert-file=" + filepath.Join(dir, "tls.crt"), "--tls-private-key-file=" + filepath.Join(dir, "tls.key"),
			"--ops-addr=", "--shutdown-delay=100ms"}, io.Discard, io.Discard)
	}()
	<-running
	client := clientOf(ca)
	eventually(t, "it is ready", func() bool { return isReady(t, client, "https://"+addr+"/readyz") })
	stop()
	for range 2 {
		if err := <-dialed; err == nil {
			t.Error("the server accepts connections, but what its hooks depend on has ended")
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

type runnableFunc func(ctx context.Context) error

func (f runnableFunc) Start(ctx context.Context) error { return f(ctx) }

// If the context of Run ends while Program.Hooks runs, Run returns no error. With --print-configuration it must return
// one, because nothing was printed.
func TestStopWhileTheHooksAreMade(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	p := Program{Name: "slow", Hooks: func(ctx context.Context, _ *Deps) ([]*webhook.Hook, error) {
		stop()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	if err := p.Run(ctx, nil, io.Discard, io.Discard); err != nil {
		t.Errorf("got %v", err)
	}
	if err := p.Run(ctx, []string{"--print-configuration"}, io.Discard, io.Discard); err == nil {
		t.Error("an interrupted output is no error")
	}
}

// Program.Options may add a condition of readiness and set a listener. Program.Hooks may register a collector that the
// program registers, too.
func TestOptionsOfTheServer(t *testing.T) {
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeCertificate(t, ca, dir)
	var ready atomic.Bool
	listener := listen(t)
	p := newProgram()
	hooks := p.Hooks
	p.Hooks = func(ctx context.Context, deps *Deps) ([]*webhook.Hook, error) {
		deps.Metrics.MustRegister(collectors.NewGoCollector()) // the program registers it, too
		return hooks(ctx, deps)
	}
	p.Options = func(o *webhook.Options) {
		o.Listener = listener
		o.Ready = func(context.Context) error {
			if !ready.Load() {
				return errors.New("the licence server does not answer")
			}
			return nil
		}
	}
	_, ops := start(t, p, "--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"))
	client := clientOf(ca)
	eventually(t, "the own condition is asked", func() bool {
		body, err := io.ReadAll(get(t, client, "http://"+ops+"/readyz").Body)
		return err == nil && strings.Contains(string(body), "the licence server does not answer")
	})
	ready.Store(true)
	eventually(t, "it is ready", func() bool {
		return isReady(t, client, "https://"+listener.Addr().String()+"/readyz")
	})
}

func TestClientNamesMayHaveSpaces(t *testing.T) {
	if got := (&clients{names: "a, b"}).auth().Names; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
}

// --output replaces the generated block of a file and prints what has changed.
func TestOutputReplacesTheGeneratedBlock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	write := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := newProgram().Run(t.Context(), append(args, "--print-configuration", "--output="+file), &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if out := write(); !strings.Contains(out, "+     name: pods.example.com\n") && !strings.Contains(out, "+   name: pods.example.com\n") {
		t.Errorf("a new file: printed %q", out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, "---\n# mine\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := write(); out != "" {
		t.Errorf("nothing has changed, but it printed %q", out)
	}
	out := write("--namespace=other")
	if !strings.Contains(out, "-       namespace: example\n") || !strings.Contains(out, "+       namespace: other\n") {
		t.Errorf("printed %q", out)
	}
	text, err = os.ReadFile(file)
	if err != nil || !strings.HasSuffix(string(text), "---\n# mine\n") || !strings.Contains(string(text), "namespace: other") {
		t.Errorf("%v: the file is\n%s", err, text)
	}
	if err := os.WriteFile(file, []byte("a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = newProgram().Run(t.Context(), []string{"--print-rbac", "--output=" + file}, io.Discard, io.Discard)
	if text, _ := os.ReadFile(file); err == nil || !strings.Contains(err.Error(), "exactly one generated block") || string(text) != "a: 1\n" {
		t.Errorf("a file without a block: %v, the file is %q", err, text)
	}
}

// The default of --shutdown-delay is 10 s in a Pod, where the Service needs time to stop sending calls. Elsewhere it is
// zero, so that Ctrl-C ends the program at once.
func TestShutdownDelayIsForPods(t *testing.T) {
	for host, delay := range map[string]time.Duration{"10.96.0.1": 10 * time.Second, "": 0} {
		t.Setenv("KUBERNETES_SERVICE_HOST", host)
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		var s serving
		if s.addFlags(flags); s.shutdownDelay != delay {
			t.Errorf("with KUBERNETES_SERVICE_HOST=%q: %s, want %s", host, s.shutdownDelay, delay)
		}
	}
}
