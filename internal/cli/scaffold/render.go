// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"path"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// files holds the content of files, by slash-separated path.
type files map[string][]byte

// add renders a template as the content of a file.
func (f files) add(name, from string, data any) error {
	text, err := render(from, data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f[name] = text
	return nil
}

// render executes a template. It formats Go code.
func render(name string, data any) ([]byte, error) {
	t, err := template.New(path.Base(name)+".tmpl").Funcs(template.FuncMap{
		"lower": strings.ToLower,
		"title": func(text string) string { return strings.ToUpper(text[:1]) + text[1:] },
	}).ParseFS(templates, "templates/"+name+".tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return nil, err
	}
	if path.Ext(name) != ".go" {
		return out.Bytes(), nil
	}
	return format.Source(out.Bytes())
}

// addProject renders the files of a project that do not depend on a hook.
func (f files) addProject(p *Project) error {
	all := [][2]string{
		{projectFile, "project.yaml"},
		{".admitkit-lint.yaml", "lint.yaml"},
		{"go.mod", "go.mod"},
		{"main.go", "main.go"},
		{"main_test.go", "main_test.go"},
		{"hooks/rules.go", "rules.go"},
		{"hooks/rules_test.go", "rules_test.go"},
		{"e2e/e2e_test.go", "e2e_test.go"},
		{"Makefile", "Makefile"},
		{"Dockerfile", "Dockerfile"},
		{".dockerignore", "dockerignore"},
		{".gitignore", "gitignore"},
		{".github/workflows/ci.yaml", "workflows/ci.yaml"},
		{"README.md", "README.md"},
	}
	parts := []string{
		"kustomization", "namespace", "serviceaccount", "deployment", "poddisruptionbudget", "service", "networkpolicy",
		"monitoring/kustomization", "monitoring/podmonitor",
	}
	if p.CriticalPriority() {
		parts = append(parts, "resourcequota")
	}
	if !p.SelfManaged() {
		parts = append(parts, "certificates", "webhooks/kustomization")
	}
	for _, part := range parts {
		all = append(all, [2]string{"config/" + part + ".yaml", "config/" + part + ".yaml"})
	}
	for _, one := range all {
		if err := f.add(one[0], one[1], p); err != nil {
			return err
		}
	}
	if p.sums != nil {
		f["go.sum"] = p.sums
	}
	return nil
}

// addHook renders the files of a hook, without those of its kind.
func (f files) addHook(h *Hook) error {
	for _, one := range [][2]string{
		{"hooks/" + h.File(), "hook/" + h.sort() + ".go"},
		{"hooks/" + h.TestFile(), "hook/" + h.sort() + "_test.go"},
		{"e2e/" + h.TestFile(), "hook/" + h.sort() + "_e2e_test.go"},
	} {
		if err := f.add(one[0], one[1], h); err != nil {
			return err
		}
	}
	return nil
}

// typeData is the data for the templates of a custom resource.
type typeData struct {
	Group, Version, Kind, Resource string
	PackageName, Dir               string
	Local                          bool // the definition is for a Go type of the project; otherwise it is a placeholder for tests
}

// addKind renders the files of a kind that do not exist yet. Hooks of the same kind share them.
func (f files) addKind(h *Hook, t *tree) error {
	k := h.Kind
	starter := k.local != "" && !t.declaresType(k.local, k.Type)
	sample := "samples/" + h.Sample()
	if f[sample] == nil && !t.has(sample) {
		if err := f.add(sample, "hook/sample.yaml", h); err != nil {
			return err
		}
		if starter {
			f[sample] = append(f[sample], "spec:\n  size: 1\n"...)
		}
	}
	if k.builtIn {
		return nil
	}
	data := typeData{Group: k.Group, Version: k.Version, Kind: k.Kind, Resource: k.Resource, Dir: k.local, Local: k.local != ""}
	deployed, forTests := k.crdFile("config/crd"), k.crdFile("e2e/testdata")
	switch {
	case f[deployed] != nil || t.has(deployed):
		h.CRD = deployed
	case f[forTests] != nil || t.has(forTests):
		h.CRD = forTests
	case starter:
		h.CRD = deployed
	default:
		h.CRD, data.Local = forTests, false
	}
	if f[h.CRD] == nil && !t.has(h.CRD) {
		if err := f.add(h.CRD, "type/crd.yaml", data); err != nil {
			return err
		}
	}
	types := path.Join(k.local, strings.ToLower(k.Type)+".go")
	if !starter || f[types] != nil {
		return nil
	}
	data.PackageName = t.packageName(k.local)
	return f.add(types, "type/types.go", data)
}
