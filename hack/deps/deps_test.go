// SPDX-License-Identifier: Apache-2.0

// Package deps checks the imports of the packages of this module. A package may import only packages of lower layers.
// Light packages must not import heavy dependencies, such as controller-runtime.
package deps

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/admitkit/admitkit"

const gallery = "examples/gallery"

// layers lists, for each package below pkg/, the packages that it may import directly or
// indirectly. A package below one of these belongs to its layer.
var layers = map[string][]string{
	"patch":         nil,
	"review":        {"patch"},
	"certs":         {"patch", "review"},
	"apiserverauth": nil,
	"vet":           nil,
	"webhook":       {"patch", "review"},
	"install":       {"patch", "review", "webhook", "certs"},
	"record":        {"patch", "review", "webhook"},
	"replay":        {"patch", "review", "webhook", "record"},
	"metrics":       {"patch", "review", "webhook", "certs", "install", "record"},
	"tracing":       {"patch", "review", "webhook"},
	"reads":         nil,
	"access":        nil,
	"external":      nil,
	"celcheck":      {"patch", "review", "webhook"},
	"rollout":       {"patch", "review", "webhook"},
	"program":       {"patch", "review", "webhook", "certs", "install", "metrics", "record"},
	// These two work with any webhook, so they must not import our hook types.
	"chain":       {"patch", "review", "certs"},
	"idempotence": {"patch", "review", "certs", "chain"},
	"lint":        {"patch", "review", "certs", "chain"},
}

// inner lists, for packages below internal/, the packages below pkg/ that they may import. A
// package that is not listed may import none. The command line tool may import any.
var inner = map[string][]string{
	"received": {"patch", "review"}, // compares with the bytes of a request
	"doctor":   {"chain", "lint"},   // checks live objects by the rules of lint
}

// heavy lists the imports that light packages must not add to the program of a webhook.
var heavy = []struct {
	layers    []string
	forbidden []string
	allowed   []string
}{
	{
		layers:    []string{"patch", "review"},
		forbidden: []string{"sigs.k8s.io/controller-runtime", "k8s.io/client-go", "k8s.io/apiserver"},
	},
	{
		layers:    []string{"webhook"},
		forbidden: []string{"k8s.io/apiserver", "k8s.io/client-go/kubernetes", "github.com/prometheus", "go.opentelemetry.io"},
		// controller-runtime imports this scheme, which has types and no clients.
		allowed: []string{"k8s.io/client-go/kubernetes/scheme"},
	},
	{
		layers:    []string{"certs", "install", "apiserverauth", "program", "record"},
		forbidden: []string{"sigs.k8s.io/controller-runtime", "k8s.io/apiserver", "k8s.io/client-go/kubernetes", "k8s.io/client-go/informers"},
		allowed:   []string{"k8s.io/client-go/kubernetes/scheme"},
	},
	{
		// Only the API of OpenTelemetry is permitted. Users choose the SDK and its exporters.
		layers:    []string{"metrics", "tracing"},
		forbidden: []string{"k8s.io/apiserver", "k8s.io/client-go/kubernetes", "go.opentelemetry.io/otel/sdk"},
	},
}

// edges are packages with heavy dependencies that only users import. No package of this module may import them.
var edges = []string{module + "/pkg/webhook/adapt", module + "/pkg/celcheck"}

func TestImportsFlowDownward(t *testing.T) {
	g := load(t)
	for _, from := range g.own("pkg") {
		layer := layerOf(from)
		allowed, known := layers[layer]
		if !known {
			t.Errorf("%s is in no layer; add pkg/%s to the table of this test", from, layer)
			continue
		}
		for _, to := range g.reachable(from) {
			switch {
			case slices.Contains(edges, to) && to != from:
				t.Errorf("%s is for users, so no package of this module may import it:\n\t%s", to, g.why(from, to))
			case within(to, module+"/pkg"):
				if other := layerOf(to); other != layer && !slices.Contains(allowed, other) {
					t.Errorf("pkg/%s must not import pkg/%s:\n\t%s", layer, other, g.why(from, to))
				}
			case within(to, module) && !within(to, module+"/internal"):
				t.Errorf("a public package must not import %s:\n\t%s", to, g.why(from, to))
			}
		}
	}
}

func TestInternalPackagesStayBelow(t *testing.T) {
	g := load(t)
	const cli = module + "/internal/cli"
	for _, from := range g.own("internal") {
		if from == module+"/internal/apiserver/play" { // play prints for the command line tool and for the demo
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(from, module+"/internal/"), "/")
		for _, to := range g.reachable(from) {
			switch {
			case within(from, cli):
				if within(to, module+"/cmd") || within(to, module+"/test") {
					t.Errorf("%s must not import %s:\n\t%s", from, to, g.why(from, to))
				}
			case within(to, cli):
				t.Errorf("only the command line tool may import internal/cli:\n\t%s", g.why(from, to))
			case within(to, module+"/pkg") && !slices.Contains(inner[name], layerOf(to)):
				t.Errorf("internal/%s must not import pkg/%s:\n\t%s", name, layerOf(to), g.why(from, to))
			}
		}
	}
	for _, from := range g.own("pkg") {
		for _, to := range g.reachable(from) {
			if within(to, cli) {
				t.Errorf("a public package must not import internal/cli:\n\t%s", g.why(from, to))
			}
		}
	}
}

func TestHeavyPackagesStayAtTheEdge(t *testing.T) {
	g := load(t)
	for _, rule := range heavy {
		for _, from := range g.own("pkg") {
			if !slices.Contains(rule.layers, layerOf(from)) || slices.Contains(edges, from) {
				continue
			}
			bad := slices.DeleteFunc(g.reachable(from), func(to string) bool {
				return !anyWithin(to, rule.forbidden) || anyWithin(to, rule.allowed)
			})
			if len(bad) > 0 { // one heavy import adds dozens, so report only the nearest
				t.Errorf("%s imports %d packages that it must not, the nearest through\n\t%s", from, len(bad), g.why(from, bad[0]))
			}
		}
	}
}

// TestGalleryUsesOnlyPublicPackages checks that users can copy a package of the gallery: apart from their tests, the
// packages import only what the programs of users can import.
func TestGalleryUsesOnlyPublicPackages(t *testing.T) {
	g := load(t)
	packages := g.own(gallery)
	if len(packages) < 30 {
		t.Fatalf("go list returned only %d packages of the gallery", len(packages))
	}
	for _, from := range packages {
		for _, to := range g[from] {
			if within(to, module) && (!anyWithin(to, []string{module + "/pkg", module + "/" + gallery}) || strings.Contains(to, "/internal/")) {
				t.Errorf("%s must not import %s, because the programs of users cannot", from, to)
			}
		}
	}
}

func TestWithinComparesWholePathElements(t *testing.T) {
	rows := []struct {
		path, parent string
		want         bool
	}{
		{"k8s.io/apiserver", "k8s.io/apiserver", true},
		{"k8s.io/apiserver/pkg/admission", "k8s.io/apiserver", true},
		{"k8s.io/apiserverless", "k8s.io/apiserver", false},
		{"k8s.io/api", "k8s.io/apiserver", false},
	}
	for _, row := range rows {
		if got := within(row.path, row.parent); got != row.want {
			t.Errorf("within(%q, %q) is %v, want %v", row.path, row.parent, got, row.want)
		}
	}
}

// graph holds the direct imports of each package.
type graph map[string][]string

func load(t *testing.T) graph {
	t.Helper()
	const root = "../.."
	// The go command repeats a passing test only if a file that it read has changed. So the test
	// reads the folders that `go list` reads.
	for _, name := range []string{"go.mod", "pkg", "internal", gallery} {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./pkg/...", "./internal/...", "./"+gallery+"/...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	g := graph{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		g[fields[0]] = fields[1:]
	}
	if len(g.own("pkg")) == 0 {
		t.Fatal("go list returned no package below pkg/")
	}
	return g
}

// own returns the packages of this module below dir, sorted.
func (g graph) own(dir string) []string {
	var paths []string
	for path := range g {
		if within(path, module+"/"+dir) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// reachable returns the packages that from imports directly or indirectly, nearest first.
func (g graph) reachable(from string) []string {
	order, _ := g.walk(from)
	return order[1:]
}

// why returns a shortest chain of imports from one package to another.
func (g graph) why(from, to string) string {
	_, importer := g.walk(from)
	chain := []string{to}
	for at := to; at != from; {
		at = importer[at]
		chain = append(chain, at)
	}
	slices.Reverse(chain)
	return strings.Join(chain, "\n\t  imports ")
}

// walk returns the reachable packages in breadth-first order, and the importer of each.
func (g graph) walk(from string) (order []string, importer map[string]string) {
	importer = map[string]string{from: ""}
	order = []string{from}
	for i := 0; i < len(order); i++ {
		for _, to := range g[order[i]] {
			if _, seen := importer[to]; !seen {
				importer[to] = order[i]
				order = append(order, to)
			}
		}
	}
	return order, importer
}

// layerOf returns the first path element below pkg/.
func layerOf(path string) string {
	layer, _, _ := strings.Cut(strings.TrimPrefix(path, module+"/pkg/"), "/")
	return layer
}

func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

func anyWithin(path string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return within(path, parent) })
}
