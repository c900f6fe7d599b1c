// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An EmptyError reports a folder without logs.
type EmptyError struct {
	Folder   string
	Suffixes []string // of the names of logs
}

func (e *EmptyError) Error() string {
	return "the folder " + e.Folder + " has no files *" + strings.Join(e.Suffixes, " or *")
}

// Files returns the files with these names and, of folders with these names, the files whose names have one of the
// suffixes, by name. It fails if there is no such file, or with an [*EmptyError].
func Files(names []string, suffixes ...string) (files []string, err error) {
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, name)
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, err
		}
		before := len(files)
		for _, e := range entries {
			if !e.IsDir() && slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(e.Name(), suffix) }) {
				files = append(files, filepath.Join(name, e.Name()))
			}
		}
		if len(files) == before {
			return nil, &EmptyError{name, suffixes}
		}
	}
	return files, nil
}
