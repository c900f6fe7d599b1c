// SPDX-License-Identifier: Apache-2.0

package verifytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool is the program admitkit of this checkout.
var tool string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "verifytest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	tool = filepath.Join(dir, "admitkit")
	build := exec.Command("go", "build", "-o", tool, "./cmd/admitkit")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// handler returns a webhook without any library. It answers each review with the JSON Patch that patch returns.
func handler(patch func(labels map[string]any) []map[string]any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID    string
				Object struct {
					Metadata struct{ Labels map[string]any }
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response := map[string]any{"uid": review.Request.UID, "allowed": true}
		if operations := patch(review.Request.Object.Metadata.Labels); len(operations) > 0 {
			text, _ := json.Marshal(operations) // maps of strings always encode
			response["patch"], response["patchType"] = text, "JSONPatch"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
	})
}

// addTeam adds a label if it is missing.
func addTeam(labels map[string]any) []map[string]any {
	switch {
	case labels == nil:
		return []map[string]any{{"op": "add", "path": "/metadata/labels", "value": map[string]any{"team": "a"}}}
	case labels["team"] == nil:
		return []map[string]any{{"op": "add", "path": "/metadata/labels/team", "value": "a"}}
	}
	return nil
}

// grow makes the label longer in each call.
func grow(labels map[string]any) []map[string]any {
	team, _ := labels["team"].(string)
	if labels == nil {
		return []map[string]any{{"op": "add", "path": "/metadata/labels", "value": map[string]any{"team": "a"}}}
	}
	return []map[string]any{{"op": "add", "path": "/metadata/labels/team", "value": team + "a"}}
}

// A recorder is a testing.TB that records messages and failures, so that a test can check them.
type recorder struct {
	testing.TB
	failed bool
	text   strings.Builder
}

func (r *recorder) Helper() {}

func (r *recorder) Log(args ...any) { fmt.Fprintln(&r.text, args...) }

func (r *recorder) Error(args ...any) {
	r.failed = true
	fmt.Fprintln(&r.text, args...)
}

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func TestRun(t *testing.T) {
	fast := []string{"--in-process", "--objects=6"}
	rows := []struct {
		name    string
		options Options
		handler http.Handler
		fails   bool
		want    string
	}{
		{"a correct webhook", Options{Tool: tool, Path: "/mutate", Args: fast}, handler(addTeam), false, "team.example.com: 6 objects"},
		{"a webhook that is not idempotent", Options{Tool: tool, Args: fast}, handler(grow), true, "not safe to call again:\n"},
		{"the line to run again", Options{Tool: tool, Args: fast}, handler(grow), true, "go test -run '^TestRun$/^the_line_to_run_again$' ."},
		{"a webhook that fails", Options{Tool: tool, Args: fast}, http.NotFoundHandler(), true, "404"},
		{"no program", Options{Tool: "/nowhere/admitkit"}, handler(addTeam), true, "go install github.com/admitkit/admitkit/cmd/admitkit@latest"},
		{"a program without the flag", Options{Tool: tool, Args: []string{"--of-tomorrow"}}, handler(addTeam), true, "has no verdict (exit status 2):\n"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := &recorder{TB: t}
			row.options.Run(r, row.handler, "testdata/webhooks.yaml", "testdata/sample.yaml")
			if r.failed != row.fails || !strings.Contains(r.text.String(), row.want) {
				t.Errorf("failed %t, want %t and %q in\n%s", r.failed, row.fails, row.want, r.text.String())
			}
		})
	}
}

// TestToolOfTheEnvironment checks that the method tool returns the program in $ADMITKIT, or an error if that program
// does not exist.
func TestToolOfTheEnvironment(t *testing.T) {
	t.Setenv("ADMITKIT", tool)
	if got, err := (Options{}).tool(); err != nil || got != tool {
		t.Errorf("got %s, %v", got, err)
	}
	t.Setenv("ADMITKIT", "/nowhere")
	if _, err := (Options{}).tool(); err == nil || !strings.Contains(err.Error(), "set $ADMITKIT") {
		t.Errorf("got %v", err)
	}
}

// TestNoDependencies checks that package verifytest imports only the standard library.
func TestNoDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(out)); len(got) != 1 {
		t.Errorf("packages outside of Go's library: %q", got)
	}
}
