// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/problem"
)

// TestInitLeavesNothing checks that Init writes no files if it fails.
func TestInitLeavesNothing(t *testing.T) {
	rows := []struct {
		name, reason string
		prepare      func(t *testing.T, o *Options)
		want         string
	}{
		{"offline", "modules cannot be fetched", func(t *testing.T, o *Options) {
			t.Setenv("GOPROXY", "off")
			t.Setenv("GOFLAGS", "-modcacherw -buildvcs=false")
			t.Setenv("GOMODCACHE", t.TempDir())
		}, "go mod tidy fails"},
		{"no Go", "go mod tidy needs Go", func(t *testing.T, _ *Options) { t.Setenv("PATH", t.TempDir()) }, "the go command is not installed"},
		{"not empty", "its files belong to the user", func(t *testing.T, _ *Options) { write(t, "shop/README.md", "mine") }, "the folder shop exists and is not empty"},
		{"a file", "its files belong to the user", func(t *testing.T, _ *Options) { write(t, "shop", "mine") }, "shop exists and is not a folder"},
		{"no parent", "the path may be misspelled", func(_ *testing.T, o *Options) { o.Dir = "a/b/shop" }, "cannot create shop: the folder a/b does not exist"},
		{"no checkout", "the folder has another module", func(_ *testing.T, o *Options) { o.Admitkit = "." }, "--admitkit: . is not a checkout of github.com/admitkit/admitkit"},
		{"replace", "the folder has no module", func(_ *testing.T, o *Options) { o.Replace = []string{"example.com/a=."} }, "--replace: . is not a Go module"},
		{"replace without a folder", "there is no =", func(_ *testing.T, o *Options) { o.Replace = []string{"example.com/a"} }, `--replace: "example.com/a" is not MODULE=DIR`},
		{"no kinds", "a project needs a hook", func(_ *testing.T, o *Options) { o.Mutate = nil }, "no kinds are given"},
		{"twice", "one hook is enough", func(_ *testing.T, o *Options) { o.Mutate = []string{"pods", "v1/pods"} }, "pods is listed twice"},
		{"name", "a Service cannot have it", func(_ *testing.T, o *Options) { o.Name = "Shop" }, `"Shop" is not a valid name`},
		{"path", "nothing is written elsewhere", func(_ *testing.T, o *Options) { o.Name = "../shop" }, `"../shop" is not a valid name`},
		{"long name", "other names append to it", func(_ *testing.T, o *Options) { o.Name = strings.Repeat("n", 51) }, "is too long"},
		{"namespace", "it has one of that name", func(_ *testing.T, o *Options) { o.Name = "kube-system" }, "Kubernetes uses this namespace"},
		{"module", "no import path", func(_ *testing.T, o *Options) { o.Module = "example.com/shop hooks" }, `--module: "example.com/shop hooks" is not a module path`},
		{"own module", "admitkit's own", func(_ *testing.T, o *Options) { o.Module = admitkitModule + "/x" }, "belongs to admitkit"},
		{"domain", "names of webhooks end in it", func(_ *testing.T, o *Options) { o.Domain = "shop" }, `--domain: "shop" is not a domain name`},
		{"certs", "there are two", func(_ *testing.T, o *Options) { o.Certs = "acme" }, `--certs: "acme" is neither`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			o := Options{Name: "shop", Mutate: []string{"pods"}}
			row.prepare(t, &o)
			before := folder(t)
			_, err := Init(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %s: %s", err, row.want, row.reason)
			}
			if after := folder(t); after != before {
				t.Errorf("left behind:\n%s", after)
			}
		})
	}
}

// TestInterrupted checks that Init leaves no files, and Add no changes, when the user interrupts them.
func TestInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	_, err := Init(ctx, Options{Name: "shop", Mutate: []string{"pods"}, Progress: func(string) { stop() }})
	if !errors.Is(err, context.Canceled) || folder(t) != "" {
		t.Errorf("got %v, and there is\n%s", err, folder(t))
	}
	newProject(t)
	before := folder(t)
	for _, at := range []string{"completing", "building"} {
		ctx, stop := context.WithCancel(t.Context())
		_, err := Add(ctx, Options{Dir: "shop", Mutate: []string{"example.com/v1/carts=example.com/shop/api/v1.Cart"}, Progress: func(what string) {
			if strings.HasPrefix(what, at) {
				stop()
			}
		}})
		stop()
		if !errors.Is(err, context.Canceled) || folder(t) != before {
			t.Errorf("%s: got %v, and there is\n%s", at, err, folder(t))
		}
	}
}

// TestAddRefuses checks that Add changes nothing if it fails.
func TestAddRefuses(t *testing.T) {
	rows := []struct {
		name, reason string
		file, text   string
		o            Options
		want         string
	}{
		{"file", "it is the user's", "hooks/mutate_secrets_test.go", "package hooks\n", Options{Mutate: []string{"secrets"}}, "hooks/mutate_secrets_test.go already exists"},
		{"hook", "the hook exists", "", "", Options{Mutate: []string{"pods"}}, "hooks/mutate_pods.go already exists"},
		{"name", "it would not compile", "hooks/x.go", "package hooks\n\nfunc mutateSecret() {}\n", Options{Mutate: []string{"secrets"}}, "hooks already declares mutateSecret"},
		{"name in e2e", "it would not compile", "e2e/x_test.go", "package e2e\n\nvar TestMutateSecret = 1\n", Options{Mutate: []string{"secrets"}}, "e2e already declares TestMutateSecret"},
		{"kind", "as in init", "", "", Options{Mutate: []string{"secret"}}, `unknown kind "secret"`},
		{"none", "as in init", "", "", Options{}, "no kinds are given"},
		{"not compiling", "its output cannot be generated", "hooks/x.go", "package hooks\n\nvar x int = \"\"\n", Options{Mutate: []string{"secrets"}, SkipTidy: true}, "the program does not compile with the new hooks"},
		{"project file", "it has the project's names", projectFile, "name: shop\ndomain: example.com\ncerts: self-managed\nx: 1\n", Options{Mutate: []string{"secrets"}}, `unknown field "x"`},
		{"project name", "the user edited it", projectFile, "name: Shop\n", Options{Mutate: []string{"secrets"}}, `"Shop" is not a valid name`},
		{"no project", "there is nothing to add to", "../go.mod", "", Options{Dir: ".", Mutate: []string{"secrets"}}, "is not in a project that \"admitkit init\" generated"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			newProject(t)
			if row.file != "" {
				write(t, filepath.Join("shop", row.file), row.text)
			}
			if row.o.Dir == "" {
				row.o.Dir = "shop/hooks" // any folder of the project is accepted
			}
			before := folder(t)
			_, err := Add(t.Context(), row.o)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %s: %s", err, row.want, row.reason)
			}
			if after := folder(t); after != before {
				t.Errorf("the project has changed:\n%s", after)
			}
		})
	}
}

// TestEditedLists checks that Add does not change edited lists, and returns notes about the missing lines.
func TestEditedLists(t *testing.T) {
	t.Chdir(t.TempDir())
	newProject(t)
	write(t, "shop/config/crd/bases.yaml", "kind: CustomResourceDefinition\n")
	write(t, "shop/config/crd/Kustomization", "resources: [bases]\n")
	edited := "package hooks\n\nimport \"github.com/admitkit/admitkit/pkg/webhook\"\n\nfunc Hooks() []*webhook.Hook { return []*webhook.Hook{PodMutator()} }\n"
	write(t, "shop/"+hooksFile, edited)
	result, err := Add(t.Context(), Options{Dir: "shop", Validate: []string{"leases", "example.com/v1/carts=example.com/shop/api/v1.Cart"}, SkipTidy: true})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile("shop/" + hooksFile); string(text) != edited {
		t.Errorf("the list was changed:\n%s", text)
	}
	notes := strings.Join(result.Notes, "\n")
	for _, want := range []string{
		"the function Hooks in hooks/hooks.go does not end with a list of hooks, one per line, so it was not changed: add LeaseValidator(), CartValidator() to it, then run make manifests",
		"you have edited config/crd/Kustomization, so it was not changed: add bases.yaml, carts.example.com.yaml to it",
		"hooks for leases: controllers use them for leader election",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("there is no %q in\n%s", want, notes)
		}
	}
	if len(result.Written) > 0 {
		t.Errorf("changed: %v", result.Written)
	}
}

// TestOwnTypes checks that Init uses existing Go types, and adds a CustomResourceDefinition only if there is none.
func TestOwnTypes(t *testing.T) {
	rows := []struct{ reason, definition, want string }{
		{"there is none", "", "e2e/testdata/carts.example.com.yaml"},
		{"it is deployed", "config/crd/carts.example.com.yaml", ""},
		{"the tests have one", "e2e/testdata/carts.example.com.yaml", ""},
	}
	for _, row := range rows {
		t.Chdir(t.TempDir())
		newProject(t)
		write(t, "shop/types/v1/types.go", "// Package carts has a name of its own.\npackage carts\n\ntype (\n\tCart struct{}\n)\n")
		if row.definition != "" {
			write(t, "shop/"+row.definition, "kind: CustomResourceDefinition\n")
		}
		p, root, err := Load("shop")
		if err != nil {
			t.Fatal(err)
		}
		if p.Hooks, err = p.hooksOf([]string{"example.com/v1/carts=example.com/shop/types/v1.Cart"}, nil); err != nil {
			t.Fatal(err)
		}
		a := &addition{tree: tree{root}, project: p, added: files{}, before: files{}}
		if err := a.render(); err != nil {
			t.Fatal(err)
		}
		got := ""
		for name := range a.added {
			if strings.Contains(name, "carts.example.com") {
				got += name
			}
			if strings.HasPrefix(name, "types/") {
				t.Errorf("%s: %s is the user's", row.reason, name)
			}
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
		if name := p.Hooks[0].CRD; name != row.definition+row.want {
			t.Errorf("%s: the generated test reads the wrong file %q", row.reason, name)
		}
	}
}

// TestList checks that the method list keeps the order of the hooks in hooks/hooks.go, and adds only the hook in a new
// file. The method unlisted must return the hook that the list lacks.
func TestList(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, hooksFile), "package hooks\n\nfunc Hooks() []*webhook.Hook {\n\treturn []*webhook.Hook{\n\t\tLast(),\n\t\tFirst(),\n\t}\n}\n")
	write(t, filepath.Join(root, "hooks/a.go"), `package hooks

import w "github.com/admitkit/admitkit/pkg/webhook"

func First() *w.Hook
func last() *w.Hook
func Parameters(int) *w.Hook
func Two() (*w.Hook, error)
func None()
func Generic[T any]() *w.Hook
func Plain() w.Hook
func Other() *x.Hook
func (x) Method() *w.Hook
func Last() *w.Hook
`)
	write(t, filepath.Join(root, "hooks/a_test.go"), "package hooks\n\nimport \"github.com/admitkit/admitkit/pkg/webhook\"\n\nfunc ForTests() *webhook.Hook\n")
	write(t, filepath.Join(root, "hooks/broken.go"), "package")
	added := files{"hooks/0.go": []byte("package hooks\n\nimport \"github.com/admitkit/admitkit/pkg/webhook\"\n\nfunc New() *webhook.Hook\n")}
	text, err := (&tree{root}).list(added)
	if err != nil {
		t.Fatal(err)
	}
	if want := "{\n\t\tLast(),\n\t\tFirst(),\n\t\tNew(),\n\t}"; !strings.Contains(string(text), want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if others := (&tree{root}).unlisted(); strings.Join(others, " ") != "last" {
		t.Errorf("not listed: %q", others)
	}
}

// TestInitHere checks that Init can write into the current folder if that is empty.
func TestInitHere(t *testing.T) {
	t.Chdir(t.TempDir())
	before, err := os.Stat(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Init(t.Context(), Options{Name: "shop", Dir: ".", Mutate: []string{"pods"}, SkipTidy: true}); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat("."); err != nil || !os.SameFile(before, after) {
		t.Errorf("the folder was replaced by another one: %v", err)
	}
	for _, name := range []string{"go.mod", ".admitkit.yaml", hooksFile} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(".admitkit.*[0-9]"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDomainOf(t *testing.T) {
	for module, want := range map[string]string{
		"example.org/shop": "example.org", "github.com/acme/shop": "example.com", "shop": "example.com", "go.acme.example/x": "go.acme.example", "A.b/c": "example.com",
	} {
		if got := domainOf(module); got != want {
			t.Errorf("%s: got %s, want %s", module, got, want)
		}
	}
}

func newProject(t *testing.T) {
	t.Helper()
	if _, err := Init(t.Context(), Options{Name: "shop", Mutate: []string{"pods"}, SkipTidy: true}); err != nil {
		t.Fatal(err)
	}
}

// folder returns the names and texts of all files in the current folder.
func folder(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if name != "." {
				all.WriteString(name + "\n")
			}
			return err
		}
		text, err := os.ReadFile(name)
		all.WriteString("== " + name + "\n" + string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func write(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestHints checks that errors have hints.
func TestHints(t *testing.T) {
	_, err := Init(t.Context(), Options{Name: "shop", Mutate: []string{"deployment"}})
	if hints := problem.Hints(err); len(hints) != 1 || hints[0] != "did you mean apps/v1/deployments?" {
		t.Errorf("%v: %q", err, hints)
	}
}
