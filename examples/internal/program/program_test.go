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
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func newProgram() Program {
	return Program{Name: "example", Hooks: func() ([]*webhook.Hook, error) {
		return []*webhook.Hook{webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })}, nil
	}}
}

// The program serves with the certificate in its files, also when they change, and ends
// without an error when it is told to.
func TestServesAndReadsTheCertificateAgain(t *testing.T) {
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first := writeCertificate(t, ca, dir)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	logs, logWriter := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- newProgram().Run(ctx, []string{"--addr=127.0.0.1:0", "--shutdown-delay=0",
			"--tls-cert-file=" + filepath.Join(dir, "tls.crt"), "--tls-private-key-file=" + filepath.Join(dir, "tls.key")}, io.Discard, logWriter)
		_ = logWriter.Close()
	}()
	addr := addrIn(t, logs)

	client := clientOf(ca)
	serving := func() []byte {
		resp, err := client.Get("https://" + addr + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("/readyz answers %s", resp.Status)
		}
		return resp.TLS.PeerCertificates[0].Raw
	}
	if !bytes.Equal(serving(), first) {
		t.Error("the certificate is not the one in the file")
	}
	second := writeCertificate(t, ca, dir)
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return bytes.Equal(serving(), second), nil
	})
	if err != nil {
		t.Errorf("the new certificate is not served: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// addrIn reads the log until the program says where it listens, and lets the rest run on.
func addrIn(t *testing.T, logs io.Reader) string {
	t.Helper()
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		var line struct{ Addr, Msg string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("a log line is not JSON: %s", lines.Text())
		}
		if line.Addr != "" {
			go func() { _, _ = io.Copy(io.Discard, logs) }()
			return line.Addr
		}
	}
	t.Fatal("the program ended before it listened")
	return ""
}

// clientOf trusts the CA and makes a new connection for each call.
func clientOf(ca *devcert.CA) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Bundle)
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
}

// writeCertificate writes a new certificate as cert-manager mounts it and returns it.
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
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(caFile, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		args []string
		want admissionregistrationv1.WebhookClientConfig
	}{
		{[]string{"--url=https://hooks.example.com:9443/base", "--ca-file=" + caFile}, admissionregistrationv1.WebhookClientConfig{
			URL: ptr.To("https://hooks.example.com:9443/base/validate/pods.example.com"), CABundle: []byte("PEM")}},
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
	rows := []struct {
		args []string
		want string
	}{
		{[]string{"serve"}, `unexpected argument "serve"`},
		{[]string{"--log-level=loud"}, "--log-level"},
		{[]string{"--tls-cert-file=/nowhere"}, "cannot read the serving certificate"},
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
	if err := newProgram().Run(t.Context(), []string{"--nope"}, io.Discard, io.Discard); !errors.As(err, &usage) {
		t.Errorf("an unknown flag is not a usage error: %v", err)
	}
	if err := newProgram().Run(t.Context(), []string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}
