// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

const admitkitModule = "github.com/admitkit/admitkit"

// source says where a project gets admitkit from.
type source struct {
	// Version of admitkit, and of Go.
	Version, GoVersion string
	// Checkout is the folder that go.mod points at, while Version is not published.
	Checkout string
	// Requires are the modules that admitkit was built with.
	Requires []string
	// Replaces are lines of go.mod that the user wants.
	Replaces []Replace

	sums []byte // go.sum of the checkout
}

// A Replace points a module at a folder.
type Replace struct{ Module, Dir string }

var released = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// find says where admitkit is: in the folder that the user names, in a published version, or in the checkout that
// the program was built from.
func (s *source) find(ctx context.Context, folder string) error {
	if info, ok := debug.ReadBuildInfo(); ok && folder == "" {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == admitkitModule && m.Replace == nil && released.MatchString(m.Version) {
				s.Version, s.GoVersion = m.Version, strings.TrimPrefix(runtime.Version(), "go")
				return nil
			}
		}
	}
	if folder == "" {
		_, file, _, ok := runtime.Caller(0)
		folder = filepath.Join(filepath.Dir(file), "..", "..", "..")
		if !ok || !filepath.IsAbs(file) || !isCheckout(folder) {
			return problem.New("admitkit is not published yet, and the checkout that this program was built from is not here").
				Hint("--admitkit DIR  # a checkout of %s", admitkitModule)
		}
	} else if !isCheckout(folder) {
		return problem.New("--admitkit: %s is no checkout of %s", folder, admitkitModule)
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return problem.New("%w", err)
	}
	s.Version, s.Checkout = "v0.0.0", absolute
	return s.read(ctx)
}

func isCheckout(folder string) bool {
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return false
	}
	found := moduleLine.FindSubmatch(text)
	return found != nil && string(found[1]) == admitkitModule
}

// read takes the versions of all modules from the checkout, so that the project is built as admitkit is tested.
func (s *source) read(ctx context.Context) error {
	out, err := goCommand(ctx, s.Checkout, nil, "mod", "edit", "-json")
	if err != nil {
		return err
	}
	var mod struct {
		Go      string
		Require []struct {
			Path, Version string
			Indirect      bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return problem.New("the go.mod of %s: %w", s.Checkout, err)
	}
	s.GoVersion = mod.Go
	for _, r := range mod.Require {
		line := r.Path + " " + r.Version
		if r.Indirect {
			line += " // indirect"
		}
		s.Requires = append(s.Requires, line)
	}
	if s.sums, err = os.ReadFile(filepath.Join(s.Checkout, "go.sum")); err != nil {
		return problem.New("%w", err)
	}
	return nil
}
