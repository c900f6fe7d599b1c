// SPDX-License-Identifier: Apache-2.0

//go:build unix

package apiserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// emptyTemp sets TMPDIR to an empty folder.
func emptyTemp(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func TestStartAndStop(t *testing.T) {
	need.APIServer(t)
	dir := emptyTemp(t)
	s, err := Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := s.WriteFile("kubeconfig", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Kubectl(t.Context(), kubeconfig, "auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "system:masters") {
		t.Errorf("kubectl says %s, %v", out, err)
	}
	var pids []int
	for _, p := range s.processes {
		pids = append(pids, p.cmd.Process.Pid)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("it was stopped, so nothing failed: %v", err)
	}
	for _, pid := range pids {
		if commandHas(pid, s.data.path) {
			t.Errorf("process %d is still there", pid)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%s is still there", left[0].Name())
	}
}

func TestStartReportsCause(t *testing.T) {
	need.APIServer(t)
	taken, err := net.Listen("tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	rows := []struct {
		name, reason string
		options      Options
		want         []string
	}{
		{"flag", "an unknown flag is named", Options{Flags: map[string][]string{"no-such-flag": {"1"}}}, []string{"unknown flag: --no-such-flag"}},
		{"gate", "an unknown feature gate is named", Options{Flags: map[string][]string{"feature-gates": {"NoSuch=true"}}}, []string{"NoSuch"}},
		{"file", "a missing file is named", Options{Flags: map[string][]string{"audit-policy-file": {"/no/such"}, "audit-log-path": {"-"}}}, []string{"/no/such"}},
		{"port", "a requested port is not replaced by another", Options{Port: taken.Addr().(*net.TCPAddr).Port}, []string{"port", "is in use"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := emptyTemp(t)
			_, err := Run(t.Context(), row.options)
			for _, want := range row.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q: %s", err, want, row.reason)
				}
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%s is still there", left[0].Name())
			}
		})
	}
}

func TestStartIsInterrupted(t *testing.T) {
	need.APIServer(t)
	dir := emptyTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil { // cancel as soon as a process has started
			if found, _ := filepath.Glob(filepath.Join(dir, prefix+"*", pidFile)); len(found) > 0 {
				return
			}
		}
	}()
	if _, err := Start(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%s is still there", left[0].Name())
	}
}

func TestCrashIsReported(t *testing.T) {
	need.APIServer(t)
	emptyTemp(t)
	s, err := Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.processes[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("Done is not closed")
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "kube-apiserver ended: signal: killed") {
		t.Errorf("got %v", err)
	}
}

// TestLeftovers checks that Run removes the processes and files of a killed program, and keeps a server that is in use.
func TestLeftovers(t *testing.T) {
	need.APIServer(t)
	emptyTemp(t)
	abandoned, err := Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	used, err := Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := used.Stop(); err != nil {
			t.Error(err)
		}
	}()
	abandoned.data.unlock() // as if the program had died and its processes had survived
	removeLeftovers()
	for _, p := range abandoned.processes {
		<-p.done
	}
	if _, err := os.Stat(abandoned.data.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data are still there: %v", err)
	}
	client, err := rest.HTTPClientFor(used.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	response, err := client.Get(used.Config.Host + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the other server answers %s, %v", response.Status, err)
	}
}

// TestRemoveWhileOthersLookForLeftovers checks that a program can remove its own data while
// other programs call removeLeftovers.
func TestRemoveWhileOthersLookForLeftovers(t *testing.T) {
	emptyTemp(t)
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					removeLeftovers()
				}
			}
		})
	}
	defer others.Wait()
	defer close(done)
	for i := range 100 {
		d, err := newDataDir()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "kubeconfig", "pids", "x", "y", "z"} { // they take time to remove
			if err := os.WriteFile(filepath.Join(d.path, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.remove(); err != nil {
			t.Fatalf("folder %d: %v", i, err)
		}
	}
}

func TestMessage(t *testing.T) {
	rows := []struct {
		reason, line, text string
		failed             bool
	}{
		{"etcd writes JSON", `{"level":"fatal","msg":"discovery failed","error":"bind: address already in use"}`, "discovery failed: bind: address already in use", true},
		{"information is not a failure", `{"level":"info","msg":"ready"}`, "ready", false},
		{"the klog header is removed", `E1122 17:00:00.000000   12 run.go:72] "command failed" err="x"`, `"command failed" err="x"`, true},
		{"an unknown flag", "Error: unknown flag: --x", "Error: unknown flag: --x", true},
		{"an empty line", "", "", false},
	}
	for _, row := range rows {
		if text, failed := message(row.line); text != row.text || failed != row.failed {
			t.Errorf("%s: got %q, %v, want %q, %v", row.reason, text, failed, row.text, row.failed)
		}
	}
}

// TestRestart restarts the API server and etcd. The objects must still be there, Done must not be closed before Stop, and a
// crash after the restart must be reported.
func TestRestart(t *testing.T) {
	need.APIServer(t)
	emptyTemp(t)
	s, err := Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	admin := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(admin, s.Kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Kubectl(t.Context(), admin, "create", "namespace", "kept").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Kubectl(t.Context(), admin, "get", "namespace", "kept").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	select {
	case <-s.Done():
		t.Fatal("Done is closed")
	default:
	}
	if err := s.processes[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "kube-apiserver ended: signal: killed") {
		t.Errorf("got %v", err)
	}
}
