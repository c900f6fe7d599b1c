// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// projectOf writes a project with these files in config, and returns its folder.
func projectOf(t *testing.T, config map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{".admitkit.yaml": "name: shop\ndomain: example.com\ncerts: cert-manager\n", "go.mod": "module example.com/shop\n\ngo 1.26\n"}
	for name, text := range config {
		files["config/"+name] = text
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const minimal = "resources: [a.yaml]\nimages: [{name: shop, newName: registry.example.com/shop, newTag: v1.2.3}]\n"

func TestOf(t *testing.T) {
	for name, row := range map[string]struct {
		config   map[string]string
		file     string // a file of the chart
		has, not string // text that the file contains, and text that it does not contain
		err      string
	}{
		"objects of another namespace stay": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Role\nmetadata: {name: a, namespace: kube-system}\n"},
			file: "templates/a.yaml", has: "namespace: kube-system", not: "Release"},
		"braces are not expanded": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: ConfigMap\ndata: {a: '{{ .x }}'}\n"},
			file: "templates/a.yaml", has: `{{ "{{" }} .x }}`},
		"an image with another name stays": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Deployment\nspec: {template: {spec: {containers: [{image: proxy}]}}}\n"},
			file: "templates/a.yaml", has: "image: proxy", not: ".Values.image."},
		"the version is that of the image": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Role\n"},
			file: "Chart.yaml", has: "\nversion: 1.2.3\n"},
		"no values without their objects": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Role\n"},
			file: "values.yaml", has: "tag: v1.2.3", not: "monitoring"},
		"documents are separated": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "# BEGIN\n---\nkind: Role\n---\n# nothing\n---\nkind: Secret\n"},
			file: "templates/a.yaml", has: "kind: Role\n---\nkind: Secret\n", not: "#"},
		"definitions are not templates": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Role\n", "crd/kustomization.yaml": "resources: [x.yaml]", "crd/x.yaml": "# {{ }}\nkind: X\n"},
			file: "crds/x.yaml", has: "# {{ }}\nkind: X\n"},
		"an object without metadata": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: ValidatingWebhookConfiguration\nwebhooks: [1, {}]\n"},
			file: "templates/a.yaml", has: "kind: Validating"},
		"the names of kustomize": {config: map[string]string{"kustomization.yml": minimal, "a.yaml": "kind: Role\n", "crd/Kustomization": "resources: [x.yaml]", "crd/x.yaml": "kind: X\n"},
			file: "crds/x.yaml", has: "kind: X\n"},
		"a digest": {config: map[string]string{"kustomization.yaml": "resources: [a.yaml]\nimages: [{name: shop, digest: 'sha256:12'}]\n", "a.yaml": "kind: Role\n"},
			file: "values.yaml", has: "digest: sha256:12"},
		"values of the manifests are the defaults": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Deployment\nspec: {template: {spec: {nodeSelector: {disk: fast}, containers: [{image: shop}]}}}\n"},
			file: "values.yaml", has: "nodeSelector:\n  disk: fast\n"},
		"a Deployment of another program": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Deployment\nspec: {replicas: 7, template: {spec: {containers: [{image: proxy}]}}}\n"},
			file: "templates/a.yaml", has: "replicas: 7", not: "Values"},
		"the program learns its namespace": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Deployment\nspec: {template: {spec: {containers: [{image: shop, args: [--x]}]}}}\n"},
			file: "templates/a.yaml", has: "- --x\n        - --namespace={{ .Release.Namespace }}\n"},
		"the program may read its namespace": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: ClusterRole\nrules: [{resources: [namespaces], resourceNames: [shop]}, {resources: [things], resourceNames: [shop]}]\n"},
			file: "templates/a.yaml", has: "- {{ .Release.Namespace }}\n  resources:\n  - namespaces\n- resourceNames:\n  - shop\n"},
		"helm uninstall runs the program": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Deployment\nspec: {template: {spec: {containers: [{image: shop, args: [--self-managed], ports: [1]}]}}}\n"},
			file: "templates/uninstall.yaml", has: "- --uninstall\n", not: "ports"},
		"a field that charts do not have": {config: map[string]string{"kustomization.yaml": minimal + "patches: []\n", "a.yaml": "kind: Role\n"}, err: `unknown field "patches"`},
		"no manifests":                    {config: map[string]string{"x": ""}, err: "has no kustomization.yaml with resources"},
		"a missing resource":              {config: map[string]string{"kustomization.yaml": minimal}, err: "a resource of "},
		"not YAML":                        {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "a: b: c"}, err: "a.yaml: "},
		"not a kustomization":             {config: map[string]string{"kustomization.yaml": "resources: 1"}, err: "kustomization.yaml: "},
		"two files with one name": {config: map[string]string{"kustomization.yaml": minimal, "a.yaml": "kind: Role\n", "webhooks/kustomization.yaml": "resources: [a.yaml]", "webhooks/a.yaml": "kind: Role\n"},
			err: "two resources have the file name a.yaml"},
	} {
		c, err := Of(projectOf(t, row.config))
		switch {
		case row.err != "":
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: %v, want an error with %q", name, err, row.err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case !strings.Contains(string(c.Files[row.file]), row.has) || row.not != "" && strings.Contains(string(c.Files[row.file]), row.not):
			t.Errorf("%s: of %v, %s is\n%s", name, slices.Sorted(maps.Keys(c.Files)), row.file, c.Files[row.file])
		}
	}
}

func TestWrite(t *testing.T) {
	c := &Chart{Name: "shop", Files: map[string][]byte{"Chart.yaml": []byte("name: shop\n"), "templates/a.yaml": []byte("a")}}
	dir := filepath.Join(t.TempDir(), "new", "chart")
	if err := c.Write(dir); err != nil {
		t.Fatal(err)
	}
	c.Files = map[string][]byte{"Chart.yaml": []byte("name: shop\n"), "templates/b.yaml": []byte("b")}
	if err := c.Write(dir); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "templates", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "b.yaml" {
		t.Errorf("after a second run there are %v: %v", left, err)
	}
	c.Name = "other"
	if err := c.Write(dir); err == nil || !strings.Contains(err.Error(), `has no chart "other": choose another folder with --dir`) {
		t.Errorf("over the chart of another project: %v", err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(full); err == nil {
		t.Error("a folder with other files was written to")
	}
}
