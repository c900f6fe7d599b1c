// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/problem"
)

// readFiles reads what was named. In a folder, files that hold no objects are left out, and patches of kustomize,
// which are parts of objects only: a folder of a project has both.
func readFiles(ctx context.Context, stdin io.Reader, paths []string) (all []*objects.Object, left []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if path == "-" || err != nil || !info.IsDir() {
			found, err := objects.Read(ctx, []string{path}, stdin)
			if err != nil {
				return nil, nil, err
			}
			all = append(all, found...)
			continue
		}
		found, without, err := readFolder(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		all, left = append(all, found...), append(left, without...)
	}
	return all, left, nil
}

func readFolder(ctx context.Context, folder string) (all []*objects.Object, left []string, err error) {
	files, err := filesOf(folder)
	if err != nil {
		return nil, nil, problem.New("%w", err)
	}
	if len(files) == 0 {
		all, err = objects.Read(ctx, []string{folder}, nil) // which tells
		return all, nil, err
	}
	for _, file := range files {
		if isKustomization(file) || isPatch(file) {
			left = append(left, file)
			continue
		}
		found, err := objects.Read(ctx, []string{file}, nil)
		switch {
		case err != nil && strings.Contains(err.Error(), "not a Kubernetes object"):
			left = append(left, file)
		case err != nil:
			return nil, nil, problem.Hint(err, "templates have to be rendered first, as in helm template . | admitkit lint -")
		}
		all = append(all, found...)
	}
	return all, left, nil
}

func filesOf(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		isOurs := entry != nil && entry.Name() == DefaultConfig
		if err == nil && !entry.IsDir() && !isOurs && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(file))) {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

var kustomizations = []string{"kustomization.yaml", "kustomization.yml"}

func isKustomization(file string) bool { return slices.Contains(kustomizations, filepath.Base(file)) }

// isPatch reports whether a kustomization in the folder of the file, or above it, names it as a patch. What
// cannot be read names nothing.
func isPatch(file string) bool {
	for folder := filepath.Dir(file); ; folder = filepath.Dir(folder) {
		for _, name := range kustomizations {
			if slices.Contains(patchesOf(filepath.Join(folder, name)), filepath.Clean(file)) {
				return true
			}
		}
		if folder == "." || folder == filepath.Dir(folder) {
			return false
		}
	}
}

func patchesOf(kustomization string) []string {
	text, err := os.ReadFile(kustomization)
	if err != nil {
		return nil
	}
	type patch struct {
		Path string `yaml:"path"`
	}
	var document struct {
		Patches []patch  `yaml:"patches"`
		Merge   []string `yaml:"patchesStrategicMerge"`
		JSON    []patch  `yaml:"patchesJson6902"`
	}
	if yaml.Unmarshal(text, &document) != nil {
		return nil
	}
	for _, p := range append(document.Patches, document.JSON...) {
		document.Merge = append(document.Merge, p.Path)
	}
	var files []string
	for _, name := range document.Merge {
		files = append(files, filepath.Join(filepath.Dir(kustomization), name))
	}
	return files
}
