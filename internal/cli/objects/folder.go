// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// filesOf are the files of a folder that may hold objects.
func filesOf(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		isOurs := strings.HasPrefix(filepath.Base(file), ".admitkit")
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
