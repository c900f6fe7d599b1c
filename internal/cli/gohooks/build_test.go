// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// module writes the files of archive as a module that requires admitkit, and returns its folder.
func module(t *testing.T, archive string) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ours := read(t, filepath.Join(root, "go.mod"))
	write(t, filepath.Join(dir, "go.mod"), strings.Replace(ours, "module github.com/admitkit/admitkit\n",
		"module example.com/shop\n\nrequire github.com/admitkit/admitkit v0.0.0\n\nreplace github.com/admitkit/admitkit => "+root+"\n", 1))
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(root, "go.sum")))
	for _, file := range txtar.Parse([]byte(archive)).Files {
		write(t, filepath.Join(dir, file.Name), string(file.Data))
	}
	return dir
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const shop = `
-- internal/hooks/b.go --
package hooks

import (
	"fmt"

	hook "github.com/admitkit/admitkit/pkg/webhook"
)

func init() { fmt.Print("hello from the package") }

// Last is a hook in the last file.
func Last() (*hook.Hook, error) { return deny("last.example.com"), nil }

// Not has a parameter, so it is not a hook.
func Not(name string) *hook.Hook { return deny(name) }

func (t T) Method() *hook.Hook { return nil }
-- internal/hooks/a.go --
package hooks

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

type T struct{}

var (
	First  = deny("first.example.com")
	Number = 3
	hidden = deny("hidden.example.com")
)

func Second() *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: "second.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
}

func deny(name string) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: name, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		println("called for", req.Name)
		return webhook.Deny("no")
	})
}
`

func TestBuildDescribeAndServe(t *testing.T) {
	dir := module(t, shop)
	before := tree(t, dir)
	var log bytes.Buffer
	p, err := Build(t.Context(), Options{Dir: dir, Package: "./internal/hooks", Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	want := []Hook{
		{"First", "first.example.com", "/validate/first.example.com", false},
		{"Second", "second.example.com", "/mutate/second.example.com", true},
		{"Last", "last.example.com", "/validate/last.example.com", false},
	}
	if diff := cmp.Diff(want, p.Hooks); diff != "" {
		t.Error(diff)
	}
	if p.Package != "example.com/shop/internal/hooks" || log.String() != "hello from the package\n" {
		t.Errorf("package %s, log %q", p.Package, &log)
	}

	mutating, validating, err := p.Describe(t.Context(), webhook.ConfigurationOptions{Name: "shop", URL: "https://shop.example.com"})
	if err != nil || len(mutating.Webhooks) != 1 || len(validating.Webhooks) != 2 {
		t.Errorf("%v, %v: %v", mutating, validating, err)
	}
	if _, _, err = p.Describe(t.Context(), webhook.ConfigurationOptions{Name: "shop"}); err == nil || !strings.Contains(err.Error(), "the webhook has no address") {
		t.Errorf("got %v", err)
	}

	log.Reset()
	process, err := p.Start(t.Context(), StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Close)
	response := post(t, process, "/validate/first.example.com", review("web"))
	if response.StatusCode != http.StatusOK {
		t.Errorf("status %s", response.Status)
	}
	process.Close()
	process.Close() // a second Close does nothing
	<-process.Done()
	if err := process.Err(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "called for web\n") {
		t.Errorf("log %q", &log)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("the user's folder is changed: %s", diff)
	}
	p.Close()
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("the temporary folder is there: %v", err)
	}
}

// tree lists the files below a folder.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func post(t *testing.T, p *Process, path, body string) *http.Response {
	t.Helper()
	response, err := client(p).Post(p.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Error(err)
	}
	return response
}

func client(p *Process) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CA)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
}
