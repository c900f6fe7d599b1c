// SPDX-License-Identifier: Apache-2.0

package projects

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// charts checks the Helm chart of the project. "helm lint" must find no fault in it. The API server must accept its
// objects with the default values, and also with every value set.
func (p *project) charts(t *testing.T, dir string) {
	chart := filepath.Join(dir, "bin", "chart")
	command(t, dir, "make", "chart", "ADMITKIT="+admitkit)
	unchanged(t, dir, func() { command(t, dir, "make", "chart", "ADMITKIT="+admitkit) })
	helm(t, "lint", "--strict", chart)
	namespace := p.name + "-release"
	if _, err := kubectl(t, dir, "create", "namespace", namespace); err != nil {
		t.Fatal(err)
	}
	all := []string{"--set=image.repository=mirror.example.org/a,image.tag=v9", "--set=replicas=3,priorityClassName=high,resources=null",
		"--set=imagePullSecrets[0].name=pull,nodeSelector.disk=fast", "--set=tolerations[0].key=a,tolerations[0].operator=Exists",
		"--set=networkPolicy.apiServerPorts={16443},networkPolicy.monitoringNamespace=watching"}
	for _, set := range [][]string{nil, all, {"--set=networkPolicy.enabled=false"}} {
		text := helm(t, append([]string{"template", p.name, chart, "--namespace", namespace}, set...)...)
		file := filepath.Join(t.TempDir(), "release.yaml")
		write(t, file, text)
		registering.RLock()
		_, err := kubectl(t, dir, "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", file)
		registering.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		if set == nil {
			p.matchesManifests(t, dir, helm(t, "template", p.name, chart, "--namespace", namespace, "--include-crds"), namespace)
		} else if strings.Contains(set[0], "image") && (!strings.Contains(text, "image: mirror.example.org/a:v9\n") || !strings.Contains(text, "{port: 16443, protocol: TCP}")) {
			t.Errorf("the values are not used:\n%s", text)
		}
	}
}

// matchesManifests checks that a chart has the objects of the manifests, in the namespace of the release.
func (p *project) matchesManifests(t *testing.T, dir, text, namespace string) {
	for _, folder := range p.deploy {
		manifests, err := kubectl(t, dir, "kustomize", folder)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(manifests) {
			if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "kind: "); ok && kind != "Namespace" && !strings.Contains(text, "\nkind: "+kind+"\n") && line[0] == 'k' {
				t.Errorf("the chart has no %s", kind)
			}
		}
	}
	if strings.Contains(text, "namespace: "+p.name+"\n") {
		t.Errorf("an object of the chart is in the namespace of the manifests, not in %s:\n%s", namespace, text)
	}
}

// installsChart installs the chart as a release, and deletes the namespace without uninstalling the release. The
// webhook configurations must be deleted with the namespace, so that they do not block the cluster.
func (p *project) installsChart(t *testing.T, dir string) {
	registering.Lock()
	defer registering.Unlock()
	namespace := p.name + "-release"
	helm(t, "install", p.name, filepath.Join(dir, "bin", "chart"), "--namespace", namespace)
	const kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
	if p.installs {
		p.runsInRelease(t, dir, namespace)
	}
	owners, err := kubectl(t, dir, "get", kinds, p.name, "--ignore-not-found", "-o", "jsonpath={.items[*].metadata.ownerReferences[*].name}")
	if err != nil || owners == "" || strings.ReplaceAll(owners, namespace, "") != strings.Repeat(" ", strings.Count(owners, " ")) {
		t.Errorf("the configurations are owned by %q, not by the namespace: %v", owners, err)
	}
	if _, err := kubectl(t, dir, "delete", "namespace", namespace, "--timeout=2m"); err != nil {
		t.Fatal(err)
	}
	if _, err := kubectl(t, dir, "delete", "clusterrole,clusterrolebinding", p.name, "--ignore-not-found"); err != nil { // the release is gone, so Helm cannot delete these
		t.Fatal(err)
	}
	eventually(t, "the configurations are deleted with their namespace", func() error {
		left, err := kubectl(t, dir, "get", kinds, "-o", "name")
		if err == nil && strings.Contains(left, "/"+p.name+"\n") {
			err = errors.New("they still exist")
		}
		return err
	})
}

// runsInRelease runs the program of a self-managed project with the arguments and permissions from the release. It then
// runs the Job that "helm uninstall" would run first. Finally it runs the program again, so that its hooks are
// registered.
func (p *project) runsInRelease(t *testing.T, dir, namespace string) {
	p.useAccount(t, dir, namespace)
	args := func(text string) []string {
		var list []string
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return append(list, "--addr=127.0.0.1:0", "--ops-addr=127.0.0.1:0", "--shutdown-delay=0s")
	}
	deployment, err := kubectl(t, dir, "get", "deployment", p.name, "-n", namespace, "-o", "jsonpath={.spec.template.spec.containers[0].args}")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hooks.yaml")
	write(t, file, helm(t, "get", "hooks", p.name, "--namespace", namespace))
	job, err := kubectl(t, dir, "create", "--dry-run=client", "-f", file, "-o", "jsonpath={.spec.template.spec.containers[0].args}")
	if err != nil {
		t.Fatal(err)
	}
	const written = `"msg":"the certificates no longer need attention"`
	if log := p.replica(t, dir, written, args(deployment)...); strings.Contains(log, "forbidden") || !strings.Contains(log, `"msg":"caBundle written"`) {
		t.Errorf("in the release the program logs\n%s", log)
	}
	if log := p.replica(t, dir, "", args(job)...); !strings.Contains(log, "the webhooks are removed") {
		t.Errorf("the Job logs\n%s", log)
	}
	p.replica(t, dir, written, args(deployment)...)
}

// helm runs Helm with the kubeconfig of the API server.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	binary := os.Getenv("HELM")
	if binary == "" {
		t.Fatal("HELM does not name Helm: run make projects")
	}
	c := exec.CommandContext(t.Context(), binary, args...)
	home := t.TempDir()
	c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
