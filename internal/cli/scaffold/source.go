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

// source has the data for go.mod: the version or the checkout of admitkit.
type source struct {
	// Version is the version of admitkit, GoVersion that of Go.
	Version, GoVersion string
	// Checkout is the folder to which go.mod points if Version is not published.
	Checkout string
	// Requires are the requirements in the go.mod of the checkout.
	Requires []string
	// Replaces are the values of --replace.
	Replaces []Replace

	sums []byte // go.sum of the checkout
}

// A Replace replaces a module by a folder.
type Replace struct{ Module, Dir string }

var released = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// find sets the version or checkout of admitkit: the checkout that the user names, the published version of this program,
// or the checkout from which it was built.
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
			return problem.New("admitkit is not published yet, and the checkout from which this program was built does not exist").
				Hint("--admitkit DIR  # a checkout of %s", admitkitModule)
		}
	} else if !isCheckout(folder) {
		return problem.New("--admitkit: %s is not a checkout of %s", folder, admitkitModule)
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

// read copies the module versions of the checkout, so that the project uses the versions that admitkit is tested with.
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
