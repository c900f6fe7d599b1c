// SPDX-License-Identifier: Apache-2.0

package projects

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// charts checks the Helm chart of the project: Helm finds no fault in it, and the API server accepts its objects with the
// default values and with all of them set.
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
			p.matchesManifests(t, dir, text, namespace)
		} else if strings.Contains(set[0], "image") && (!strings.Contains(text, "image: mirror.example.org/a:v9\n") || !strings.Contains(text, "{port: 16443, protocol: TCP}")) {
			t.Errorf("the values are not used:\n%s", text)
		}
	}
}

// matchesManifests checks that a chart has the objects of the manifests, in the namespace of the release.
func (p *project) matchesManifests(t *testing.T, dir, text, namespace string) {
	for _, folder := range p.deploy {
		if strings.HasSuffix(folder, "crd") {
			continue // helm template leaves them out
		}
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

// installsChart installs the chart as a release, and deletes its namespace first. Nothing of it blocks the cluster then.
func (p *project) installsChart(t *testing.T, dir string) {
	registering.Lock()
	defer registering.Unlock()
	namespace := p.name + "-release"
	helm(t, "install", p.name, filepath.Join(dir, "bin", "chart"), "--namespace", namespace)
	const kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
	owners, err := kubectl(t, dir, "get", kinds, p.name, "--ignore-not-found", "-o", "jsonpath={.items[*].metadata.ownerReferences[*].name}")
	if err != nil || owners == "" || strings.ReplaceAll(owners, namespace, "") != strings.Repeat(" ", strings.Count(owners, " ")) {
		t.Errorf("the configurations are owned by %q, not by the namespace: %v", owners, err)
	}
	if _, err := kubectl(t, dir, "delete", "namespace", namespace, "--timeout=2m"); err != nil {
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
