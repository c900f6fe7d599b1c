// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

// Default returns the default package of a folder: ./hooks if that folder exists, and otherwise the folder itself.
func Default(dir string) string {
	if info, err := os.Stat(filepath.Join(dir, "hooks")); err == nil && info.IsDir() {
		return "./hooks"
	}
	return "."
}

// BuildOn is Build for a command. pkg is relative to the working directory. The screen shows the progress and the output
// of the hooks.
func BuildOn(ctx context.Context, s *screen.Screen, pkg string) (*Program, error) {
	progress := s.Progress()
	defer progress.Done()
	progress.Step("building the hooks of %s", pkg)
	return Build(ctx, Options{Dir: ".", Package: pkg, Log: &belowProgress{s.Err, progress}})
}

// belowProgress is an io.Writer that erases the progress line before each write.
type belowProgress struct {
	w        io.Writer
	progress *screen.Progress
}

func (b *belowProgress) Write(p []byte) (int, error) {
	b.progress.Done()
	return b.w.Write(p)
}
