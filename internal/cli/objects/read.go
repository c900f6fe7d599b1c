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

// MaxFile is the largest file that is read, in bytes. etcd takes objects of 1.5 MiB.
const MaxFile = 64 << 20

// Read reads the objects of files, of all .yaml, .yml and .json files in folders and below them, in the order of
// their names, and of standard input for "-". It ends with ctx, even while nobody writes to what it reads.
//
// A folder may hold more than objects. What holds none there, and patches of kustomize, which are parts of objects
// only, are left out, which note is told; what looks like an object with a mistake is an error. Files that are
// named are read, whatever they are.
func Read(ctx context.Context, paths []string, stdin io.Reader, note func(format string, args ...any)) ([]*Object, error) {
	r, err := Await(ctx, func() (*reading, error) {
		r := &reading{stdin: stdin}
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
		note("left out, since they hold no whole objects: %s", Names(r.left...))
	}
	return r.all, nil
}

// Await returns what get does, or the end of ctx: then get, which may wait for somebody who writes to a
// pipe, is left alone.
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

// A reading is what was read so far.
type reading struct {
	stdin io.Reader
	all   []*Object
	left  []string
}

func (r *reading) path(path string) error {
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
		if none[file] {
			r.left = append(r.left, file)
		} else if err := r.file(file, true); err != nil {
			return err
		}
	}
	return nil
}

// file reads one that was named, or found in a folder.
func (r *reading) file(file string, found bool) error {
	text, err := readFile(file, r.stdin)
	if err != nil {
		return err
	}
	all, err := parse(file, text)
	var none noObject
	if found && len(all) == 0 && errors.As(err, &none) {
		if none.alike && !ofHelm(file) {
			return problem.New("%w", err).Hint("if it is not to be one: name the files to read instead of their folder")
		}
		r.left = append(r.left, file)
		return nil
	}
	if errors.As(err, new(noYAML)) && bytes.Contains(text, []byte("{{")) {
		return problem.New("%w", err).Hint("templates have to be rendered first, as in helm template . > rendered.yaml")
	}
	if err != nil {
		return problem.New("%w", err)
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
		return nil, problem.New("%s: more than %d MiB, too large for a file of objects", Names(file), MaxFile>>20)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, problem.New("%s: neither YAML nor JSON: it has zero bytes", Names(file))
	}
	return text, nil
}

// toJSON converts a document as kubectl does, so that "yes" is what it is there.
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

// wrongFields says which field has no name that is text, and which is there twice: kubectl takes one of the two, and the reader does not
// see which. What a merge (<<) brings may be there again.
func wrongFields(node *yaml.Node) error {
	lines := map[string]int{}
	for i, n := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if resolved(n).Kind != yaml.ScalarNode {
				return noYAML{fmt.Errorf("line %d: the name of a field must be text", n.Line)}
			}
			if first, there := lines[n.Value]; there && n.Tag != "!!merge" {
				return fmt.Errorf("line %d: %q is there already, in line %d", n.Line, n.Value, first)
			}
			lines[n.Value] = n.Line
		}
		if err := wrongFields(n); err != nil { // aliases have no content of their own
			return err
		}
	}
	return nil
}
