// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	const imported = "package hooks\n\nimport \"github.com/admitkit/admitkit/pkg/webhook\"\n\n"
	rows := []struct {
		name, reason, source string
		want                 []candidate
	}{
		{"variables", "all that are exported may be hooks, in their order", "package hooks\n\nvar B, a, _ = 1, 2, 3\n\nvar (\n\tC int\n\tA = B\n)\n",
			[]candidate{{name: "B", sort: variable}, {name: "C", sort: variable}, {name: "A", sort: variable}}},
		{"functions", "only those that can be called, and return a hook", imported + `
func Good() *webhook.Hook
func WithError() (h *webhook.Hook, err error)
func Two() (a, b *webhook.Hook)
func Value() webhook.Hook
func Parameter(int) *webhook.Hook
func Variadic(...int) *webhook.Hook
func Generic[T any]() *webhook.Hook
func Nothing()
func private() *webhook.Hook
func (t T) Method() *webhook.Hook
const Constant = 1
type T struct{}
`, []candidate{{name: "Good", sort: function}, {name: "WithError", sort: function, hasErr: true}}},
		{"Hooks", "it stands for all", imported + "var A = 1\n\nfunc Hooks() ([]*webhook.Hook, error)\n\nfunc B() *webhook.Hook\n",
			[]candidate{{name: "Hooks", sort: all, hasErr: true}}},
		{"Hooks with dependencies", "it gets a context and the dependencies", "package hooks\n\nimport (\n\t\"context\"\n\n\tp \"github.com/admitkit/admitkit/pkg/program\"\n\t\"github.com/admitkit/admitkit/pkg/webhook\"\n)\n\nfunc Hooks(ctx context.Context, _ *p.Deps) ([]*webhook.Hook, error)\n",
			[]candidate{{name: "Hooks", sort: all, hasErr: true, deps: true}}},
		{"a method Hooks", "is not the function", imported + "func (t T) Hooks(int) []*webhook.Hook\n", nil},
		{"another name for the package", "it is the package that counts", "package hooks\n\nimport w \"github.com/admitkit/admitkit/pkg/webhook\"\n\nfunc A() *w.Hook\n",
			[]candidate{{name: "A", sort: function}}},
		{"no name for the package", "it is the package that counts", "package hooks\n\nimport . \"github.com/admitkit/admitkit/pkg/webhook\"\n\nfunc A() *Hook\n",
			[]candidate{{name: "A", sort: function}}},
		{"another package of that name", "it is not ours", "package hooks\n\nimport \"example.com/webhook\"\n\nfunc A() *webhook.Hook\n", nil},
		{"a type of that name", "it is not ours", "package hooks\n\ntype Hook int\n\nfunc A() *Hook\n", nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "a.go"), row.source)
			got, err := findIn(dir, []string{"a.go"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(candidate{})); diff != "" {
				t.Errorf("%s: %s", row.reason, diff)
			}
		})
	}
}

// FuzzFind checks that generate returns valid Go for every source file.
func FuzzFind(f *testing.F) {
	f.Add([]byte("package hooks\n\nvar A, B = 1, 2\n"))
	f.Add([]byte("package hooks\n\nimport w \"github.com/admitkit/admitkit/pkg/webhook\"\n\nfunc Hooks() ([]*w.Hook, error)\n"))
	f.Add([]byte("package hooks\n\nimport (\n\t\"context\"\n\tw \"github.com/admitkit/admitkit/pkg/webhook\"\n\t. \"github.com/admitkit/admitkit/pkg/program\"\n)\n\nfunc Hooks(_ context.Context, _ *Deps) []*w.Hook\n"))
	f.Add([]byte("package hooks\n\nfunc Ä() (a, b [3]int)\n\nfunc (Hooks) Hooks() {}\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, source []byte) {
		file := filepath.Join(dir, "a.go")
		if err := os.WriteFile(file, source, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := findIn(dir, []string{"a.go"})
		if err != nil {
			return
		}
		for _, c := range found {
			if !token.IsExported(c.name) {
				t.Errorf("%q is not exported", c.name)
			}
		}
		text := generate("example.com/shop/hooks", "", found)
		if _, err := parser.ParseFile(token.NewFileSet(), "hooks.go", text, 0); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	})
}
