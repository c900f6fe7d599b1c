// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/internal/cli/cluster"
)

// TestCluster checks that dev removes its registrations from an existing cluster when the user ends it with Ctrl-C.
// After a kill, the next dev process must remove them when it starts.
func TestCluster(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	server := apiservertest.Start(t, nil)
	kubeconfig, err := server.WriteFile("kubeconfig", server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, server.Config)
	o := Options{Dir: module(t, shop), JSON: true, Cluster: true, Yes: true, Where: cluster.Flags{Kubeconfig: kubeconfig}}

	// The first dev process is killed, and leaves its registration.
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
		t.Fatalf("the killed dev left %v, want one configuration", left)
	}
	made, err = client.CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || made.Labels["team"] != "" {
		t.Errorf("the registration of a killed dev must not stop the cluster: %v, %v", made.Labels, err)
	}

	// The next dev process removes this registration when it starts, and its own when it ends. It keeps the
	// registrations of running dev processes and of other programs.
	other := begin(t, o)
	other.out.next(t, "ready", event("ready"))
	r := begin(t, o)
	r.out.next(t, "ready", event("ready"))
	now := configurations(t, client)
	if len(now) != 2 || slices.Contains(now, left[0]) {
		t.Errorf("the configurations are %v, and %v was left by the killed dev", now, left)
	}
	if !strings.Contains(other.err.String(), "removed the registrations that a killed \"admitkit dev\" left in the cluster: 1 configuration") {
		t.Errorf("got the messages %s", other.err)
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
