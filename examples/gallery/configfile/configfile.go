// SPDX-License-Identifier: Apache-2.0

// Package configfile reads the configuration files of the gallery. It rejects unknown fields, field names in
// the wrong case, and values of the wrong type. Every error names the file, the line and the field.
package configfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Type lists the values that the fields apiVersion and kind of a file may have. The zero value checks neither.
type Type struct {
	APIVersions []string // the first is the one to use in new files
	Kind        string
}

// Load reads a file with one YAML or JSON document into a T. If that succeeds, it calls check, which returns the errors
// in the content. The paths of these errors begin at the root of the document. Load returns all errors that it finds,
// one per line and in the order of the file:
//
//	FILE:LINE: limits[0].qps: Invalid value: "fast": must be an integer
func Load[T any](file string, want Type, check func(*T) field.ErrorList) (content T, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return content, err
	}
	root, problems := parse(data)
	if root == nil && len(problems) == 0 {
		problems = []problem{{1, "the file is empty: " + cmp.Or(want.hint(), describe(reflect.TypeFor[T]()))}}
	}
	if len(problems) == 0 {
		problems = want.check(root)
	}
	if len(problems) == 0 {
		problems = decode(root, &content)
	}
	if len(problems) == 0 {
		for _, e := range check(&content) {
			problems = append(problems, problem{lineOf(root, e.Field), join(e.Field, e.ErrorBody())})
		}
	}
	if len(problems) == 0 {
		return content, nil
	}
	slices.SortStableFunc(problems, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var all []error
	for _, p := range problems {
		all = append(all, fmt.Errorf("%s:%d: %s", file, p.line, p.text))
	}
	var zero T
	return zero, errors.Join(all...)
}

// A problem is an error in a line of the file.
type problem struct {
	line int
	text string
}

// parse returns the root of the only document. It returns nil if the file has no content.
func parse(data []byte) (root *yaml.Node, problems []problem) {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = circular(&document)
		}
		if err != nil {
			return nil, []problem{syntax(err)}
		}
		if content := document.Content[0]; content.ShortTag() != "!!null" {
			documents = append(documents, content)
		}
	}
	switch len(documents) {
	case 0:
		return nil, nil
	case 1:
		return documents[0], nil
	}
	return nil, []problem{{documents[1].Line, fmt.Sprintf("the file has %d documents, and only one is allowed: remove the others", len(documents))}}
}

// circular returns an error for an alias inside of its own anchor, and for aliases that make the document too large.
func circular(document *yaml.Node) error {
	var content any
	err := document.Decode(&content)
	if wrongType := (*yaml.TypeError)(nil); errors.As(err, &wrongType) {
		return nil // decode reports it with its line: a field that is set twice, for example
	}
	return err
}

// syntax converts an error of the parser, such as "yaml: line 3: did not find expected key".
func syntax(err error) problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.HasSuffix(text, "found character that cannot start any token") {
		text += ": indent with spaces instead of tabs, and quote values that begin with a special character"
	}
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, message, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				return problem{line, "not valid YAML: " + message}
			}
		}
	}
	return problem{1, "not valid YAML: " + text}
}

// check compares apiVersion and kind, which must be right before the other fields can be judged.
func (want Type) check(root *yaml.Node) (problems []problem) {
	if want.Kind == "" || resolve(root).Kind != yaml.MappingNode {
		return nil
	}
	for _, f := range []struct {
		name      string
		supported []string
	}{{"apiVersion", want.APIVersions}, {"kind", []string{want.Kind}}} {
		at, value := root.Line, ""
		for _, p := range pairs(root) {
			if p.key.Value == f.name {
				at, value = p.key.Line, p.value.Value
			}
		}
		switch {
		case value == "": // the hint is for both fields
			return []problem{{at, join(f.name, "Required value: "+want.hint())}}
		case value == "AdmissionConfiguration" && f.name == "kind":
			return []problem{{at, fmt.Sprintf("kind: Unsupported value: %q: this file is for --admission-control-config-file of the API server: "+
				"name a file with only the configuration of this plugin: %s", value, want.hint())}}
		case !slices.Contains(f.supported, value):
			problems = append(problems, problem{at, join(f.name, field.NotSupported(nil, value, f.supported).ErrorBody())})
		}
	}
	return problems
}

// hint says how a file of this type begins.
func (want Type) hint() string {
	if want.Kind == "" {
		return ""
	}
	return fmt.Sprintf("begin the file with apiVersion: %s and kind: %s", want.APIVersions[0], want.Kind)
}

// decode decodes the document into a pointer.
func decode(root *yaml.Node, into any) []problem {
	var d decoder
	value := d.value(root, reflect.TypeOf(into).Elem(), nil)
	if len(d.problems) > 0 {
		return d.problems
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil { // not expected, because the types are right
		return []problem{{root.Line, err.Error()}}
	}
	return nil
}

// join returns the text of an error. The root of the document has no path.
func join(path, text string) string {
	if path == "" || path == (*field.Path)(nil).String() {
		return text
	}
	return path + ": " + text
}
