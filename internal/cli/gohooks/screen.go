// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

// Default is the package that is meant where none is named: ./hooks if it is there, or else the working directory.
func Default() string {
	if info, err := os.Stat("hooks"); err == nil && info.IsDir() {
		return "." + string(filepath.Separator) + "hooks"
	}
	return "."
}

// BuildOn is Build for a command: the package is below the working directory, the screen shows what goes on, and has
// the lines that the hooks print.
func BuildOn(ctx context.Context, s *screen.Screen, pkg string) (*Program, error) {
	progress := s.Progress()
	defer progress.Done()
	progress.Step("building the hooks of %s", pkg)
	return Build(ctx, ".", pkg, &belowProgress{s.Err, progress})
}

// belowProgress takes the line of the progress away before it prints one.
type belowProgress struct {
	w        io.Writer
	progress *screen.Progress
}

func (b *belowProgress) Write(p []byte) (int, error) {
	b.progress.Done()
	return b.w.Write(p)
}
