// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lag is the delay before the simulated kubelet updates the volume of a changed Secret.
const lag = 2 * time.Second

// program runs the program deny-policy with the arguments of the Deployment and the files of the Secret. It returns the
// address of the program.
func (s *service) program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	kubelet(t, dir)
	var args []string
	d, err := env.clients.AppsV1().Deployments(name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("=:9443", "=localhost:0", "=:8080", "=localhost:0", "=/tls/", "="+dir+"/", "=/ledger/", "="+dir+"/", "=10s", "=0s")
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		args = append(args, here.Replace(arg))
	}
	cmd := exec.Command(env.program, args...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := make(chan string, 1)
	go func() {
		defer close(addr)
		for lines := bufio.NewReader(out); ; {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var line struct{ Msg, Addr string }
			if err := json.Unmarshal(text, &line); err == nil && line.Msg == "serving webhooks" {
				addr <- line.Addr
			}
			t.Log(string(bytes.TrimSpace(text)))
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		for range addr { // wait for the end of the log
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	target, ok := <-addr
	if !ok {
		t.Fatal("the program ended before it served")
	}
	return target
}

// kubelet keeps the files of the Secret in a folder up to date, as the kubelet does in a volume: with a delay,
// and all files at once.
func kubelet(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var lastErr error // error of the last step, or nil
	seen, n, done := "", 0, make(chan struct{})
	step := func() error {
		secret, err := env.clients.CoreV1().Secrets(name).Get(ctx, name+"-tls", metav1.GetOptions{})
		if err != nil || secret.ResourceVersion == seen {
			return err
		}
		if seen != "" && !pause(ctx, lag) {
			return ctx.Err()
		}
		seen = secret.ResourceVersion
		n++
		return project(dir, n, secret.Data)
	}
	poll(t, "the Secret", func(context.Context) error { return step() })
	go func() {
		defer close(done)
		for pause(ctx, 100*time.Millisecond) {
			if err := step(); ctx.Err() == nil {
				lastErr = err
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		if <-done; lastErr != nil {
			t.Errorf("cannot write the files of the Secret: %v", lastErr)
		}
	})
}

// project writes files as the kubelet does: into a new folder, to which it then moves a symbolic link.
func project(dir string, version int, files map[string][]byte) error {
	folder := fmt.Sprintf("..%d", version)
	if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
		return err
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, folder, file), content, 0o600); err != nil {
			return err
		}
	}
	next := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(folder, next); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
		return err
	}
	for file := range files {
		err := os.Symlink(filepath.Join("..data", file), filepath.Join(dir, file))
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}
