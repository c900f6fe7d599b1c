// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/unitchecker"
	"golang.org/x/tools/go/packages"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/vet"
)

// calledByGoVet reports whether "go vet -vettool" has started this program. In that case the arguments are -V=full, or
// -flags, or flags of the analyzer and a .cfg file that describes a package. See package unitchecker.
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
functions in the same package that return only an error. To accept an error, write
//admitkit:failure on its line or on the line above.

"go vet" can do the same. It takes minutes in the first run, because it
starts this program for every package that your packages import:

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
		if len(args) == 0 {
			args = []string{"./..."}
		}
		findings, unchecked := checkPackages(c.Context(), args)
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

// checkPackages runs the analyzer on packages, and on their tests. ("go vet -vettool" would also start this program for
// each package that they import.) If some packages cannot be checked, it returns the findings together with an error.
func checkPackages(ctx context.Context, patterns []string) (vetFindings, error) {
	loaded, err := packages.Load(&packages.Config{Context: ctx, Mode: packages.LoadSyntax | packages.NeedModule, Tests: true}, patterns...)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, problem.New("Go is not installed").Hint("https://go.dev/dl")
	}
	if err != nil {
		return nil, problem.New("the packages cannot be loaded: %w", err)
	}
	var failures []string
	for _, p := range loaded {
		for _, e := range p.Errors {
			failures = append(failures, e.Error())
		}
	}
	loaded = slices.DeleteFunc(loaded, func(p *packages.Package) bool { return len(p.Errors) > 0 })
	graph, err := checker.Analyze([]*analysis.Analyzer{vet.Analyzer}, loaded, nil)
	if err != nil {
		return nil, problem.New("%w", err)
	}
	var findings vetFindings
	for _, action := range graph.Roots {
		if action.Err != nil {
			failures = append(failures, fmt.Sprintf("%s: %v", action.Package.PkgPath, action.Err))
		}
		for _, d := range action.Diagnostics {
			found := vetFinding{shownPosition(action.Package.Fset.Position(d.Pos)), d.Message}
			if !slices.Contains(findings, found) { // a package with tests is checked with and without them
				findings = append(findings, found)
			}
		}
	}
	if slices.Sort(failures); len(failures) > 0 {
		text := strings.Join(slices.Compact(failures), "\n")
		return findings, problem.New("the packages cannot be checked:\n%s", text).Hint("go vet %s", strings.Join(patterns, " "))
	}
	return findings, nil
}

// shownPosition returns a position with the path relative to the current folder.
func shownPosition(at token.Position) string {
	if folder, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(folder, at.Filename); err == nil && filepath.IsLocal(relative) {
			at.Filename = relative
		}
	}
	return at.String()
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
