// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
		Long: `Find errors of admission handlers that were meant as denials.

In controller-runtime, any error of a validator denies the request. In admitkit, an
error that is not a denial is a failure to decide: with failurePolicy Ignore the
request is admitted. vet reports errors that a handler returns and that errors.New or
fmt.Errorf created without wrapping another error. It also follows calls to functions
in the same package. To accept an error, write //admitkit:failure on its line or on
the line above.

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
		findings, err := goVet(c.Context(), self, args)
		if err != nil {
			return err
		}
		if err := outputs.Write(s, findings.write); err != nil {
			return err
		}
		if len(findings) > 0 {
			return problem.ErrFound
		}
		return nil
	}
	return c
}

// vetFindings are what the analyzer reports, in the order of the packages.
type vetFindings []vetFinding

type vetFinding struct {
	Position string `json:"position"` // FILE:LINE:COLUMN
	Message  string `json:"message"`
}

// goVet runs the analyzer through "go vet", which knows how to load packages.
func goVet(ctx context.Context, self string, packages []string) (vetFindings, error) {
	run := exec.CommandContext(ctx, "go", append([]string{"vet", "-json", "-vettool=" + self}, packages...)...)
	said, err := run.CombinedOutput() // the stream of the findings depends on the version of Go
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, problem.New("Go is not installed").Hint("https://go.dev/dl")
	case err != nil:
		return nil, problem.New("the packages cannot be checked:\n%s", bytes.TrimSpace(said)).Hint("go vet %s", strings.Join(packages, " "))
	}
	findings, err := parseVet(said)
	if err != nil {
		return nil, problem.New("the output of go vet cannot be read: %w", err).Hint("go vet -json %s", strings.Join(packages, " "))
	}
	return findings, nil
}

// parseVet reads the output of "go vet -json": lines that begin with "#" name packages, and between them stand objects
// {PACKAGE: {ANALYZER: [{"posn", "message"}]}}. A package with tests is checked with and without them, so a
// position can appear twice.
func parseVet(said []byte) (all vetFindings, err error) {
	folder, _ := os.Getwd() // without it, positions keep their whole paths
	var objects bytes.Buffer
	for line := range bytes.Lines(said) {
		if !bytes.HasPrefix(line, []byte("#")) {
			objects.Write(line)
		}
	}
	decoder := json.NewDecoder(&objects)
	for {
		var packages map[string]map[string][]struct{ Posn, Message string }
		switch err := decoder.Decode(&packages); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			for _, d := range packages[name][vet.Analyzer.Name] {
				found := vetFinding{strings.TrimPrefix(d.Posn, folder+string(filepath.Separator)), d.Message}
				if !slices.Contains(all, found) {
					all = append(all, found)
				}
			}
		}
	}
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
