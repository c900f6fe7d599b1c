// SPDX-License-Identifier: Apache-2.0

// Package projects generates projects of several shapes with admitkit init. It runs their "make test", which
// includes tests with a real API server, and applies their manifests to a real API server.
package projects

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// A project describes one generated project.
type project struct {
	name, reason string
	args         []string // arguments of admitkit init
	edit         func(t *testing.T, dir string)
	add          []string // arguments of "admitkit add hook", which runs after edit
	changed      []string // files that "admitkit add hook" updates
	deploy       []string // folders to apply, in this order
	installs     bool     // run the program with its own RBAC rules
	released     bool     // install the Helm chart
	nightly      bool     // test the project in "make nightly" only
}

var all = []project{
	{
		name: "pod-mutator", reason: "one mutating hook: no RBAC rules for the validating configuration",
		args:     []string{"--mutate", "pods", "--certs=self-managed"},
		deploy:   []string{"config"},
		installs: true,
		released: true,
	},
	{
		name: "deployment-validator", reason: "certificates of cert-manager, YAML registrations, and a hook that reads the cluster",
		args:   []string{"--validate", "pods,apps/v1/deployments", "--priority-class=system-cluster-critical", "--module=github.com/acme/policy"},
		edit:   readingHook,
		deploy: []string{"config", "config/webhooks"},
	},
	{
		name: "widgets", reason: "a custom resource whose Go type is in the project, and a later validating hook",
		args:     []string{"--mutate", "example.com/v1/widgets=example.com/widgets/api/v1.Widget"},
		add:      []string{"--validate", "example.com/v1/widgets=example.com/widgets/api/v1.Widget"},
		changed:  []string{"hooks/hooks.go", "config/webhooks/webhooks.yaml"},
		deploy:   []string{"config/crd", "config"},
		released: true,
	},
	{
		name: "many", reason: "several kinds: ambiguous names, cluster-scoped, types of another module; and more hooks later",
		args: []string{"--mutate", "pods,example.org/v1beta1/carts=example.org/cart/types.Cart,autoscaling/v2/horizontalpodautoscalers",
			"--validate", "namespaces,rolebindings", "--certs=self-managed", "--module=shop.example.org/many", "--replace=example.org/cart=cart"},
		edit:    ownHook,
		add:     []string{"--validate", "pods,events.events.k8s.io", "--mutate", "shop.example.org/v1/orders=shop.example.org/many/api/v1.Order"},
		changed: []string{"hooks/hooks.go"},
		deploy:  []string{"config/crd", "config"},
		nightly: true,
	},
}

// ownHook edits a project as a user would: it changes the rule and adds a hook.
func ownHook(t *testing.T, dir string) {
	replace(t, filepath.Join(dir, "hooks/rules.go"), `"unassigned"`, `"nobody"`)
	write(t, filepath.Join(dir, "hooks/own.go"), `package hooks

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Secrets returns a hook that rejects Secrets with the name password.
func Secrets() *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "own.example.org",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "secrets")),
	}, func(_ context.Context, req *webhook.Request[corev1.Secret]) error {
		if req.Object.Name == "password" {
			return webhook.Deny("find a better name")
		}
		return nil
	})
}
`)
	replace(t, filepath.Join(dir, "hooks/hooks.go"), "\t}, nil\n}", "\t\tSecrets(),\n\t}, nil\n}")
}

// readingHook adds a hook and its test. The hook reads Namespaces from a cache, as docs/reading.md shows.
func readingHook(t *testing.T, dir string) {
	hooks := filepath.Join(dir, "hooks/hooks.go")
	replace(t, hooks, "func Hooks(context.Context, *program.Deps) ([]*webhook.Hook, error) {\n", `func Hooks(_ context.Context, deps *program.Deps) ([]*webhook.Hook, error) {
	clients, err := kubernetes.NewForConfig(deps.Config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	namespaces := factory.Core().V1().Namespaces().Lister()
	deps.RunInformers(factory)
	deps.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}})
`)
	replace(t, hooks, "\t}, nil\n}", "\t\tFrozen(namespaces),\n\t}, nil\n}")
	replace(t, hooks, "\t\"context\"\n", `	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
`)
	write(t, filepath.Join(dir, "hooks/frozen.go"), `package hooks

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	listers "k8s.io/client-go/listers/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Frozen returns a hook that denies new ConfigMaps in Namespaces with the label frozen.
func Frozen(namespaces listers.NamespaceLister) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "frozen.acme.example.com",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
	}, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
		namespace, err := namespaces.Get(req.Namespace)
		if err != nil {
			return fmt.Errorf("read the namespace: %s", err)
		}
		if _, frozen := namespace.Labels["frozen"]; frozen {
			return webhook.Denyf("the namespace %s is frozen", namespace.Name)
		}
		return nil
	})
}
`)
	write(t, filepath.Join(dir, "e2e/frozen_test.go"), `package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestFrozen(t *testing.T) {
	for name, labels := range map[string]map[string]string{"ice": {"frozen": ""}, "water": nil} {
		if err := cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the hook has decided about a ConfigMap in "+name, func() (bool, error) {
			err := cluster.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: name}}, client.DryRunAll)
			if labels == nil {
				return err == nil, err
			}
			return err != nil && strings.Contains(err.Error(), "denied the request: the namespace ice is frozen"), err
		})
	}
}
`)
	command(t, dir, "go", "mod", "tidy")
	command(t, dir, "make", "manifests")
	out, err := execute(t, dir, "go", "test", ".")
	if err == nil || !strings.Contains(out, "config/deployment.yaml: set automountServiceAccountToken: true, because") {
		t.Errorf("Pods without a token: %v\n%s", err, out)
	}
	replace(t, filepath.Join(dir, "config/deployment.yaml"), "automountServiceAccountToken: false", "automountServiceAccountToken: true")
}

// cart is a module with an API type in a package whose name differs from the API version.
const cart = `package types

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

type Cart struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
}
`

var (
	admitkit string // path of the admitkit program
	cluster  *apiserver.Server

	kubeconfig string // kubeconfig of the cluster
)

func TestMain(m *testing.M) {
	need.APIServerForAll()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "admitkit-projects-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	admitkit = filepath.Join(dir, "admitkit")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", admitkit, "../../cmd/admitkit").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("%w\n%s", err, out)
	}
	if cluster, err = apiserver.Start(ctx, nil); err != nil {
		return 1, err
	}
	defer func() { _ = cluster.Stop() }()
	if err := cluster.StartControllers("namespace-controller", "garbage-collector-controller"); err != nil {
		return 1, err
	}
	if kubeconfig, err = cluster.WriteFile("kubeconfig", cluster.Kubeconfig); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// registering is locked while a project registers hooks on the shared API server, because hooks without a
// server block the objects of other projects.
var registering sync.RWMutex

// TestProjects tests each project, at most two at the same time. With ADMITKIT_CASES=all, which "make nightly" sets, it
// also tests the nightly projects.
func TestProjects(t *testing.T) {
	free := make(chan struct{}, 2)
	for _, p := range all {
		if p.nightly && os.Getenv("ADMITKIT_CASES") != "all" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			free <- struct{}{}
			defer func() { <-free }()
			p.test(t)
		})
	}
}

func (p *project) test(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, p.name)
	write(t, filepath.Join(parent, "cart/go.mod"), "module example.org/cart\n\ngo 1.26\n")
	write(t, filepath.Join(parent, "cart/types/cart.go"), cart)

	command(t, parent, admitkit, append([]string{"init", p.name}, p.args...)...)
	if p.edit != nil {
		p.edit(t, dir)
	}
	if p.add != nil {
		p.grows(t, dir)
	}
	began := time.Now()
	targets := []string{"test", "lint"}
	if p.installs { // one project is enough, because a build for the image compiles everything again
		targets = append(targets, "build")
	}
	command(t, dir, "make", append(targets, "ADMITKIT="+admitkit)...)
	t.Logf("%s: make %s took %s", p.reason, strings.Join(targets, " "), time.Since(began).Round(time.Second))
	unchanged(t, dir, func() { command(t, dir, "make", "manifests") }, "bin/")
	p.applies(t, dir)
	p.charts(t, dir)
	if p.released {
		p.installsChart(t, dir)
	}
	if slices.Contains(p.deploy, "config/webhooks") {
		p.outlivesItsNamespace(t, dir)
	}
	if p.installs {
		p.install(t, dir)
		p.namesMissingServer(t, dir)
	}
}

// namesMissingServer runs the tests of the project without an API server. It checks that the error names the variable
// KUBEBUILDER_ASSETS and a command.
func (p *project) namesMissingServer(t *testing.T, dir string) {
	out, err := execute(t, dir, "make", "e2e", "KUBEBUILDER_ASSETS=/nowhere")
	if err == nil || !strings.Contains(out, `from KUBEBUILDER_ASSETS="/nowhere": `) || !strings.Contains(out, "\nunset KUBEBUILDER_ASSETS; make e2e ") {
		t.Errorf("without an API server the tests fail with %v\n%s", err, out)
	}
}

// grows runs "admitkit add hook". The command must not change the user's files. A second run must fail and change
// nothing.
func (p *project) grows(t *testing.T, dir string) {
	before := read(t, dir)
	command(t, dir, admitkit, append([]string{"add", "hook"}, p.add...)...)
	for name, text := range read(t, dir) {
		old, was := before[name]
		delete(before, name)
		switch {
		case !was || bytes.Equal(old, text) || name == "go.mod" || name == "go.sum":
		case !slices.Contains(p.changed, name):
			t.Errorf("%s was changed", name)
		}
	}
	for name := range before {
		t.Errorf("%s was deleted", name)
	}
	// A second run fails and changes nothing.
	unchanged(t, dir, func() {
		out, err := execute(t, dir, admitkit, append([]string{"add", "hook"}, p.add...)...)
		if err == nil || !strings.Contains(out, "already exists: nothing was changed") {
			t.Errorf("the command fails with %v\n%s", err, out)
		}
	})
}

// applies checks that a real API server accepts all manifests, and that it accepts the Pods under the
// restricted Pod Security Standard.
func (p *project) applies(t *testing.T, dir string) {
	registering.RLock()
	defer registering.RUnlock()
	for _, args := range [][]string{{"create", "namespace", p.name}, {"label", "namespace", p.name, "pod-security.kubernetes.io/enforce=restricted"}} {
		if _, err := kubectl(t, dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(string(read(t, dir)[".admitkit.yaml"]), "certs: cert-manager") {
		definitions, err := filepath.Abs("testdata/cert-manager.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kubectl(t, dir, "apply", "--server-side", "-f", definitions); err != nil {
			t.Fatal(err)
		}
		if _, err := kubectl(t, dir, "wait", "--for=condition=established", "--timeout=1m", "-f", definitions); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range p.deploy {
		out, err := kubectl(t, dir, "apply", "--server-side", "--dry-run=server", "-k", folder)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out, "Warning") {
			t.Errorf("kubectl warns:\n%s", out)
		}
	}
}

func kubectl(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := cluster.Kubectl(t.Context(), kubeconfig, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// command runs a command that must succeed.
func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	out, err := execute(t, dir, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
}

func execute(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "MAKEFLAGS=", "MAKELEVEL=", "KUBEBUILDER_ASSETS="+cluster.Dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// unchanged checks that a step changes no files of the folder, except those with one of the prefixes.
func unchanged(t *testing.T, dir string, step func(), but ...string) {
	t.Helper()
	before := read(t, dir)
	step()
	after := read(t, dir)
	for name := range after {
		if _, was := before[name]; !was {
			before[name] = nil
		}
	}
	for name, text := range before {
		skipped := slices.ContainsFunc(but, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if now, is := after[name]; !skipped && (!is || text == nil || !bytes.Equal(now, text)) {
			t.Errorf("%s was changed", name)
		}
	}
}

// read returns the content of all files of a folder.
func read(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path) // the path is always below dir
		found[filepath.ToSlash(name)] = append([]byte{}, text...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func write(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func replace(t *testing.T, name, old, now string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), old) != 1 {
		t.Fatalf("%s must have %q exactly once", name, old)
	}
	write(t, name, strings.Replace(string(text), old, now, 1))
}
