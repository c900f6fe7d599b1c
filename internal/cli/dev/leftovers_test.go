// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// TestCleanupOf checks which state files of killed dev processes are removed, and which are kept.
func TestCleanupOf(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	here := state{Server: "https://a", Cluster: "1", Time: now}
	rows := []struct {
		reason string
		note   state
		server string // current server URL of the state file's context
		want   cleanup
	}{
		{"the same URL and cluster", state{Server: "https://a", Cluster: "1", Time: now}, "https://a", removeHere},
		{"the same cluster by another URL", state{Server: "https://b", Cluster: "1", Time: now}, "https://b", removeHere},
		{"the same cluster after a long time", state{Server: "https://a", Cluster: "1"}, "https://a", removeHere},
		{"no permission to see the UID then", state{Server: "https://a", Time: now}, "https://a", removeHere},
		{"a new cluster at the URL", state{Server: "https://a", Cluster: "2", Time: now}, "https://a", forget},
		{"another cluster, which may still exist", state{Server: "https://b", Cluster: "2", Time: now}, "https://b", keep},
		{"another cluster, not in this kubeconfig", state{Server: "https://b", Cluster: "2", Time: now}, "", keep},
		{"its context has another server now", state{Server: "https://b", Cluster: "2", Time: now}, "https://c", forget},
		{"a month less a day", state{Server: "https://b", Time: now.Add(-29 * 24 * time.Hour)}, "https://b", keep},
		{"a month and a day", state{Server: "https://b", Time: now.Add(-31 * 24 * time.Hour)}, "https://b", forget},
	}
	for _, row := range rows {
		if got := cleanupOf(&row.note, &here, row.server); got != row.want {
			t.Errorf("%s: got %d, want %d", row.reason, got, row.want)
		}
	}
}

// TestKeptStateIsReported checks that dev reports each state file of another cluster, and how to remove it.
func TestKeptStateIsReported(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, kubeconfig, `apiVersion: v1
kind: Config
clusters:
- {name: moved, cluster: {server: "https://192.0.2.3"}}
contexts:
- {name: moved, context: {cluster: moved, user: me}}
`)
	now := time.Now()
	for id, context := range map[string]string{"aaaa": "elsewhere", "bbbb": "moved"} {
		note, err := writeState(state{ID: id, Server: "https://192.0.2.2", Context: context, Time: now})
		if err != nil {
			t.Fatal(err)
		}
		note.release()
	}
	var said bytes.Buffer
	s := &screen.Screen{Err: &said}
	err := removeLeftovers(t.Context(), s, &rest.Config{Host: "https://192.0.2.1"}, &cluster.Flags{Kubeconfig: kubeconfig}, state{Server: "https://192.0.2.1", Time: now})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := stateDir()
	if err != nil {
		t.Fatal(err)
	}
	kept, gone := filepath.Join(dir, "aaaa.json"), filepath.Join(dir, "bbbb.json")
	for _, want := range []string{
		"in the cluster of context elsewhere (https://192.0.2.2): admitkit dev --cluster --context elsewhere removes them; if that cluster no longer exists: rm " + kept + "\n",
		"in the former cluster of context moved (https://192.0.2.2)",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("there is no %q in %s", want, said.String())
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}
