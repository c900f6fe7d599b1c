// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
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
	return &cobra.Command{
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
		RunE: func(c *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return problem.New("%w", err)
			}
			if len(args) == 0 {
				args = []string{"./..."}
			}
			run := exec.CommandContext(c.Context(), "go", append([]string{"vet", "-vettool=" + self}, args...)...)
			var said strings.Builder
			run.Stdout, run.Stderr = &said, &said
			err = run.Run()
			text, found := findingsOf(said.String())
			switch {
			case errors.Is(err, exec.ErrNotFound):
				return problem.New("Go is not installed").Hint("https://go.dev/dl")
			case err != nil && !found:
				return problem.New("the packages cannot be checked:\n%s", strings.TrimSpace(said.String())).Hint("go vet %s", strings.Join(args, " "))
			case found:
				_, _ = s.Out.Write([]byte(text)) // a closed pipe is not an error
				return problem.ErrFound
			}
			return nil
		},
	}
}

// findingsOf returns the lines of the analyzer in the output of go vet, which begins each package with a line "# path".
func findingsOf(said string) (text string, found bool) {
	var b strings.Builder
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if strings.Contains(line, "this error does not deny the request") {
			found = true
		}
		b.WriteString(strings.TrimPrefix(line, "./"))
	}
	return b.String(), found
}
