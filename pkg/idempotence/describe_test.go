// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFailuresHaveTheirOwnCause checks the texts for server errors. Each law that a server error can fail must have a
// cause and a fix for it.
func TestFailuresHaveTheirOwnCause(t *testing.T) {
	for _, law := range []Law{L2, L4a, L5, L6, L9} {
		if cause := explain(law, FailureServerError).cause; cause == explain(law, "another way").cause && law != L2 || cause == "" {
			t.Errorf("%s fails: %q", law, cause)
		}
		if fix := explain(law, FailureServerError).fix; fix == "" {
			t.Errorf("%s fails: no fix", law)
		}
	}
}

// TestEveryFailureModeIsExplained checks the texts for each law and failure mode. Each must have a fix, and causes and
// fixes must be whole sentences.
func TestEveryFailureModeIsExplained(t *testing.T) {
	for _, mode := range failureModes {
		for _, law := range Laws {
			cause, fix := explain(law, mode).cause, explain(law, mode).fix
			if cause != "" && !strings.HasSuffix(cause, ".") || !strings.HasSuffix(fix, ".") && !strings.HasSuffix(fix, ")") || fix == "" {
				t.Errorf("%s %s: cause %q, fix %q", law, mode, cause, fix)
			}
		}
	}
}

// Package laws and package idempotence each declare constants for laws and failure modes. Each value must exist in
// both.
func TestChecksAndReportsUseTheSameNames(t *testing.T) {
	for file, of := range map[string]struct {
		typeName string
		names    []string
	}{
		"internal/laws/law.go":  {"Law", texts(Laws)},
		"internal/laws/mode.go": {"Mode", texts(failureModes)},
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); ok && name.Name == of.typeName {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, value)
			}
			return true
		})
		slices.Sort(found)
		slices.Sort(of.names)
		if !slices.Equal(found, of.names) {
			t.Errorf("%s has %q, the report %q", file, found, of.names)
		}
	}
}

func texts[T ~string](list []T) (out []string) {
	for _, one := range list {
		out = append(out, string(one))
	}
	return out
}
