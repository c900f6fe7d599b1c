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

// filesOf returns the files of a folder that may hold objects. The folder itself may be a symbolic link. filesOf skips
// symbolic links to folders inside it. It also skips folders such as "..data" or "..2006_01_02", which hold copies of
// the files of a mounted ConfigMap.
func filesOf(folder string) ([]string, error) {
	var files []string
	above := folder + string(filepath.Separator) // the separator makes WalkDir follow a link
	err := filepath.WalkDir(above, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != above && strings.HasPrefix(entry.Name(), ".."):
			return filepath.SkipDir
		case entry.IsDir() || strings.HasPrefix(entry.Name(), ".admitkit"): // files of admitkit itself
			return nil
		case slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(file))):
			files = append(files, file)
		}
		return nil
	})
	return files, err
}

// notWhole returns the files that hold no complete objects: pipes, devices, kustomizations, and the patches that
// kustomizations name.
func notWhole(files []string) map[string]bool {
	none := map[string]bool{}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			none[file] = true
		} else if isKustomization(file) {
			none[file] = true
			for _, patch := range patchesOf(file) {
				none[patch] = true
			}
		}
	}
	return none
}

// isKustomization reports whether a file is a kustomization, by its name.
func isKustomization(file string) bool {
	name := filepath.Base(file)
	return name == "kustomization.yaml" || name == "kustomization.yml"
}

// ofHelm reports whether a file belongs to a Helm chart, by its name. Such files have an apiVersion but are not objects.
func ofHelm(file string) bool {
	name := filepath.Base(file)
	return name == "Chart.yaml" || strings.HasPrefix(name, "values")
}

// patchesOf returns the files of the patches that a kustomization names, or nothing if the kustomization is unreadable.
func patchesOf(kustomization string) []string {
	text, err := readFile(kustomization, nil)
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
