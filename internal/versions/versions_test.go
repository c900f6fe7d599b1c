// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
)

// published has a version of the module k8s.io/api for each minor version of Kubernetes that the test checks.
var published = map[int]string{
	9: "v0.0.0-20171214033149-af4bc157c3a2", 11: "v0.0.0-20180628040859-072894a440bd", 12: "v0.0.0-20180925152912-a191abe0b71e",
	13: "v0.0.0-20181213150558-05914d821849", 14: "v0.0.0-20190313235455-40a48860b5ab", 15: "v0.15.12", 16: "v0.16.15",
	26: "v0.26.0", 27: "v0.27.0", 28: "v0.28.0",
}

// TestPublishedTypes compares the fields with the Go types of several versions of Kubernetes.
func TestPublishedTypes(t *testing.T) {
	for minor, version := range published {
		t.Run(fmt.Sprintf("1.%d", minor), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(download(t, "k8s.io/api@"+version), "admissionregistration")
			if _, err := os.Stat(filepath.Join(dir, "v1")); (err == nil) != (minor >= V1) {
				t.Errorf("admissionregistration.k8s.io/v1: %v", err)
			}
			group := "v1"
			if minor < V1 {
				group = "v1beta1"
			}
			names := jsonNames(t, filepath.Join(dir, group, "types.go"))
			for _, f := range append(slices.Clone(fields), scope) {
				last := f.path[len(f.path)-1]
				since := f.since
				if last == Conditions.Path {
					since = 27 // its feature gate is on by default since 1.28
				}
				if got, want := names[last], minor >= since; got != want {
					t.Errorf("%s exists: %t, want %t", strings.Join(f.path, "."), got, want)
				}
			}
		})
	}
}

// download downloads a module, and returns its folder.
func download(t *testing.T, module string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	command.Dir = t.TempDir()
	out, err := command.Output()
	var downloaded struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &downloaded); jsonErr != nil || err != nil {
		t.Fatalf("%v: %v %s", command, err, downloaded.Error)
	}
	return downloaded.Dir
}

// jsonNames returns the names in the JSON tags of the types of a webhook. Each name that the test checks is in only one type.
func jsonNames(t *testing.T, file string) map[string]bool {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	ast.Inspect(source, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !slices.Contains([]string{"Webhook", "MutatingWebhook", "ServiceReference", "Rule"}, spec.Name.Name) {
			return true
		}
		structure, _ := spec.Type.(*ast.StructType)
		for _, f := range structure.Fields.List {
			if f.Tag == nil {
				continue
			}
			tag, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			names[name] = true
		}
		return false
	})
	if !names["clientConfig"] || !names["resources"] {
		t.Fatalf("%s lacks the types of a webhook", file)
	}
	return names
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Version{
		"1.36": {1, 36}, "v1.36.3": {1, 36}, "v1.29.4-gke.1043": {1, 29}, "1.30.0+k3s1": {1, 30}, "2.0": {2, 0},
	} {
		if got, ok := Parse(text); !ok || got != want {
			t.Errorf("%s: %v %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1", "v1", "latest", "1.x", "1.36 ", "-1.2", "1.99999"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestBefore(t *testing.T) {
	for v, want := range map[Version]bool{{1, 35}: true, {1, 36}: false, {1, 37}: false, {2, 0}: false, {0, 50}: true} {
		if got := v.Before(36); got != want {
			t.Errorf("%v before 1.36: %t, want %t", v, got, want)
		}
	}
}

const full = `{"name": "a.example.com", "clientConfig": {"service": {"name": "a", "port": 8443}}, "rules": [{"resources": ["pods"], "scope": "Namespaced"}, {"scope": "*"}],
	"matchPolicy": "Equivalent", "objectSelector": {"matchLabels": {"a": "b"}}, "sideEffects": "None", "timeoutSeconds": 5,
	"admissionReviewVersions": ["v1beta1"], "reinvocationPolicy": "IfNeeded", "matchConditions": [{"name": "c", "expression": "true"}]}`

func TestFit(t *testing.T) {
	const harmless = `{"clientConfig": {"service": {"name": "a", "port": 443}}, "rules": [{"scope": "*"}], "matchPolicy": "Exact", "objectSelector": {},
		"reinvocationPolicy": "Never", "admissionReviewVersions": ["v1beta1"]}`
	for _, c := range []struct {
		minor         int
		webhook, want string
		losses        []string
	}{
		{28, full, full, nil},
		{27, full, remove(t, full, "matchConditions"), []string{"matchConditions"}},
		{15, full, remove(t, full, "matchConditions"), []string{"matchConditions"}},
		{14, full, `{"name": "a.example.com", "clientConfig": {"service": {"name": "a"}}, "rules": [{"resources": ["pods"], "scope": "Namespaced"}, {"scope": "*"}],
			"sideEffects": "None", "timeoutSeconds": 5, "admissionReviewVersions": ["v1beta1"]}`,
			[]string{"clientConfig.service.port", "matchPolicy", "objectSelector", "reinvocationPolicy", "matchConditions"}},
		{9, full, `{"name": "a.example.com", "clientConfig": {"service": {"name": "a"}}, "rules": [{"resources": ["pods"]}, {}]}`,
			[]string{"clientConfig.service.port", "matchPolicy", "objectSelector", "timeoutSeconds", "reinvocationPolicy", "matchConditions", "rules[0].scope"}},
		{9, harmless, `{"clientConfig": {"service": {"name": "a"}}, "rules": [{}]}`, nil},
		{9, `{"clientConfig": {"url": "https://a"}, "rules": null}`, `{"clientConfig": {"url": "https://a"}, "rules": null}`, nil},
	} {
		webhook := decode(t, c.webhook)
		var paths []string
		for _, l := range Fit(webhook, Version{1, c.minor}) {
			paths = append(paths, l.Path)
		}
		if diff := cmp.Diff(decode(t, c.want), webhook); diff != "" {
			t.Errorf("1.%d:\n%s", c.minor, diff)
		}
		if diff := cmp.Diff(c.losses, paths); diff != "" {
			t.Errorf("1.%d: losses\n%s", c.minor, diff)
		}
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func remove(t *testing.T, text, field string) string {
	t.Helper()
	object := decode(t, text)
	delete(object, field)
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
