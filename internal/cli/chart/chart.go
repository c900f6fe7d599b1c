// SPDX-License-Identifier: Apache-2.0

// Package chart implements "admitkit chart". It derives a Helm chart from the manifests of a project, so that the
// manifests remain the only source. Each setting that differs between clusters becomes a value of the chart.
package chart

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/cli/scaffold"
	"github.com/admitkit/admitkit/internal/problem"
)

// A Chart is a Helm chart: its files by path, with slashes.
type Chart struct {
	Name  string
	Files map[string][]byte
}

// document is a decoded object of a manifest.
type document = map[string]any

// kustomization has the fields of a kustomization that a chart supports. Any other field is an error. Otherwise the
// chart would silently differ from the output of kustomize.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Images     []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
		Digest  string `json:"digest"`
	} `json:"images"`
}

// kustomizationNames are the file names that kustomize reads.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// Of derives the chart of the project that contains the folder.
func Of(dir string) (*Chart, error) {
	p, root, err := scaffold.Load(dir)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(root, "config")
	b := &builder{name: p.Name, values: newValues(p.Name)}
	c := &Chart{Name: p.Name, Files: map[string][]byte{}}
	for _, folder := range []string{"", "webhooks", "monitoring", "crd"} {
		if err := b.folder(c, filepath.Join(config, folder), folder); err != nil {
			return nil, err
		}
	}
	if len(c.Files) == 0 {
		return nil, problem.New("%s has no kustomization.yaml with resources", config)
	}
	if b.uninstaller != nil {
		if c.Files["templates/uninstall.yaml"], err = render(b.uninstaller, ""); err != nil {
			return nil, err
		}
	}
	values, err := b.values.text()
	if err != nil {
		return nil, err
	}
	c.Files["values.yaml"] = values
	c.Files["Chart.yaml"], err = yaml.Marshal(document{
		"apiVersion": "v2", "name": p.Name, "type": "application", "description": "Admission webhooks of " + p.Name,
		"version": versionOf(b.values.Image.Tag), "appVersion": b.values.Image.Tag,
	})
	return c, err
}

// folder adds the resources of the kustomization in a folder. It adds nothing if the folder does not exist.
func (b *builder) folder(c *Chart, dir, kind string) error {
	k, origin, err := readKustomization(dir)
	if err != nil {
		return err
	}
	for _, image := range k.Images {
		if image.Name == b.name {
			b.values.Image = imageValues{Repository: cmp.Or(image.NewName, image.Name), Tag: cmp.Or(image.NewTag, "latest"), Digest: image.Digest}
		}
	}
	for _, resource := range k.Resources {
		file := filepath.Join(dir, filepath.FromSlash(resource))
		text, err := os.ReadFile(file)
		if err != nil {
			return problem.New("a resource of %s: %w", origin, err)
		}
		target, converted := path.Join("crds", path.Base(resource)), text // Helm installs these first, without expanding templates
		if kind != "crd" {
			target = path.Join("templates", path.Base(resource))
			if converted, err = b.template(text, kind); err != nil {
				return problem.New("%s: %w", file, err)
			}
		}
		if c.Files[target] != nil {
			return problem.New("two resources have the file name %s, but a chart has all of them in one folder: rename one", path.Base(resource))
		}
		if len(converted) > 0 {
			c.Files[target] = converted
		}
	}
	return nil
}

// readKustomization returns the kustomization of a folder and its file. Both are empty if the folder has no
// kustomization.
func readKustomization(dir string) (k kustomization, file string, err error) {
	for _, name := range kustomizationNames {
		file = filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = yaml.UnmarshalStrict(text, &k)
		}
		if err != nil {
			return k, file, problem.New("%s: %w", file, err).Hint("a chart supports only the fields resources and images of a kustomization: make other changes in the manifests")
		}
		return k, file, nil
	}
	return k, "", nil
}

// template converts the documents of a manifest to Helm templates.
func (b *builder) template(text []byte, kind string) ([]byte, error) {
	var out bytes.Buffer
	for _, part := range documents(text) {
		var doc document
		if err := yaml.Unmarshal(part, &doc); err != nil {
			return nil, err
		}
		if len(doc) == 0 {
			continue
		}
		converted, err := b.document(doc, kind)
		if err != nil {
			return nil, err
		}
		if len(converted) > 0 && out.Len() > 0 {
			out.WriteString("---\n")
		}
		out.Write(converted)
	}
	return out.Bytes(), nil
}

var separator = regexp.MustCompile(`(?m)^---.*$`)

// documents splits a manifest into its YAML documents.
func documents(text []byte) (all [][]byte) {
	for _, part := range separator.Split(string(text), -1) {
		all = append(all, []byte(part))
	}
	return all
}

var semantic = regexp.MustCompile(`^v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)$`)

// versionOf returns the chart's version for an image's tag. Helm requires a semantic version.
func versionOf(tag string) string {
	if found := semantic.FindStringSubmatch(tag); found != nil {
		return found[1]
	}
	return "0.1.0"
}

// Write writes the chart into a folder, and deletes the templates of an earlier chart that c does not have. It refuses
// a folder that contains anything but a chart of the same name.
func (c *Chart) Write(dir string) error {
	if err := c.mayReplace(dir); err != nil {
		return err
	}
	for _, folder := range []string{"templates", "crds"} {
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			return problem.New("%w", err)
		}
	}
	for name, content := range c.Files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return problem.New("%w", err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // not secret
			return problem.New("%w", err)
		}
	}
	return nil
}

func (c *Chart) mayReplace(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return problem.New("%w", err)
	}
	var old struct{ Name string }
	text, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &old)
	}
	if err != nil || old.Name != c.Name {
		return problem.New("%s is not empty and has no chart %q: choose another folder with --dir", dir, c.Name)
	}
	return nil
}

// escape keeps Helm from expanding braces in a text.
func escape(text string) string { return strings.ReplaceAll(text, "{{", `{{ "{{" }}`) }
