// SPDX-License-Identifier: Apache-2.0

// Package docs checks the Go code, harness reports and log messages in the pages of this folder.
// Package hack/docs checks links, the index and console transcripts.
//
// A fenced block marked "go" is one of three things:
//
//   - A file of the page's program, if its first line is a comment with a path, such as
//     "// hooks/hooks.go". The program is the module example.com/hello. A package must come before
//     the packages that import it.
//   - A program of one file, if it begins with a package clause.
//   - A fragment: a list of declarations, or the body of a handler with ctx and req. It may use the
//     imports below without an import clause, may have unused variables, and may use the declarations
//     in an HTML comment above it: "<!-- given", declarations, "-->".
//
// Blocks are type-checked. The go command runs once, to get the export data of their imports.
package docs

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const programModule = "example.com/hello"

// imports maps the package names that fragments may use to import paths.
var imports = map[string]string{
	"cmp":                     "cmp",
	"context":                 "context",
	"tls":                     "crypto/tls",
	"json":                    "encoding/json",
	"errors":                  "errors",
	"fmt":                     "fmt",
	"maps":                    "maps",
	"http":                    "net/http",
	"httptest":                "net/http/httptest",
	"os":                      "os",
	"slices":                  "slices",
	"strings":                 "strings",
	"sync":                    "sync",
	"testing":                 "testing",
	"time":                    "time",
	"logr":                    "github.com/go-logr/logr",
	"admissionv1":             "k8s.io/api/admission/v1",
	"admissionregistrationv1": "k8s.io/api/admissionregistration/v1",
	"appsv1":                  "k8s.io/api/apps/v1",
	"authorizationv1":         "k8s.io/api/authorization/v1",
	"autoscalingv1":           "k8s.io/api/autoscaling/v1",
	"corev1":                  "k8s.io/api/core/v1",
	"policyv1":                "k8s.io/api/policy/v1",
	"rbacv1":                  "k8s.io/api/rbac/v1",
	"apierrors":               "k8s.io/apimachinery/pkg/api/errors",
	"equality":                "k8s.io/apimachinery/pkg/api/equality",
	"resource":                "k8s.io/apimachinery/pkg/api/resource",
	"apiextensionsv1":         "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
	"metav1":                  "k8s.io/apimachinery/pkg/apis/meta/v1",
	"unstructured":            "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured",
	"runtime":                 "k8s.io/apimachinery/pkg/runtime",
	"field":                   "k8s.io/apimachinery/pkg/util/validation/field",
	"informers":               "k8s.io/client-go/informers",
	"kubernetes":              "k8s.io/client-go/kubernetes",
	"ptr":                     "k8s.io/utils/ptr",
	"envtest":                 "sigs.k8s.io/controller-runtime/pkg/envtest",
	"ctrl":                    "sigs.k8s.io/controller-runtime",
	"certwatcher":             "sigs.k8s.io/controller-runtime/pkg/certwatcher",
	"client":                  "sigs.k8s.io/controller-runtime/pkg/client",
	"admission":               "sigs.k8s.io/controller-runtime/pkg/webhook/admission",
	"yaml":                    "sigs.k8s.io/yaml",
	"chain":                   "github.com/admitkit/admitkit/pkg/chain",
	"idempotence":             "github.com/admitkit/admitkit/pkg/idempotence",
	"matchers":                "github.com/admitkit/admitkit/pkg/idempotence/matchers",
	"types":                   "github.com/onsi/gomega/types",
	"patch":                   "github.com/admitkit/admitkit/pkg/patch",
	"review":                  "github.com/admitkit/admitkit/pkg/review",
	"lint":                    "github.com/admitkit/admitkit/pkg/lint",
	"program":                 "github.com/admitkit/admitkit/pkg/program",
	"reads":                   "github.com/admitkit/admitkit/pkg/reads",
	"access":                  "github.com/admitkit/admitkit/pkg/access",
	"external":                "github.com/admitkit/admitkit/pkg/external",
	"celcheck":                "github.com/admitkit/admitkit/pkg/celcheck",
	"cache":                   "sigs.k8s.io/controller-runtime/pkg/cache",
	"webhook":                 "github.com/admitkit/admitkit/pkg/webhook",
	"adapt":                   "github.com/admitkit/admitkit/pkg/webhook/adapt",
	"manifest":                "github.com/admitkit/admitkit/pkg/webhook/manifest",
	"apiserverauth":           "github.com/admitkit/admitkit/pkg/apiserverauth",
	"certs":                   "github.com/admitkit/admitkit/pkg/certs",
	"install":                 "github.com/admitkit/admitkit/pkg/install",
	"metrics":                 "github.com/admitkit/admitkit/pkg/metrics",
	"record":                  "github.com/admitkit/admitkit/pkg/record",
	"tracing":                 "github.com/admitkit/admitkit/pkg/tracing",
	"prometheus":              "github.com/prometheus/client_golang/prometheus",
	"promhttp":                "github.com/prometheus/client_golang/prometheus/promhttp",
	"trace":                   "go.opentelemetry.io/otel/trace",
	"errgroup":                "golang.org/x/sync/errgroup",
	"rest":                    "k8s.io/client-go/rest",
}

func TestGoCodeCompiles(t *testing.T) {
	fset := token.NewFileSet()
	var all []*snippet
	for name, text := range pages(t) {
		snippets, err := snippetsOf(fset, name, text)
		if err != nil {
			t.Error(err)
		}
		all = append(all, snippets...)
	}
	if len(all) < 20 {
		t.Fatalf("found only %d blocks of Go code", len(all))
	}
	imp := newImporter(t, fset, all)
	for _, u := range all {
		for _, err := range imp.check(u) {
			t.Error(err)
		}
	}
}

func TestMistakesAreFound(t *testing.T) {
	fset := token.NewFileSet()
	snippets, err := snippetsOf(fset, "page.md", "```go\nreturn nil\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	imp := newImporter(t, fset, snippets)
	for _, c := range []struct{ reason, code, want string }{
		{"a valid body", "if req.Object.Name == \"\" {\n\treturn webhook.Deny(\"no\")\n}", ""},
		{"valid declarations", "func f(pod *corev1.Pod) bool { return known(pod) }", ""},
		{"an unknown field", "_ = ctx\nreq.Object.Owner = \"\"", "page.md:8: req.Object.Owner undefined"},
		{"an undeclared name", "func f() { nothing() }", "page.md:7: undefined: nothing"},
		{"an unused import of a program", "package main\n\nimport \"fmt\"\n\nfunc main() {}", `page.md:9: "fmt" imported and not used`},
		{"a syntax error", "if {", "page.md:7"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			page := "# Page\n\n<!-- given\nfunc known(*corev1.Pod) bool\n-->\n```go\n" + c.code + "\n```\n"
			snippets, err := snippetsOf(fset, "page.md", page)
			if len(snippets) == 0 && err == nil {
				t.Fatal("the block was not found")
			}
			for _, u := range snippets {
				err = errors.Join(append(imp.check(u), err)...)
			}
			if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

// A snippet is one Go package on a page. Code blocks that name files of one folder form one snippet.
type snippet struct {
	path     string
	files    []*ast.File
	fragment bool
}

var (
	goBlock  = regexp.MustCompile("(?ms)(?:^<!-- given\n(.*?)^-->\n+)?^```go\n(.*?)^```$")
	fileName = regexp.MustCompile(`^// (\S+\.go)\n`)
)

func snippetsOf(fset *token.FileSet, name, text string) ([]*snippet, error) {
	var snippets []*snippet
	var errs []error
	program := map[string]*snippet{}
	for _, at := range goBlock.FindAllStringSubmatchIndex(text, -1) {
		code, given := text[at[4]:at[5]], ""
		if at[2] >= 0 {
			given = text[at[2]:at[3]]
		}
		line := fmt.Sprintf("//line %s:%d\n", name, 1+strings.Count(text[:at[4]], "\n"))
		u := &snippet{path: "snippet"}
		var file *ast.File
		var err error
		switch match := fileName.FindStringSubmatch(code); {
		case match != nil:
			file, err = parse(fset, line+code)
			if err == nil {
				u.path = path.Join(programModule, path.Dir(match[1])) + strings.TrimPrefix(file.Name.Name, path.Base(path.Dir(match[1])))
			}
		case strings.HasPrefix(code, "package "):
			file, err = parse(fset, line+code)
		default:
			u.fragment = true
			file, err = parseFragment(fset, given, line, code)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if known := program[u.path]; known != nil {
			known.files = append(known.files, file)
			continue
		}
		u.files = []*ast.File{file}
		snippets = append(snippets, u)
		if !u.fragment && u.path != "snippet" {
			program[u.path] = u
		}
	}
	return snippets, errors.Join(errs...)
}

func parseFragment(fset *token.FileSet, given, line, code string) (*ast.File, error) {
	head := "package snippet\n"
	for _, alias := range slices.Sorted(maps.Keys(imports)) {
		head += fmt.Sprintf("import %s %q\n", alias, imports[alias])
	}
	head += given
	if file, err := parse(fset, head+line+code); err == nil {
		return file, nil
	}
	return parse(fset, head+"func _(ctx context.Context, req *webhook.Request[corev1.Pod]) error {\n"+line+code+"\nreturn nil\n}\n")
}

func parse(fset *token.FileSet, source string) (*ast.File, error) {
	return parser.ParseFile(fset, "", source, parser.SkipObjectResolution)
}

// A snippetImporter resolves the imports of the snippets. It implements types.Importer.
type snippetImporter struct {
	fset  *token.FileSet
	gc    types.Importer
	local map[string]*types.Package
}

// newImporter loads the export data of all packages that the snippets import.
func newImporter(t *testing.T, fset *token.FileSet, snippets []*snippet) *snippetImporter {
	t.Helper()
	wanted := map[string]bool{}
	for _, u := range snippets {
		for _, file := range u.files {
			for _, spec := range file.Imports {
				wanted[strings.Trim(spec.Path.Value, `"`)] = true
			}
		}
	}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	for p := range wanted {
		if !strings.HasPrefix(p, programModule) {
			args = append(args, p)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		p, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[p] = file
	}
	open := func(p string) (io.ReadCloser, error) { return os.Open(exports[p]) }
	return &snippetImporter{fset: fset, gc: importer.ForCompiler(fset, "gc", open), local: map[string]*types.Package{}}
}

func (i *snippetImporter) Import(p string) (*types.Package, error) {
	if pkg := i.local[p]; pkg != nil {
		return pkg, nil
	}
	return i.gc.Import(p)
}

// check returns the type errors of a snippet. In a fragment it permits unused variables and imports. go/types reports
// these as soft errors.
func (i *snippetImporter) check(u *snippet) []error {
	var errs []error
	config := types.Config{Importer: i, Error: func(err error) {
		var e types.Error
		if !errors.As(err, &e) || !e.Soft || !u.fragment {
			errs = append(errs, err)
		}
	}}
	pkg, _ := config.Check(u.path, i.fset, u.files, nil)
	if strings.HasPrefix(u.path, programModule) {
		i.local[u.path] = pkg
	}
	return errs
}

// pages returns the text of each guide and design record.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "decisions/*.md", "monitoring/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(text)
		}
	}
	return all
}
