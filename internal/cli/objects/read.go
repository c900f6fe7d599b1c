// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/problem"
)

// MaxFile is the largest size of a file in bytes. etcd stores objects of up to 1.5 MiB.
const MaxFile = 64 << 20

// Read reads the objects in files, in all .yaml, .yml and .json files of folders in the order of their names, and in
// standard input for "-". It returns when ctx ends, even if a pipe has no data.
//
// In a folder, Read skips kustomizations. It also skips files without objects and kustomize patches, and reports these to
// note. A file that looks like an object with a mistake is an error. Read never skips a file that is itself in paths, but
// reports to note if it has no objects.
func Read(ctx context.Context, paths []string, stdin io.Reader, note func(format string, args ...any)) ([]*Object, error) {
	r, err := Await(ctx, func() (*pathReader, error) {
		r := &pathReader{stdin: stdin}
		for _, path := range paths {
			if err := r.path(path); err != nil {
				return nil, err
			}
		}
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	if len(r.left) > 0 {
		note("skipped, because they hold no complete objects: %s", Names(r.left...))
	}
	if len(r.empty) > 0 {
		note("%s: no Kubernetes objects found", Names(r.empty...))
	}
	return r.all, nil
}

// Await calls get in a goroutine and returns its result, or the error of ctx if ctx ends first. In that case, get keeps
// running, for example to wait for data from a pipe.
func Await[T any](ctx context.Context, get func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := get()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// A pathReader collects the objects of all files.
type pathReader struct {
	stdin io.Reader
	all   []*Object
	left  []string // files of folders that were skipped
	empty []string // files that the user named
}

func (r *pathReader) path(path string) error {
	if path == "-" {
		return r.file(path, false)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.New("%s: no such file or folder", Names(path))
	}
	if err != nil {
		return problem.New("%w", err)
	}
	if !info.IsDir() {
		return r.file(path, false)
	}
	files, err := filesOf(path)
	if err != nil {
		return problem.New("%w", err)
	}
	if len(files) == 0 {
		return problem.New("%s: no .yaml, .yml or .json file in this folder", Names(path))
	}
	none := notWhole(files)
	for _, file := range files {
		if isKustomization(file) {
			continue // a line about it would only repeat what its name says
		}
		if none[file] {
			r.left = append(r.left, file)
		} else if err := r.file(file, true); err != nil {
			return err
		}
	}
	return nil
}

// file reads one file. If found is true, the file was found in a folder and can be skipped. Otherwise the user named
// the file.
func (r *pathReader) file(file string, found bool) error {
	text, err := readFile(file, r.stdin)
	if err != nil {
		return err
	}
	all, err := parse(file, text)
	var none noObject
	if found && len(all) == 0 && errors.As(err, &none) {
		if none.alike && !ofHelm(file) {
			return problem.New("%w", err).Hint("if it is not an object, name the files to read instead of their folder")
		}
		r.left = append(r.left, file)
		return nil
	}
	if errors.As(err, new(noYAML)) && bytes.Contains(text, []byte("{{")) {
		return problem.New("%w", err).Hint("render templates first: helm template . > rendered.yaml")
	}
	if err != nil {
		return problem.New("%w", err)
	}
	if len(all) == 0 && !found {
		r.empty = append(r.empty, file)
	}
	r.all = append(r.all, all...)
	return nil
}

func readFile(file string, stdin io.Reader) ([]byte, error) {
	source := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, problem.New("%w", err)
		}
		defer func() { _ = f.Close() }() // only read
		source = f
	}
	text, err := io.ReadAll(io.LimitReader(source, MaxFile+1))
	if err != nil {
		return nil, problem.New("%s: %w", Names(file), err)
	}
	if len(text) > MaxFile {
		return nil, problem.New("%s: the file is larger than %d MiB", Names(file), MaxFile>>20)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, problem.New("%s: the file is binary, not YAML or JSON: it contains NUL bytes", Names(file))
	}
	return text, nil
}

// toJSON converts a YAML document as kubectl does, so that values such as yes mean the same.
func toJSON(node *yaml.Node) ([]byte, error) {
	if err := wrongFields(node); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return nil, err
	}
	encoded, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return encoded, nil
}

// wrongFields returns an error for a field name that is not text, or for a duplicate field. kubectl silently uses one
// of two duplicate fields. A field from a YAML merge (<<) may be overridden.
func wrongFields(node *yaml.Node) error {
	lines := map[string]int{}
	for i, n := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if resolved(n).Kind != yaml.ScalarNode {
				return noYAML{fmt.Errorf("line %d: the field name must be a string", n.Line)}
			}
			if first, there := lines[n.Value]; there && n.Tag != "!!merge" {
				return fmt.Errorf("line %d: duplicate field %q, first set in line %d", n.Line, n.Value, first)
			}
			lines[n.Value] = n.Line
		}
		if err := wrongFields(n); err != nil { // aliases have no content
			return err
		}
	}
	return nil
}
