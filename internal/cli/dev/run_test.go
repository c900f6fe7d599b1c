// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/leaks"
)

// childVariable is an environment variable. If it is set, the test binary runs dev, so that a test can kill it.
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
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.fuzz=") }) {
		os.Exit(m.Run()) // a fuzzer leaks the goroutine that watches for Ctrl-C
	}
	leaks.Main(m)
}

// TestDev runs dev from its start to its end. dev must report the first admission, a change that does not compile, and the
// registration of a new hook. A changed source must take effect without a failed call. When dev ends, it must leave
// nothing behind.
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

	// Send calls until the test cancels ctx. None may fail.
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

	// Change the source of a package, and add a hook for another kind.
	write(t, filepath.Join(dir, "internal/names/names.go"), "package names\n\nconst Team = \"stores\"\n")
	write(t, filepath.Join(dir, "hooks/maps.go"), denyAll)
	e := r.out.next(t, "rebuilt", func(e entry) bool { return e.Event == "rebuilt" && len(e.Webhooks) == 2 })
	if !e.Registered {
		t.Error("the registration has changed")
	}
	// When dev reports the new registration, the API server enforces it.
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

// TestCrash checks that dev restarts crashed hooks.
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
		t.Error("the request was admitted although the hook crashed and failurePolicy is Fail")
	}
	if a := r.out.next(t, "admission", event("admission")); a.Outcome != Failed {
		t.Errorf("%+v", a.Admission)
	}
	if e := r.out.next(t, "crash", event("crashed")); !strings.Contains(e.Message, "exit status 3") || !strings.Contains(e.Message, "this was it") {
		t.Errorf("message %s", e.Message)
	}
	// Calls wait while the hooks restart.
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

// TestInterruptedStart checks that Ctrl-C at any time during the start is not an error and leaves nothing behind.
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
