// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/vet"
)

// calledByGoVet reports whether the arguments are those with which "go vet -vettool" calls a program (see package
// unitchecker): -V=full, -flags, or flags of the analyzer and a .cfg file that describes a package.
func calledByGoVet(args []string) bool {
	if len(args) == 0 {
		return false
	}
	flags, last := args[:len(args)-1], args[len(args)-1]
	onlyFlags := !slices.ContainsFunc(flags, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	return len(args) == 1 && (last == "-V=full" || last == "-flags") || onlyFlags && strings.HasSuffix(last, ".cfg")
}

// serveGoVet does the work of "go vet -vettool", and ends the process.
func serveGoVet() { unitchecker.Main(vet.Analyzer) }

func newVet(s *screen.Screen) *cobra.Command {
	c := &cobra.Command{
		Use:     "vet [PACKAGE...]",
		Short:   "Find handlers whose errors should be denials",
		GroupID: "write",
		Long: `Find errors that admission handlers return and that were meant as denials.

In controller-runtime, any error of a validator denies the request. In admitkit, an
error that is not a denial is a failure to decide: with failurePolicy Ignore the
request is admitted. vet reports an error that a handler returns, if errors.New or
fmt.Errorf created it and it wraps no other error. vet also follows calls to
functions in the same package. To accept an error, write //admitkit:failure on its
line or on the line above.

vet runs "go vet" with this program. In CI you can also run

  go vet -vettool=$(which admitkit) ./...

The default package is ./... of the current folder.

Exit codes: 0 no such error, 1 at least one, 2 the packages cannot be checked.`,
		Example: `
admitkit vet
admitkit vet ./hooks/...`,
	}
	outputs := outputFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := outputs.Check(s); err != nil {
			return err
		}
		self, err := os.Executable()
		if err != nil {
			return problem.New("%w", err)
		}
		if len(args) == 0 {
			args = []string{"./..."}
		}
		findings, unchecked := goVet(c.Context(), self, args)
		if unchecked != nil && len(findings) == 0 {
			return unchecked
		}
		if err := outputs.Write(s, findings.write); err != nil {
			return err
		}
		if unchecked != nil {
			s.Problem(unchecked)
		}
		if len(findings) > 0 {
			return problem.ErrFound
		}
		return nil
	}
	return c
}

// vetFindings are the findings of the analyzer, in the order of the packages.
type vetFindings []vetFinding

type vetFinding struct {
	Position string `json:"position"` // FILE:LINE:COLUMN
	Message  string `json:"message"`
}

// goVet runs the analyzer through "go vet", which knows how to load packages. It returns findings together with an error
// if some of the packages could not be checked.
func goVet(ctx context.Context, self string, packages []string) (vetFindings, error) {
	run := exec.CommandContext(ctx, "go", append([]string{"vet", "-json", "-vettool=" + self}, packages...)...)
	said, err := run.CombinedOutput() // the stream of the findings depends on the version of Go
	if errors.Is(err, exec.ErrNotFound) {
		return nil, problem.New("Go is not installed").Hint("https://go.dev/dl")
	}
	findings, failures, rest := parseVet(said)
	if err != nil {
		failures = append([]string{strings.TrimSpace(rest)}, failures...)
	}
	if len(failures) > 0 {
		return findings, problem.New("the packages cannot be checked:\n%s", strings.Join(failures, "\n")).Hint("go vet %s", strings.Join(packages, " "))
	}
	return findings, nil
}

// parseVet reads the output of "go vet -json". A JSON object {PACKAGE: {ANALYZER: [{"posn", "message"}]}} begins and
// ends with a brace at the start of a line. Instead of a list there can be an object {"error": TEXT}. The rest of the
// output names packages ("# PACKAGE") and has errors and notes of the go command. A package with tests is checked with and
// without them, so a position can appear twice.
func parseVet(said []byte) (all vetFindings, failures []string, rest string) {
	folder, _ := os.Getwd() // without it, positions keep their whole paths
	var object, other bytes.Buffer
	for line := range bytes.Lines(said) {
		begins := bytes.HasPrefix(line, []byte("{"))
		if object.Len() == 0 && !begins {
			if !bytes.HasPrefix(line, []byte("#")) {
				other.Write(line)
			}
			continue
		}
		object.Write(line)
		if ends := bytes.HasPrefix(line, []byte("}")) || bytes.HasPrefix(line, []byte("{}")); !ends {
			continue
		}
		var packages map[string]map[string]json.RawMessage
		if err := json.Unmarshal(object.Bytes(), &packages); err != nil {
			failures = append(failures, fmt.Sprintf("the output of go vet cannot be read: %v", err))
		}
		object.Reset()
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			found, failure := findingsOf(packages[name][vet.Analyzer.Name], folder)
			if failure != "" {
				failures = append(failures, name+": "+failure)
			}
			for _, f := range found {
				if !slices.Contains(all, f) {
					all = append(all, f)
				}
			}
		}
	}
	return all, failures, other.String()
}

// findingsOf reads what go vet reports of one package: a list of findings, or the failure of the analyzer.
func findingsOf(reported json.RawMessage, folder string) (all vetFindings, failure string) {
	var list []struct{ Posn, Message string }
	var failed struct{ Error string }
	switch {
	case len(reported) == 0:
		return nil, ""
	case json.Unmarshal(reported, &list) != nil:
		_ = json.Unmarshal(reported, &failed) // any other form is printed as it is
		return nil, cmp.Or(failed.Error, string(reported))
	}
	for _, d := range list {
		all = append(all, vetFinding{strings.TrimPrefix(d.Posn, folder+string(filepath.Separator)), d.Message})
	}
	return all, ""
}

func (v vetFindings) write(form string, w io.Writer, _ screen.Painter) error {
	if form == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Findings vetFindings `json:"findings"`
		}{append(vetFindings{}, v...)})
	}
	for _, f := range v {
		if _, err := fmt.Fprintf(w, "%s: %s\n", f.Position, f.Message); err != nil {
			return err
		}
	}
	return nil
}
