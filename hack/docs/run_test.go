// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/hack/docs/policy"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// runBlock matches a mark and a console block whose commands run with a real API server:
//
//	<!-- run -->
var runBlock = regexp.MustCompile("(?m)^<!-- run -->\n```console\n((?:.*\n)*?)```$")

const tutorial = "getting-started.md"

// TestTranscriptsOfTheGuides runs the kubectl commands of the guides, except the tutorial, with the hooks of package
// policy. Their output must be the output on the page.
func TestTranscriptsOfTheGuides(t *testing.T) {
	need.APIServer(t)
	all := pages(t)
	t.Chdir(t.TempDir())
	writeFile(t, "invalid.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: invalid}\ndata: {replicas: three}\n")
	cluster, err := testcluster.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, namespace := range policy.Namespaces {
		if _, err := cluster.Kubectl(t.Context(), "", "create", "namespace", namespace); err != nil {
			t.Fatal(err)
		}
	}
	stop, err := cluster.Serve(t.Context(), "policy", policy.Hooks()...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	found := 0
	for name, text := range all {
		if filepath.Base(name) == tutorial {
			continue
		}
		for _, block := range runBlock.FindAllStringSubmatch(text, -1) {
			found++
			compare(t, name, block[1], func(command string) string {
				words := strings.Fields(command)
				if words[0] != "kubectl" {
					t.Fatalf("%s: the command %s is not kubectl", name, command)
				}
				out, _ := cluster.Kubectl(t.Context(), "", words[1:]...) // a denial is an error
				return out
			})
		}
	}
	if found < 5 {
		t.Errorf("found %d blocks to run", found)
	}
}

// TestTutorialWorks follows the tutorial: it writes the files, runs the tests, starts admitkit dev and runs the kubectl
// commands. Their output must be the output on the page.
func TestTutorialWorks(t *testing.T) {
	need.APIServer(t)
	text := pages(t)[filepath.Join(root, "docs", tutorial)]
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(t.TempDir(), "admitkit")
	command(t, source, "go", "build", "-o", tool, "./cmd/admitkit")
	t.Chdir(t.TempDir())
	command(t, "", tool, "init", "hello", "--mutate", "pods", "--admitkit", source)
	t.Chdir("hello")
	files := regexp.MustCompile("(?ms)^```go\n// (\\S+\\.go)\n(.*?)^```$").FindAllStringSubmatch(text, -1)
	if len(files) < 3 {
		t.Fatalf("the tutorial has %d files", len(files))
	}
	for _, file := range files {
		writeFile(t, file[1], file[2])
	}
	const list, added = "\t\tPodMutator(),\n", "\t\tCreatedBy(),\n\t\tImageTags(),\n"
	if !strings.Contains(text, list+added) {
		t.Fatalf("the tutorial does not add %q after %q", added, list)
	}
	hooks, err := os.ReadFile("hooks/hooks.go")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, "hooks/hooks.go", strings.Replace(string(hooks), list, list+added, 1))
	command(t, "", "go", "mod", "tidy")
	command(t, "", "make", "manifests", "unit", "ADMITKIT="+tool)

	kubeconfig := startDev(t, tool)
	blocks := runBlock.FindAllStringSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Fatal("the tutorial has no commands to run")
	}
	for _, block := range blocks {
		compare(t, tutorial, block[1], func(line string) string {
			cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
			cmd.Env = append(os.Environ(), "NO_COLOR=1", "KUBECONFIG="+kubeconfig,
				"PATH="+os.Getenv("KUBEBUILDER_ASSETS")+string(filepath.ListSeparator)+os.Getenv("PATH"))
			out, _ := cmd.CombinedOutput() // a denial is an error
			return string(out)
		})
	}
}

// startDev starts admitkit dev and returns the kubeconfig that it prints. It stops admitkit dev at the end of
// the test.
func startDev(t *testing.T, tool string) (kubeconfig string) {
	t.Helper()
	const log = "dev.log"
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, tool, "dev")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	t.Cleanup(func() { stop(); <-ended })
	export := regexp.MustCompile(`export KUBECONFIG=(\S+)\n`)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, readErr := os.ReadFile(log)
		if match := export.FindSubmatch(text); match != nil && bytes.Contains(text, []byte("Ctrl-C")) {
			return string(match[1])
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatalf("admitkit dev ended: %v\n%s", errors.Join(err, readErr), text)
		}
	}
}

// compare runs each command of a block and compares its output with the lines below the command.
func compare(t *testing.T, page, block string, run func(command string) string) {
	t.Helper()
	for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
		command, want, _ := strings.Cut(strings.TrimSuffix(part, "\n")+"\n", "\n")
		if got := run(command); !abridges(want, got) {
			t.Errorf("%s: %s prints\n%s\nbut the page shows\n%s", page, command, got, want)
		}
	}
}

func command(t *testing.T, dir string, words ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	consoleBlock = regexp.MustCompile("(?m)^(.*)\n```console$")
	checkedBy    = regexp.MustCompile(`^<!-- checked (\S+) (\w+) -->$`)
)

// TestOutputIsChecked requires that a mark above each console block says how its output is checked. Commands without
// output must be in a block marked sh.
func TestOutputIsChecked(t *testing.T) {
	for name, text := range pages(t) {
		for _, block := range consoleBlock.FindAllStringSubmatch(text, -1) {
			mark := block[1]
			if strings.HasPrefix(mark, "<!-- transcript ") || mark == "<!-- run -->" {
				continue
			}
			match := checkedBy.FindStringSubmatch(mark)
			if match == nil {
				t.Errorf("%s: nothing checks the console block below %q", name, mark)
				continue
			}
			source, err := os.ReadFile(filepath.Join(root, match[1]))
			if err != nil || !slices.Contains(strings.Fields(string(source)), match[2]+"(t") {
				t.Errorf("%s: %s has no test %s", name, match[1], match[2])
			}
		}
	}
}
