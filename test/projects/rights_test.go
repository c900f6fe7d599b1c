// SPDX-License-Identifier: Apache-2.0

package projects

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// install runs the program as a replica of the Deployment, with the RBAC rules of its ServiceAccount. The
// program stores its CA, registers its hooks, and removes them. The hooks are not called, because there is
// no Service network.
func (p *project) install(t *testing.T, dir string) {
	registering.Lock()
	defer registering.Unlock()
	for _, folder := range p.deploy {
		if _, err := kubectl(t, dir, "apply", "--server-side", "-k", folder); err != nil {
			t.Fatal(err)
		}
	}
	p.useAccount(t, dir, p.name)
	log := p.replica(t, dir, `"msg":"the certificates no longer need attention"`, "--self-managed", "--addr=127.0.0.1:0", "--ops-addr=127.0.0.1:0", "--shutdown-delay=0s")
	if strings.Contains(log, "forbidden") || !strings.Contains(log, `"msg":"caBundle written"`) {
		t.Errorf("with its own rights the program logs\n%s", log)
	}
	owners, err := kubectl(t, dir, "get", "mutatingwebhookconfiguration", p.name, "-o", "jsonpath={.metadata.ownerReferences[*].name}")
	if err != nil || owners != p.name {
		t.Errorf("the configuration is owned by %q, not by the namespace: %v", owners, err)
	}
	if log = p.replica(t, dir, "", "--self-managed", "--uninstall"); !strings.Contains(log, "the webhooks are removed") {
		t.Errorf("the log of uninstalling is\n%s", log)
	}
	left, err := kubectl(t, dir, "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name")
	if err != nil || strings.Contains(left, "/"+p.name+"\n") {
		t.Errorf("uninstalling left %s (%v)", left, err)
	}
}

// useAccount writes a kubeconfig for the program's ServiceAccount in the namespace. The method replica uses this
// kubeconfig. useAccount also replaces the Service, so that calls reach this machine.
func (p *project) useAccount(t *testing.T, dir, namespace string) {
	for _, args := range [][]string{
		{"delete", "service", p.name, "-n", namespace},
		{"create", "service", "externalname", p.name, "-n", namespace, "--external-name=localhost"},
	} {
		if _, err := kubectl(t, dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	token, err := kubectl(t, dir, "create", "token", p.name, "-n", namespace)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := kubectl(t, dir, "config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "bin", "kubeconfig"), `apiVersion: v1
kind: Config
current-context: replica
clusters:
- name: cluster
  cluster:
    server: `+cluster.Config.Host+`
    certificate-authority-data: `+ca+`
users:
- name: replica
  user:
    token: `+strings.TrimSpace(token)+`
contexts:
- name: replica
  context:
    cluster: cluster
    user: replica
`)
}

// outlivesItsNamespace deletes the namespace, and thus everything that serves the hooks, without uninstalling them.
// Soon afterwards it must be possible to create Pods again, because the configurations are deleted with the namespace.
func (p *project) outlivesItsNamespace(t *testing.T, dir string) {
	registering.Lock()
	defer registering.Unlock()
	for _, folder := range p.deploy[:1] {
		if _, err := kubectl(t, dir, "apply", "--server-side", "-k", folder); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := cluster.WriteFile("make.kubeconfig", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	kubectlFolder := "PATH=" + cluster.Dir + string(os.PathListSeparator) + os.Getenv("PATH")
	command(t, dir, "env", "KUBECONFIG="+admin, kubectlFolder, "make", "register")
	createPod := func() (string, error) {
		return kubectl(t, dir, "create", "--dry-run=server", "-f", "samples/pods.yaml", "-n", "default")
	}
	eventually(t, "hooks without a server block Pods", func() error {
		if out, err := createPod(); err == nil || !strings.Contains(out, "failed calling webhook") {
			return fmt.Errorf("creating a Pod: %w, %s", err, out)
		}
		return nil
	})
	if _, err := kubectl(t, dir, "delete", "namespace", p.name, "--timeout=2m"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a Pod can be created", func() error {
		_, err := createPod()
		return err
	})
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, last)
	}
}

// replica runs the program until it logs a text, or until it ends, and returns its log.
func (p *project) replica(t *testing.T, dir, until string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "bin", "linux-"+runtime.GOARCH, p.name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "bin", "kubeconfig"))
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	lines := bufio.NewScanner(io.TeeReader(out, &log))
	for lines.Scan() {
		if until != "" && strings.Contains(lines.Text(), until) {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, log.String())
	}
	return log.String()
}
