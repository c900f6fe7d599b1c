// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// staticHooks is the source of two packages in the txtar format. Package hooks has several hooks. Package narrow has
// one of them, with an objectSelector.
const staticHooks = `
-- hooks/hooks.go --
package hooks

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var Stamp = webhook.Mutating(admissionregistrationv1.MutatingWebhook{
	Name: "stamp.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
}, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
	req.Object.Labels = map[string]string{"stamped": "yes"}
	return nil
})

var Guard = webhook.Validating(admissionregistrationv1.ValidatingWebhook{
	Name: "guard.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
}, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
	if req.Object.Data["bad"] != "" {
		return webhook.Deny("it is bad")
	}
	return nil
})

var Keeper = webhook.Validating(admissionregistrationv1.ValidatingWebhook{
	Name: "keeper.example.com", Rules: webhook.Rules(webhook.OnCreate("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations")),
}, func(_ context.Context, req *webhook.Request[admissionregistrationv1.MutatingWebhookConfiguration]) error {
	if req.Name == "unwanted" {
		return webhook.Deny("the name is forbidden")
	}
	return nil
})
-- narrow/hooks.go --
package narrow

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var Guard = webhook.Validating(admissionregistrationv1.ValidatingWebhook{
	Name: "guard.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
	ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}},
}, func(context.Context, *webhook.Request[corev1.ConfigMap]) error { return nil })
`

// hooksModule writes a module that requires this one, and returns its folder.
func hooksModule(t *testing.T, archive string) string {
	t.Helper()
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ours := string(readFile(t, filepath.Join(source, "go.mod")))
	writeFile(t, filepath.Join(dir, "go.mod"), strings.Replace(ours, "module github.com/admitkit/admitkit\n",
		"module example.com/shop\n\nrequire github.com/admitkit/admitkit v0.0.0\n\nreplace github.com/admitkit/admitkit => "+source+"\n", 1))
	writeFile(t, filepath.Join(dir, "go.sum"), string(readFile(t, filepath.Join(source, "go.sum"))))
	for _, f := range txtar.Parse([]byte(archive)).Files {
		writeFile(t, filepath.Join(dir, f.Name), string(f.Data))
	}
	return dir
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// admitkit runs the program with these arguments. The test fails unless the exit code is 0.
func admitkit(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	s := &screen.Screen{In: strings.NewReader(""), Out: &out, Err: &errOut, Colour: "never", Getenv: func(string) string { return "" }}
	if code := run(t.Context(), s, args); code != exitOK {
		t.Fatalf("exit %d:\n%s", code, &errOut)
	}
	return out.String(), errOut.String()
}

// A staticServer is an API server that reads webhook configurations from manifests in a folder.
type staticServer struct {
	dir     string // folder of the manifests
	module  string
	process *gohooks.Process
	*apiserver.Server
	client *kubernetes.Clientset
}

const staticGate = "ManifestBasedAdmissionControlConfig=true"

func startStatic(t *testing.T) *staticServer {
	t.Helper()
	need.APIServer(t)
	s := &staticServer{dir: filepath.Join(t.TempDir(), "admission"), module: hooksModule(t, staticHooks)}
	p, err := gohooks.Build(t.Context(), gohooks.Options{Dir: s.module, Package: "./hooks"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if s.process, err = p.Start(t.Context(), gohooks.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.process.Close)
	s.write(t, "hooks")
	if s.Server, err = apiserver.Start(t.Context(), s.flags()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	if s.client, err = kubernetes.NewForConfig(s.Config); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *staticServer) flags() map[string][]string {
	return map[string][]string{
		"feature-gates":                 {staticGate},
		"admission-control-config-file": {filepath.Join(s.dir, "admission-configuration.yaml")},
	}
}

// write runs "admitkit manifests" for a package. The command writes static manifests to the server's folder.
func (s *staticServer) write(t *testing.T, pkg string) (stderr string) {
	t.Helper()
	caFile := filepath.Join(s.module, "ca.crt")
	writeFile(t, caFile, string(s.process.CA))
	_, stderr = admitkit(t, "manifests", filepath.Join(s.module, pkg), "--form", "static", "--url", s.process.URL, "--name", "shop",
		"--ca-file", caFile, "--server-dir", s.dir, "--dir", s.dir)
	return stderr
}

// create sends a dry-run request for a ConfigMap.
func (s *staticServer) create(ctx context.Context, data map[string]string) (*corev1.ConfigMap, error) {
	return s.client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}, Data: data},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// dryRun applies manifests with kubectl as a dry run.
func (s *staticServer) dryRun(t *testing.T, manifests string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, kubeconfig, string(s.Kubeconfig))
	cmd := s.Kubectl(t.Context(), kubeconfig, "apply", "--server-side", "--dry-run=server", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests)
	said, err := cmd.CombinedOutput()
	const want = "mutatingwebhookconfiguration.admissionregistration.k8s.io/webhook serverside-applied (server dry run)\n" +
		"validatingwebhookconfiguration.admissionregistration.k8s.io/webhook serverside-applied (server dry run)\n"
	if err != nil || string(said) != want {
		t.Errorf("%v: %s", err, said)
	}
}

// await calls so until it returns true. The test fails after 90 seconds, with a message that contains what.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !so(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// TestStaticManifests checks that a real API server calls hooks that only static manifests register.
func TestStaticManifests(t *testing.T) {
	s := startStatic(t)
	ctx, bad := t.Context(), map[string]string{"bad": "yes"}

	got, err := s.create(ctx, nil)
	if err != nil || got.Labels["stamped"] != "yes" {
		t.Errorf("%v: %v", got, err)
	}
	if _, err := s.create(ctx, bad); err == nil || !strings.Contains(err.Error(), `admission webhook "guard.example.com" denied the request: it is bad`) {
		t.Errorf("got %v", err)
	}
	api := s.client.AdmissionregistrationV1()
	mutating, err := api.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil || len(mutating.Items) != 0 {
		t.Errorf("%v: %v", mutating, err)
	}
	// For changes of webhook configurations, the API server calls static webhooks and no others.
	_, err = api.MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "unwanted"}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "the name is forbidden") {
		t.Errorf("got %v", err)
	}
	_, err = api.MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "other.static.k8s.io"}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "are reserved for static manifest-based configurations") {
		t.Errorf("got %v", err)
	}

	// The forms for other API servers can also be applied to this one.
	for _, form := range []string{"yaml", "json"} {
		manifests, _ := admitkit(t, "manifests", filepath.Join(s.module, "hooks"), "--service", "shop/webhook", "--label", "app=shop", "-o", form)
		s.dryRun(t, manifests)
	}

	// The API server notices changed and removed files.
	notes := s.write(t, "narrow")
	old := filepath.Join(s.dir, "mutating", "shop.yaml")
	if want := old + " is left over from an earlier run, and no current hook needs it: delete it\n"; !strings.HasSuffix(notes, want) {
		t.Errorf("notes %q", notes)
	}
	await(t, "the guard selects fewer objects", func() bool { _, err := s.create(ctx, bad); return err == nil })
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	await(t, "nothing is stamped", func() bool { got, err := s.create(ctx, nil); return err == nil && got.Labels["stamped"] == "" })

	// An invalid file is ignored: the previous manifests stay active, and a metric counts the failure.
	s.write(t, "hooks")
	await(t, "the guard is back", func() bool { _, err := s.create(ctx, bad); return err != nil })
	writeFile(t, filepath.Join(s.dir, "validating", "wrong.yaml"), "kind: nonsense")
	await(t, "the failure is counted", func() bool {
		metrics, err := s.client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		return err == nil && bytes.Contains(metrics, []byte(`automatic_reloads_total{`)) &&
			bytes.Contains(metrics, []byte(`plugin="ValidatingAdmissionWebhook",status="failure"`))
	})
	if _, err := s.create(ctx, bad); err == nil {
		t.Error("the API server no longer calls the validating hook")
	}
}

// TestBadStatic starts API servers with static manifests that "admitkit manifests" never writes, because they are
// invalid. No such API server may start. docs/manifests.md quotes the errors.
func TestBadStatic(t *testing.T) {
	need.APIServer(t)
	s := &staticServer{dir: t.TempDir(), module: hooksModule(t, staticHooks)}
	admitkit(t, "manifests", filepath.Join(s.module, "hooks"), "--form", "static", "--url", "https://127.0.0.1:9443", "--name", "shop", "--server-dir", s.dir, "--dir", s.dir)
	file := filepath.Join(s.dir, "validating", "shop.yaml")
	right := string(readFile(t, file))
	for _, row := range []struct{ reason, from, to, want string }{
		{"a name for the API", "shop.static.k8s.io", "shop", `must have a name ending with \".static.k8s.io\"`},
		{"a Service", "url: https://127.0.0.1:9443/validate/guard.example.com", "service: {namespace: shop, name: hooks}", "clientConfig.service is not supported for static manifests"},
		{"the other kind", right, string(readFile(t, filepath.Join(s.dir, "mutating", "shop.yaml"))), "unsupported resource type *v1.MutatingWebhookConfiguration"},
		{"the old version", "admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1", "unsupported resource type *v1beta1.ValidatingWebhookConfiguration"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			writeFile(t, file, strings.Replace(right, row.from, row.to, 1))
			server, err := apiserver.Start(t.Context(), s.flags())
			if err == nil {
				_ = server.Stop() // the test has failed already
				t.Fatal("the API server started")
			}
			t.Log(err) // docs/manifests.md quotes these messages
			if !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v\nwant %s", err, row.want)
			}
		})
	}
	t.Run("no feature gate", func(t *testing.T) {
		writeFile(t, file, right)
		flags := s.flags()
		delete(flags, "feature-gates")
		if _, err := apiserver.Start(t.Context(), flags); err == nil || !strings.Contains(err.Error(), "requires the ManifestBasedAdmissionControlConfig feature gate") {
			t.Errorf("got %v", err)
		}
	})
}
