// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/leaks"
)

// childVariable has the test binary be a dev of its own, which a test can kill.
const childVariable = "ADMITKIT_DEV_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		var o Options
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
		if err := Run(context.Background(), screen.New(), o); err != nil {
			panic(err)
		}
		return
	}
	leaks.Main(m)
}

const shop = `
-- hooks/hooks.go --
package hooks

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"

	"example.com/shop/internal/names"
)

var Team = webhook.Mutating(admissionregistrationv1.MutatingWebhook{
	Name: "team.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	req.Object.Labels = map[string]string{"team": names.Team}
	return nil
})
-- internal/names/names.go --
package names

const Team = "shop"
`

const denyAll = `package hooks

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var Maps = webhook.Validating(admissionregistrationv1.ValidatingWebhook{
	Name: "maps.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
}, func(context.Context, *webhook.Request[corev1.ConfigMap]) error { return webhook.Deny("no maps here") })
`

// module writes a module with these files, and returns its folder.
func module(t *testing.T, archive string) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), strings.Replace(read(t, filepath.Join(root, "go.mod")), "module github.com/admitkit/admitkit\n",
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

// lines are what a dev prints, one a JSON object.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	read int
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// entry has the fields of admissions and of other events.
type entry struct {
	Admission
	Kubeconfig string
	Webhooks   []string
	Registered bool
}

// next returns the next one that is wanted, of those that are not read yet.
func (l *lines) next(t *testing.T, what string, wanted func(entry) bool) entry {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		rest := l.String()[l.read:]
		for {
			line, after, whole := strings.Cut(rest, "\n")
			if !whole {
				break
			}
			l.read += len(line) + 1
			rest = after
			var e entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if wanted(e) {
				return e
			}
		}
		select {
		case <-deadline:
			t.Fatalf("no %s in\n%s", what, l.String())
		case <-again.C:
		}
	}
}

func event(name string) func(entry) bool { return func(e entry) bool { return e.Event == name } }

// A running dev.
type running struct {
	out, err *lines
	stop     func() error
}

func begin(t *testing.T, o Options) *running {
	t.Helper()
	r := &running{out: &lines{}, err: &lines{}}
	o.JSON = true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, &screen.Screen{In: strings.NewReader(""), Out: r.out, Err: r.err, Colour: "never", Getenv: os.Getenv}, o)
	}()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = r.stop() }) // it has been looked at, or the test has failed
	return r
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 1000, 1000
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	plain, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}}}
}

// A whole session: the first admission is told; a change is enforced without a failed call, though
// failures would be rejected; a change that does not compile is told; a new hook is registered;
// nothing is left.
func TestDev(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	dir := module(t, shop)
	r := begin(t, Options{Dir: dir})
	ready := r.out.next(t, "ready", event("ready"))
	if !slices.Equal(ready.Webhooks, []string{"team.example.com"}) {
		t.Errorf("webhooks %v", ready.Webhooks)
	}
	config, err := clientcmd.BuildConfigFromFlags("", ready.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, config)

	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a := r.out.next(t, "admission", event("admission"))
	if a.Webhook != "team.example.com" || a.Type != "mutating" || a.Operation != "CREATE" || a.Resource != "pods" || a.Namespace != "default" ||
		a.Name != "web" || a.User != "admin" || a.Outcome != Mutated || a.Round != 1 || a.DryRun || string(a.Patch) != `[{"op":"add","path":"/metadata/labels","value":{"team":"shop"}}]` {
		t.Errorf("%+v, patch %s", a.Admission, a.Patch)
	}

	// Calls go on all the time, and none may fail.
	ctx, cancel := context.WithCancel(t.Context())
	var teams []string
	first, done := make(chan struct{}), make(chan error, 1)
	go func() {
		begun := sync.OnceFunc(func() { close(first) })
		defer begun()
		for ctx.Err() == nil {
			made, err := client.CoreV1().Pods("default").Create(ctx, pod("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && ctx.Err() == nil {
				done <- err
				return
			}
			if err == nil && (len(teams) == 0 || teams[len(teams)-1] != made.Labels["team"]) {
				teams = append(teams, made.Labels["team"])
				begun()
			}
		}
		done <- nil
	}()
	<-first
	write(t, filepath.Join(dir, "internal/names/names.go"), "package names\n\nconst Team = \"store\"\n")
	if e := r.out.next(t, "rebuilt", event("rebuilt")); e.Registered {
		t.Error("the registration is the same")
	}
	r.out.next(t, "new behaviour", func(e entry) bool { return strings.Contains(string(e.Patch), "store") })

	write(t, filepath.Join(dir, "internal/names/names.go"), "package names\n\nconst Team = stores\n")
	if e := r.out.next(t, "buildFailed", event("buildFailed")); !strings.Contains(e.Message, "names.go:3:14: undefined: stores") {
		t.Errorf("message %s", e.Message)
	}
	r.out.next(t, "the hooks from before", func(e entry) bool { return strings.Contains(string(e.Patch), "store") })

	// A folder that nobody imports yet, and with it a hook of another kind.
	write(t, filepath.Join(dir, "internal/names/names.go"), "package names\n\nconst Team = \"stores\"\n")
	write(t, filepath.Join(dir, "hooks/maps.go"), denyAll)
	e := r.out.next(t, "rebuilt", func(e entry) bool { return e.Event == "rebuilt" && len(e.Webhooks) == 2 })
	if !e.Registered {
		t.Error("the registration has changed")
	}
	// It is enforced when it is told.
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{}); err == nil {
		t.Error("the map was not denied")
	}
	if e := r.out.next(t, "denial", func(e entry) bool { return e.Outcome == Denied }); e.Code != 403 || e.Message != "no maps here" || e.Type != "validating" {
		t.Errorf("%+v", e.Admission)
	}
	if err := os.Remove(filepath.Join(dir, "hooks/maps.go")); err != nil {
		t.Fatal(err)
	}
	r.out.next(t, "rebuilt", func(e entry) bool { return e.Event == "rebuilt" && len(e.Webhooks) == 1 })
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}

	cancel()
	if err := <-done; err != nil {
		t.Errorf("a call failed: %v", err)
	}
	if !strings.Contains(r.out.String(), `"waitedMilliseconds":`) {
		t.Error("no call waited for a build")
	}
	if !slices.IsSorted(teams) || teams[0] != "shop" || teams[len(teams)-1] != "stores" {
		t.Errorf("teams over time: %v", teams)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "admitkit-") {
			t.Errorf("%s is left", entry.Name())
		}
	}
	if out, err := exec.Command("ps", "-axo", "command").Output(); err != nil || strings.Contains(string(out), temporary) {
		t.Errorf("a process is left: %v\n%s", err, out)
	}
}

const crashing = `
-- hooks/hooks.go --
package hooks

import (
	"context"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var Crash = webhook.Validating(admissionregistrationv1.ValidatingWebhook{
	Name: "crash.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	if req.Name == "crash" {
		println("this was it")
		os.Exit(3)
	}
	return nil
})
`

// Hooks that end are started again.
func TestCrash(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := begin(t, Options{Dir: module(t, crashing)})
	ready := r.out.next(t, "ready", event("ready"))
	config, err := clientcmd.BuildConfigFromFlags("", ready.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, config)
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod("crash"), metav1.CreateOptions{}); err == nil {
		t.Error("nobody decided, and failurePolicy is Fail")
	}
	if a := r.out.next(t, "admission", event("admission")); a.Outcome != Failed {
		t.Errorf("%+v", a.Admission)
	}
	if e := r.out.next(t, "crash", event("crashed")); !strings.Contains(e.Message, "exit status 3") || !strings.Contains(e.Message, "this was it") {
		t.Errorf("message %s", e.Message)
	}
	// What comes while they are started waits.
	for {
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{}); err == nil {
			break
		}
		if a := r.out.next(t, "admission", event("admission")); a.Outcome != Failed {
			t.Errorf("%+v", a.Admission)
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// Ctrl-C at any point of the start leaves nothing, and is no failure.
func TestInterruptedStart(t *testing.T) {
	dir := module(t, shop)
	for _, sign := range []string{"admitkit-hooks-*", "admitkit-hooks-*/hooks", "admitkit-server-*/pids", "admitkit-server-*/kubeconfig"} {
		t.Run(sign, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			r := begin(t, Options{Dir: dir})
			again := time.NewTicker(5 * time.Millisecond)
			defer again.Stop()
			for found := []string(nil); len(found) == 0; <-again.C {
				var err error
				if found, err = filepath.Glob(filepath.Join(temporary, sign)); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			left, err := filepath.Glob(filepath.Join(temporary, "admitkit-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func configurations(t *testing.T, client kubernetes.Interface) (names []string) {
	t.Helper()
	m, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Items {
		names = append(names, c.Name)
	}
	v, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Items {
		names = append(names, c.Name)
	}
	return names
}

// In a cluster of others nothing stays: not after Ctrl-C, and not after a kill, once the next one starts.
func TestCluster(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	server, err := apiserver.Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := server.WriteFile("kubeconfig", server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, server.Config)
	o := Options{Dir: module(t, shop), JSON: true, Cluster: true, Yes: true, Where: cluster.Flags{Kubeconfig: kubeconfig}}

	// One that is killed.
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out := &lines{}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+string(text))
	child.Stdout, child.Stderr = out, os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	out.next(t, "ready", event("ready"))
	made, err := client.CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || made.Labels["team"] != "shop" {
		t.Errorf("labels %v, %v", made.Labels, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	left := configurations(t, client)
	if len(left) != 1 {
		t.Fatalf("it was killed, and left %v", left)
	}
	made, err = client.CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || made.Labels["team"] != "" {
		t.Errorf("a machine that is gone must not stop a cluster: %v, %v", made.Labels, err)
	}

	// The next one removes that, and at its end its own; but not one that runs, and not of others.
	other := begin(t, o)
	other.out.next(t, "ready", event("ready"))
	r := begin(t, o)
	r.out.next(t, "ready", event("ready"))
	now := configurations(t, client)
	if len(now) != 2 || slices.Contains(now, left[0]) {
		t.Errorf("there are %v, after %v", now, left)
	}
	if !strings.Contains(other.err.String(), "a dev left behind that was killed: 1 configuration") {
		t.Errorf("it says %s", other.err)
	}
	c, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), now[0], metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Webhooks[0]; *w.FailurePolicy != "Ignore" || *w.TimeoutSeconds > maxTimeout {
		t.Errorf("failurePolicy %s, timeout %d", *w.FailurePolicy, *w.TimeoutSeconds)
	}
	if err := errors.Join(r.stop(), other.stop()); err != nil {
		t.Error(err)
	}
	if left := configurations(t, client); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	dir, err := stateDir()
	if err != nil {
		t.Fatal(err)
	}
	if notes, err := os.ReadDir(dir); err != nil || len(notes) > 0 {
		t.Errorf("left: %v, %v", notes, err)
	}
}
