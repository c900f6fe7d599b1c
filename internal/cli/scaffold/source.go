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
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

const admitkitModule = "github.com/admitkit/admitkit"

// source has the data for go.mod: the version or the checkout of admitkit.
type source struct {
	// Version is the version of admitkit, and GoVersion the version of Go.
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

// pseudoVersion matches the time and the commit in a version without a tag (go.dev/ref/mod#pseudo-versions).
var pseudoVersion = regexp.MustCompile(`\d{14}-[0-9a-f]{12}(\+|$)`)

// publishedVersion returns the version of admitkit in this program if other machines can download it. A program that
// was built in a checkout has such a version only if the commit has a tag and there were no changes.
func publishedVersion(info *debug.BuildInfo) (string, bool) {
	for _, m := range info.Deps {
		if m.Path == admitkitModule {
			return m.Version, m.Replace == nil
		}
	}
	inCheckout := slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs" })
	v := info.Main.Version
	untagged := pseudoVersion.MatchString(v) || strings.HasSuffix(v, "+dirty")
	return v, info.Main.Path == admitkitModule && strings.HasPrefix(v, "v") && !(inCheckout && untagged)
}

// find sets the version or checkout of admitkit: the checkout that the user names, the published version of this
// program, or the checkout from which this program was built.
func (s *source) find(ctx context.Context, folder string) error {
	if info, ok := debug.ReadBuildInfo(); ok && folder == "" {
		if version, ok := publishedVersion(info); ok {
			s.Version, s.GoVersion = version, strings.TrimPrefix(runtime.Version(), "go")
			return nil
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
