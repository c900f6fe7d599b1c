// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		relative, _ := filepath.Rel(dir, path)
		all = append(all, relative)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all[1:]
}

func TestAllFilesOrNone(t *testing.T) {
	set := &Set{form: Static, files: []file{{name: "mutating/shop", object: 1}, {name: "validating/shop", object: 2}, {name: "admission-configuration", comment: "For a flag.", object: 3}}}
	rows := []struct {
		reason string
		before []string // names of folders end with a slash
		want   []string // nil if nothing is written
		left   []string
	}{
		{"a new folder", nil, []string{"new", "new/admission-configuration.yaml", "new/mutating", "new/mutating/shop.yaml", "new/validating", "new/validating/shop.yaml"}, nil},
		{"existing files are replaced, other files stay", []string{"new/mutating/shop.yaml", "new/mutating/other.yaml"},
			[]string{"new", "new/admission-configuration.yaml", "new/mutating", "new/mutating/other.yaml", "new/mutating/shop.yaml", "new/validating", "new/validating/shop.yaml"}, nil},
		{"the same file in the other form is reported", []string{"new/validating/shop.json"},
			[]string{"new", "new/admission-configuration.yaml", "new/mutating", "new/mutating/shop.yaml", "new/validating", "new/validating/shop.json", "new/validating/shop.yaml"}, []string{"new/validating/shop.json"}},
		{"a file in place of a folder", []string{"new/validating"}, nil, nil},
		{"a folder in place of a file", []string{"new/admission-configuration.yaml/"}, nil, nil},
		{"the folder is a file", []string{"new"}, nil, nil},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range row.before {
				path := filepath.Join(dir, name)
				parent := filepath.Dir(path)
				if strings.HasSuffix(name, "/") {
					parent = path
				}
				if err := os.MkdirAll(parent, 0o755); err != nil {
					t.Fatal(err)
				}
				if parent != path {
					if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := tree(t, dir)
			written, left, err := set.WriteDir(filepath.Join(dir, "new"), "yaml")
			got := tree(t, dir)
			if row.want == nil {
				if err == nil || !strings.HasPrefix(err.Error(), "nothing was written: ") || !slices.Equal(got, before) || written != nil {
					t.Errorf("%v, wrote %q: %q", err, written, got)
				}
				return
			}
			if err != nil || !slices.Equal(got, row.want) || len(written) != 3 {
				t.Errorf("%v, wrote %q:\n got %q\nwant %q", err, written, got, row.want)
			}
			for i := range left {
				left[i], _ = filepath.Rel(dir, left[i])
			}
			if !slices.Equal(left, row.left) {
				t.Errorf("left %q, want %q", left, row.left)
			}
			for name, want := range map[string]string{"mutating/shop.yaml": "1\n", "admission-configuration.yaml": "# For a flag.\n3\n"} {
				if text, err := os.ReadFile(filepath.Join(dir, "new", name)); err != nil || string(text) != want {
					t.Errorf("%s is %q: %v", name, text, err)
				}
			}
		})
	}
}
