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

// lag is how long the kubelet here takes to bring a changed Secret into a volume.
const lag = 2 * time.Second

// program runs the program as the Deployment does, with the Secret in its files, and returns its
// address.
func (s *service) program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	kubelet(t, dir)
	var args []string
	d, err := world.clients.AppsV1().Deployments(name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("=:9443", "=localhost:0", "=:8080", "=localhost:0", "=/tls/", "="+dir+"/", "=/ledger/", "="+dir+"/", "=10s", "=0s")
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		args = append(args, here.Replace(arg))
	}
	cmd := exec.Command(world.program, args...)
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
		for range addr { // all is logged
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	target, ok := <-addr
	if !ok {
		t.Fatal("the program does not serve")
	}
	return target
}

// kubelet keeps the files of the Secret in a folder, as a volume does: late, and all of them at once.
func kubelet(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var trouble error // the last one, if it has not passed
	seen, n, done := "", 0, make(chan struct{})
	step := func() error {
		secret, err := world.clients.CoreV1().Secrets(name).Get(ctx, name+"-tls", metav1.GetOptions{})
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
				trouble = err
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		if <-done; trouble != nil {
			t.Errorf("the Secret into files: %v", trouble)
		}
	})
}

// project writes files the way the kubelet does: a folder for each version, and a link that is
// swapped.
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
