// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// mostExceptions is the largest size of a file of exceptions, in bytes.
const mostExceptions = 1 << 20

// readExceptions reads a list of exceptions, each with a path, a law and a reason.
func readExceptions(ctx context.Context, file string, stdin io.Reader) ([]idempotence.Exception, error) {
	if file == "" {
		return nil, nil
	}
	name := file
	if file == "-" {
		name = "standard input"
	}
	text, err := objects.Await(ctx, func() ([]byte, error) { return exceptionsText(file, stdin) })
	opening := (*fs.PathError)(nil)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &opening): // the error names the file
		return nil, problem.New("--exceptions: %w", err)
	case err != nil:
		return nil, problem.New("--exceptions %s: %w", name, err)
	}
	list, err := parseExceptions(text)
	if err != nil {
		return nil, problem.New("%s:%w", name, err).Hint(`an exception has a path, a reason and an optional law:` + "\n" +
			`- {path: "metadata.annotations[example.com/at]", law: L3, reason: the time of the change}`)
	}
	return list, nil
}

func exceptionsText(file string, stdin io.Reader) ([]byte, error) {
	source := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // only read
		source = f
	}
	text, err := io.ReadAll(io.LimitReader(source, mostExceptions+1))
	if err == nil && len(text) > mostExceptions {
		err = errors.New("the file is too large for a list of exceptions")
	}
	return text, err
}

// parseExceptions parses the YAML of a list of exceptions. Its errors begin with a line number.
func parseExceptions(text []byte) ([]idempotence.Exception, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf(" %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) == 0 {
		return nil, nil // an empty file
	}
	list := resolved(document.Content[0])
	if list.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%d: expected a list of exceptions", list.Line)
	}
	var all []idempotence.Exception
	for _, node := range list.Content {
		e, err := exceptionOf(resolved(node))
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func exceptionOf(node *yaml.Node) (idempotence.Exception, error) {
	var e idempotence.Exception
	if node.Kind != yaml.MappingNode {
		return e, fmt.Errorf("%d: expected an exception with a path and a reason", node.Line)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolved(node.Content[i+1])
		if seen[key.Value] {
			return e, fmt.Errorf("%d: duplicate field %s", key.Line, key.Value)
		}
		seen[key.Value] = true
		if value.Kind != yaml.ScalarNode {
			return e, fmt.Errorf("%d: %s must be a string", value.Line, key.Value)
		}
		switch key.Value {
		case "path":
			e.Path = value.Value
			if err := checkPath(e.Path); err != nil {
				return e, fmt.Errorf("%d: the path %s matches nothing: %w", value.Line, e.Path, err)
			}
		case "reason":
			e.Reason = value.Value
		case "law":
			if e.Law = idempotence.Law(value.Value); !slices.Contains(idempotence.Laws, e.Law) {
				return e, fmt.Errorf("%d: unknown law %q: the laws are %s", value.Line, value.Value, lawNames())
			}
		default:
			return e, fmt.Errorf("%d: unknown field %q of an exception", key.Line, key.Value)
		}
	}
	switch {
	case e.Path == "":
		return e, fmt.Errorf("%d: the exception has no path", node.Line)
	case strings.TrimSpace(e.Reason) == "":
		return e, fmt.Errorf("%d: the exception for %s has no reason", node.Line, e.Path)
	}
	return e, nil
}

func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func lawNames() string {
	var names []string
	for _, law := range idempotence.Laws {
		names = append(names, string(law))
	}
	return strings.Join(names, ", ")
}
