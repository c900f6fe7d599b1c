// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admitkit/admitkit/internal/problem"
)

const two = `# a comment
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
spec:
  containers:
  - name: app
    image: app:v1
  - name: "yes"
---
---
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: db}
`

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b", "two.yaml"), two)
	write(t, filepath.Join(dir, "a.json"), `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	write(t, filepath.Join(dir, "README.md"), "not read")
	found, err := Read(t.Context(), []string{dir, "-"}, strings.NewReader("apiVersion: v1\nkind: Service\nmetadata: {generateName: a-}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range found {
		where, _ := strings.CutPrefix(o.Where(), dir+"/")
		got = append(got, where+" "+o.String())
	}
	want := []string{"a.json:1 Namespace shop", "b/two.yaml:2 Pod shop/web", "b/two.yaml:17 Deployment db", "standard input:1 Service a-"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := found[1].LineOf("spec", "containers", 1, "name"); got != 11 {
		t.Errorf("the second container's name is in line %d, want 11", got)
	}
	if got := found[1].LineOf("spec", "volumes", 3); got != 7 {
		t.Errorf("volumes, which are not there, would be in line %d, want 7", got)
	}
}

// TestReadNamesEmptyFiles checks that Read reports a file without objects if the user named it.
func TestReadNamesEmptyFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty.yaml"), "")
	write(t, filepath.Join(dir, "comment.yaml"), "# nothing\n---\n")
	write(t, filepath.Join(dir, "two.yaml"), two)
	var notes []string
	found, err := Read(t.Context(), []string{filepath.Join(dir, "empty.yaml"), filepath.Join(dir, "comment.yaml"), filepath.Join(dir, "two.yaml")}, nil, func(format string, args ...any) {
		notes = append(notes, fmt.Sprintf(format, args...))
	})
	if err != nil || len(found) != 2 {
		t.Fatalf("%d objects, %v", len(found), err)
	}
	if len(notes) != 1 || !strings.HasSuffix(notes[0], ": no Kubernetes objects found") || !strings.Contains(notes[0], "empty.yaml") || !strings.Contains(notes[0], "comment.yaml") || strings.Contains(notes[0], "two.yaml") {
		t.Errorf("notes %q", notes)
	}
}

// TestReadLeavesOut checks that Read skips other files of a folder with a note, and that naming such a file is an error.
func TestReadLeavesOut(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
	rows := []struct {
		reason, name, text string
		left               bool
		err                string // if the file is named, or is in a folder and is not skipped
	}{
		{"our own files are not worth a word", ".admitkit-lint.yaml", "suppress: []", false, "x/.admitkit-lint.yaml:1: not a Kubernetes object: it has no apiVersion"},
		{"a kustomization", "kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\npatches: [{path: patch.yaml}]", true, ""},
		{"Helm values", "values.yaml", "kind: Deployment\nmetadata: none\n", true, "x/values.yaml:1: not a Kubernetes object: it has no apiVersion"},
		{"a workflow", ".github/workflows/ci.yml", "on: push\njobs: {}\n", true, "x/.github/workflows/ci.yml:1: not a Kubernetes object: it has no apiVersion"},
		{"a chart", "Chart.yaml", "apiVersion: v2\nname: web\n", true, "x/Chart.yaml:1: not a Kubernetes object: it has no kind"},
		{"a chart that depends on others", "charts/a/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\ntype: library\n", true, "x/charts/a/Chart.yaml:1: not a Kubernetes object: it has no kind"},
		{"a kind that is written wrongly is a mistake", "hook.yaml", "apiVersion: v1\nKind: Pod\n", false, `x/hook.yaml:2: not a Kubernetes object: it has no kind, but "Kind"`},
		{"so is a version", "hook.json", "{\n\"ApiVersion\": \"v1\"}\n", false, `x/hook.json:2: not a Kubernetes object: it has no apiVersion, but "ApiVersion"`},
		{"one that is not there", "hook.yaml", "webhooks: []\n", false, "x/hook.yaml:1: not a Kubernetes object: it has no apiVersion"},
		{"the head of the file that was cut off", "pod.yaml", "metadata: {name: web}\nspec: {}\n", false, "x/pod.yaml:1: not a Kubernetes object: it has no apiVersion"},
		{"the second of two", "two.yaml", "a: b\n---\nkind: Pod\n", false, "x/two.yaml:3: not a Kubernetes object: it has no apiVersion"},
		{"a list", "owners.json", `["jane"]`, true, "x/owners.json:1: not a Kubernetes object: it has no fields"},
		{"text", "notes.yaml", "remember this", true, "x/notes.yaml:1: not a Kubernetes object: it has no fields"},
		{"one among objects is a mistake", "pods.yaml", pod + "---\nKind: Pod\n---\n" + pod, false, "x/pods.yaml:5: not a Kubernetes object: it has no apiVersion"},
		{"so is one in a list", "list.yaml", "apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n", false, "x/list.yaml:4: not a Kubernetes object: it has no apiVersion"},
		{"invalid YAML may be an object with a mistake", "bad.yaml", "a: [", false, "x/bad.yaml:1: did not"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Chdir(t.TempDir())
			name := filepath.Join("x", row.name)
			write(t, name, row.text)
			write(t, "x/a.yaml", pod)
			var notes []string
			note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
			found, err := Read(t.Context(), []string{"x"}, nil, note)
			mistake := !row.left && !strings.HasPrefix(row.name, ".admitkit")
			if mistake != (err != nil) || mistake && !strings.HasPrefix(err.Error(), row.err) || !mistake && len(found) != 1 {
				t.Errorf("in a folder: %v, %v", found, err)
			}
			var want []string
			if row.left && !isKustomization(name) {
				want = []string{"skipped, because they hold no complete objects: " + name}
			}
			if diff := cmp.Diff(want, notes); diff != "" {
				t.Error(diff)
			}
			_, err = Read(t.Context(), []string{name}, nil, nil)
			if (row.err == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), row.err) {
				t.Errorf("named: %v, want %q", err, row.err)
			}
		})
	}
}

// TestReadFolder checks that the result does not depend on how the folder is named, or on the files around it.
func TestReadFolder(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "kustomization.yaml"), "patches: [{path: base/pod.yaml}]") // outside of the folder
	base := filepath.Join(top, "base")
	write(t, filepath.Join(base, "pod.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n")
	write(t, filepath.Join(base, "..2006_01_02", "map.yaml"), "apiVersion: v1\nkind: ConfigMap\n")
	write(t, filepath.Join(base, "over", "kustomization.yml"), "patchesStrategicMerge: [patch.yaml]")
	write(t, filepath.Join(base, "over", "patch.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n")
	for name, to := range map[string]string{
		"base/..data": "..2006_01_02", "base/map.yaml": "..data/map.yaml", // as a ConfigMap is mounted
		"link": "base", "base/endless/kustomization.yaml": "/dev/zero", "base/folder.yaml": "over",
	} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(base, "over"))
	for _, folder := range []string{base, "..", "../../base", "../../link", filepath.Join(top, "link") + "/", filepath.Join(base, "..data")} {
		var notes []string
		note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
		found, err := Read(t.Context(), []string{folder}, nil, note)
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		var got []string
		for _, o := range found {
			got = append(got, o.String())
		}
		want, left := []string{"ConfigMap", "Pod web"}, 2
		if filepath.Base(folder) == "..data" {
			want, left = want[:1], 0
		}
		if diff := cmp.Diff(want, got); diff != "" || strings.Count(strings.Join(notes, ""), filepath.Clean(folder)+"/") != left {
			t.Errorf("%s: %s\nnotes %s", folder, diff, notes)
		}
	}
}

// TestReadNamesInOneLine checks that a file name with a newline cannot forge a message.
func TestReadNamesInOneLine(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "x\n/pod.yaml", "apiVersion: v1\nkind: Pod\n")
	write(t, "x\n/values\n.yaml", "a: b\n")
	var notes []string
	found, err := Read(t.Context(), []string{"x\n"}, nil, func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) })
	if err != nil || found[0].Where() != `x\n/pod.yaml:1` || found[0].File != "x\n/pod.yaml" {
		t.Errorf("got %+v, %v", found, err)
	}
	if diff := cmp.Diff([]string{`skipped, because they hold no complete objects: x\n/values\n.yaml`}, notes); diff != "" {
		t.Error(diff)
	}
	if _, err := Read(t.Context(), []string{"y\n"}, nil, nil); err == nil || err.Error() != `y\n: no such file or folder` {
		t.Errorf("got %v", err)
	}
}

// TestReadEndsWithItsContext checks that Ctrl-C ends a command that waits for standard input.
func TestReadEndsWithItsContext(t *testing.T) {
	stdin, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.WriteString(writer, "apiVersion: v1\n") // returns when Read has begun to read
		cancel()
	}()
	if _, err := Read(ctx, []string{"-"}, stdin, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
	_ = writer.Close()
}

func TestReadMerges(t *testing.T) {
	found, err := parse("x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  labels: &all {a: x, b: w}\n  annotations:\n    <<: *all\n    b: z\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a":"x","b":"z"},"labels":{"a":"x","b":"w"}}}`
	if got := string(found[0].JSON); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestReadTakesWhatKubectlTakes reads texts that kubectl accepts. It checks the line numbers of the last object and of
// its annotation "a", and the value of the annotation.
func TestReadTakesWhatKubectlTakes(t *testing.T) {
	rows := []struct {
		reason, text    string
		line, inLine    int
		annotation, all string
	}{
		{"JSON writes characters as two halves", "{\"apiVersion\":\"v1\",\n\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\",\"annotations\":{\n\"a\":\"\\ud83d\\ude00\"}}}",
			1, 3, "😀", "Pod x"},
		{"what looks like one is none after a backslash", `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a":"\\ud83d"}}}`, 1, 1, `\ud83d`, "Pod"},
		{"JSON that is indented by tabs", "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Pod\",\n\t\"metadata\": {\"annotations\": {\n\t\t\"a\": \"x\"}}}", 1, 5, "x", "Pod"},
		{"documents of JSON, one after the other",
			"{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n\n{\"apiVersion\":\"v1\",\"kind\":\"Node\",\n\"metadata\":{\"annotations\":{\"a\":\"x\"}}}\n", 3, 4, "x", "Pod, Node"},
		{"YAML in braces", "{apiVersion: v1, kind: Pod,\n metadata: {annotations: {a: x}}}", 1, 2, "x", "Pod"},
		{"an item uses the anchor of another",
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {annotations: &all {a: x}}\n- apiVersion: v1\n  kind: Node\n  metadata:\n    annotations: *all\n",
			7, 6, "x", "Pod, Node"},
		{"an item is another one again", "apiVersion: v1\nkind: List\nitems:\n- &one\n  apiVersion: v1\n  kind: Pod\n  metadata: {annotations: {a: x}}\n- *one\n", 4, 7, "x", "Pod, Pod"},
	}
	for _, row := range rows {
		found, err := parse("x", []byte(row.text))
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		var names []string
		for _, o := range found {
			names = append(names, o.String())
		}
		last := found[len(found)-1]
		u, err := last.Unstructured()
		if err != nil {
			t.Fatal(err)
		}
		if got := u.GetAnnotations()["a"]; got != row.annotation || strings.Join(names, ", ") != row.all {
			t.Errorf("%s: %s with %q", row.reason, names, got)
		}
		if at := last.LineOf("metadata", "annotations", "a"); last.Line != row.line || at != row.inLine {
			t.Errorf("%s: lines %d and %d, want %d and %d", row.reason, last.Line, at, row.line, row.inLine)
		}
	}
}

func TestReadErrors(t *testing.T) {
	rows := []struct{ name, reason, text, want string }{
		{"yaml", "the line is the file's, not the document's", "apiVersion: v1\nkind: Pod\n---\na: [", "x.yaml:4: did not"},
		{"no kind", "the error names the missing field", "apiVersion: v1\n", "x.yaml:1: not a Kubernetes object: it has no kind"},
		{"scalar", "text is no object", "hello", "x.yaml:1: not a Kubernetes object: it has no fields"},
		{"twice", "the API server would take the last one and lose the other", "apiVersion: v1\nkind: Pod\nkind: Node\n", "duplicate field"},
		{"no name", "no Go type is shown", "apiVersion: v1\nkind: Pod\nmetadata:\n  {a: b}: c\n", "x.yaml:4: the field name must be a string"},
		{"no line", "the reader knows none", "apiVersion: v1\nkind: Pod\nspec: *a\n", "x.yaml: unknown anchor 'a' referenced"},
		{"group", "it names the field", "apiVersion: a/b/c\nkind: Pod\n", "x.yaml:1: apiVersion: unexpected GroupVersion string"},
		{"binary", "an image is not YAML", "\x00\x01", "x.yaml: the file is binary, not YAML or JSON"},
		{"name", "a name is text", "apiVersion: v1\nkind: Pod\nmetadata: {name: 3}\n", "x.yaml:3: metadata.name: must be a string, not a number"},
		{"namespace", "so is a namespace", "apiVersion: v1\nkind: Pod\nmetadata:\n  namespace: [a]\n", "x.yaml:4: metadata.namespace: must be a string, not a list"},
		{"metadata", "no Go type is shown", "apiVersion: v1\nkind: Pod\nmetadata: 3\n", "x.yaml:3: metadata: must be an object, not a number"},
		{"kind", "it is text, too", "apiVersion: v1\nkind: {}\n", "x.yaml:2: kind: must be a string, not an object"},
		{"case", "the API server would not find it", "apiVersion: v1\nKind: Pod\n", `x.yaml:2: not a Kubernetes object: it has no kind, but "Kind"`},
		{"JSON twice", "JSON is no better", `{"apiVersion":"v1","kind":"Pod",` + "\n" + `"kind":"Pod"}`, `x.yaml:2: duplicate field "kind", first set in line 1`},
		{"a list of JSON", "a list has no fields", "[]", "x.yaml:1: not a Kubernetes object: it has no fields"},
		{"an item", "it is no object", "apiVersion: v1\nkind: List\nitems:\n- null\n", "x.yaml:4: not a Kubernetes object: it has no fields"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "x.yaml", row.text)
			_, err := Read(t.Context(), []string{"x.yaml"}, nil, nil)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q: %s", err, row.want, row.reason)
			}
		})
	}
}

// TestReadHints checks that only errors caused by a template have the hint about templates.
func TestReadHints(t *testing.T) {
	rows := []struct {
		reason, text string
		hint         bool
	}{
		{"a template where a value would be", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n", true},
		{"a template around fields", "{{- if .Values.pod }}\napiVersion: v1\nkind: Pod\n{{- end }}\n", true},
		{"the template is text, the mistake another", "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: '{{ .Release.Name }}'}\n", false},
		{"the braces are in a valid string", "kind: Pod\nmetadata: {annotations: {a: '{{ env }}'}}\n", false},
		{"there is no template", "a: [", false},
	}
	for _, row := range rows {
		_, err := Read(t.Context(), []string{"-"}, strings.NewReader(row.text), nil)
		if hinted := strings.Contains(strings.Join(problem.Hints(err), ""), "template"); err == nil || hinted != row.hint {
			t.Errorf("%s: %v, with the hints %q", row.reason, err, problem.Hints(err))
		}
	}
}

// FuzzParse checks that the result for each file is an error, or objects with line numbers.
func FuzzParse(f *testing.F) {
	f.Add([]byte(two))
	f.Add([]byte("a: &a\n  b: *a\n"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\ud83d\ude00"}} {"a":"\ud8`))
	f.Add([]byte("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 {
			return
		}
		found, err := parse("x.yaml", text)
		for _, o := range found {
			if err == nil && (o.Line < 1 || o.GVK.Kind == "" || o.LineOf("metadata", "name") < 1) {
				t.Errorf("%+v", o)
			}
		}
	})
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
