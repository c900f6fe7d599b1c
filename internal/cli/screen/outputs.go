// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
)

// Outputs is the value of the flag -o: the output formats. Each goes to standard output or, as FORMAT=FILE, to a file.
// The flag can be repeated.
type Outputs struct {
	forms  []string // supported by the command; the first is the default
	chosen []output
}

type output struct{ form, file string }

// NewOutputs returns the flag value of a command that supports these formats. The first one is the default.
func NewOutputs(forms ...string) *Outputs { return &Outputs{forms: forms} }

// Usage returns the help text of the flag.
func (o *Outputs) Usage() string {
	return "output format: " + strings.Join(o.forms, ", ") + "; with =FILE it goes to a file; can be repeated"
}

// Forms returns the supported formats, for shell completion.
func (o *Outputs) Forms() []string { return o.forms }

// Type implements pflag.Value: it names the value in the help.
func (*Outputs) Type() string { return "FORMAT[=FILE]" }

// String implements pflag.Value: it is the default in the help.
func (o *Outputs) String() string {
	if len(o.chosen) == 0 {
		return o.forms[0]
	}
	var all []string
	for _, c := range o.chosen {
		all = append(all, strings.TrimSuffix(c.form+"="+c.file, "="))
	}
	return strings.Join(all, ",")
}

// Set implements pflag.Value: it adds a format.
func (o *Outputs) Set(value string) error {
	form, file, toFile := strings.Cut(value, "=")
	if !slices.Contains(o.forms, form) {
		return fmt.Errorf("unknown output format %q: choose one of %s", form, strings.Join(o.forms, ", "))
	}
	if toFile && file == "" {
		return fmt.Errorf("%q has no file name", value)
	}
	for _, c := range o.chosen {
		if c.file == file {
			if file == "" {
				return fmt.Errorf("both %s and %s go to standard output: write one into a file, as in -o %s=FILE", c.form, form, form)
			}
			return fmt.Errorf("%s is named by two -o flags (%s and %s): use a different file for each", file, c.form, form)
		}
	}
	o.chosen = append(o.chosen, output{form, file})
	return nil
}

// Write calls write for each chosen format, and copies its complete output to standard output or the file. Only text on
// standard output may have colours.
func (o *Outputs) Write(s *Screen, write func(form string, w io.Writer, p Painter) error) error {
	chosen := o.chosen
	if len(chosen) == 0 {
		chosen = []output{{form: o.forms[0]}}
	}
	for _, c := range chosen {
		var text bytes.Buffer
		painter := Painter{}
		if c.file == "" && c.form == "text" {
			painter = s.Painter()
		}
		if err := write(c.form, &text, painter); err != nil {
			return err
		}
		if c.file == "" {
			if _, err := s.Out.Write(text.Bytes()); err != nil {
				return problem.New("cannot write the results: %w", err)
			}
			continue
		}
		if err := WriteFile(c.file, text.Bytes()); err != nil {
			return problem.New("cannot write the results: %w", err)
		}
		s.Note("wrote %s", c.file)
	}
	return nil
}

// Check finds errors before a command starts its work: a missing folder, or HTML that would go to a terminal.
func (o *Outputs) Check(s *Screen) error {
	for _, c := range o.chosen {
		if c.file == "" {
			if c.form == "html" && Terminal(s.Out) {
				return problem.New("-o html would print HTML to the terminal").Hint("-o html=report.html")
			}
			continue
		}
		if info, err := os.Stat(filepath.Dir(c.file)); err != nil || !info.IsDir() {
			return problem.New("-o %s=%s: there is no folder %s", c.form, c.file, filepath.Dir(c.file)).Hint("mkdir -p %s", filepath.Dir(c.file))
		}
	}
	return nil
}

// Only returns an error if a chosen format is not one of forms, the formats of a kind of run.
func (o *Outputs) Only(run string, forms ...string) error {
	for _, c := range o.chosen {
		if !slices.Contains(forms, c.form) {
			return problem.New("-o %s: %s has the formats %s", c.form, run, textutil.Join(forms, "and"))
		}
	}
	return nil
}

// WriteFile writes a file completely or not at all. It follows a symbolic link and keeps the permissions of the file. If
// standard output or standard error goes to the same file, it appends.
func WriteFile(name string, data []byte) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		if !info.Mode().IsRegular() {
			return os.WriteFile(name, data, mode) // a pipe or a device has no contents to protect
		}
		if standard := standardStream(info); standard != nil { // such as /dev/stdout, redirected to a file
			_, err := standard.Write(data)
			return err
		}
		mode = info.Mode().Perm()
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	} else if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return os.WriteFile(name, data, mode) // a dangling link: create its target
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(data)
	if closing := temporary.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(temporary.Name(), mode)
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), name)
}

// standardStream returns the standard stream of this process that is redirected to the file, or nil.
func standardStream(file os.FileInfo) *os.File {
	for _, stream := range []*os.File{os.Stdout, os.Stderr} {
		if info, err := stream.Stat(); err == nil && os.SameFile(info, file) {
			return stream
		}
	}
	return nil
}
