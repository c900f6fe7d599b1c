// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"path"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

// A Hook is a hook of a project, as data for the templates.
type Hook struct {
	*Project
	Kind    *Kind
	Mutates bool
	// CRD is the file with the CustomResourceDefinition; empty for built-in kinds.
	CRD string
}

func (h *Hook) sort() string {
	if h.Mutates {
		return "mutate"
	}
	return "validate"
}

// File returns the name of the hook's file in hooks/.
func (h *Hook) File() string { return h.sort() + "_" + h.Kind.stem() + ".go" }

// TestFile returns the name of the test files in hooks/ and e2e/.
func (h *Hook) TestFile() string { return h.sort() + "_" + h.Kind.stem() + "_test.go" }

// Sample returns the name of the file in samples/.
func (h *Hook) Sample() string { return h.Kind.stem() + ".yaml" }

// Constructor returns the name of the function that returns the hook.
func (h *Hook) Constructor() string {
	if h.Mutates {
		return h.Kind.name() + "Mutator"
	}
	return h.Kind.name() + "Validator"
}

// Handler returns the name of the handler function.
func (h *Hook) Handler() string { return h.sort() + h.Kind.name() }

// Test returns the name of the test function.
func (h *Hook) Test() string { return "Test" + strings.ToUpper(h.sort()[:1]) + h.Handler()[1:] }

// WebhookName returns the name of the webhook in its configuration.
func (h *Hook) WebhookName() string {
	return h.sort() + "-" + strings.ReplaceAll(h.Kind.stem(), "_", "-") + "." + h.Name + "." + h.Domain
}

// declares returns the names of functions that the hook's files declare.
func (h *Hook) declares() []string {
	return []string{h.Constructor(), h.Handler(), h.Test(), h.Test() + "Again"}
}

// crdFile returns the file of the CustomResourceDefinition in a folder.
func (k *Kind) crdFile(folder string) string {
	return path.Join(folder, k.Resource+"."+k.Group+".yaml")
}

// hooksOf returns the hooks for the values of --mutate and --validate.
func (p *Project) hooksOf(mutate, validate []string) ([]*Hook, error) {
	var all []*Hook
	add := func(flag string, mutates bool, names []string) error {
		for _, text := range names {
			kind, err := parse(strings.TrimSpace(text), p.Module)
			if err != nil {
				return &problem.Error{Err: fmt.Errorf("%s: %w", flag, err), Hints: problem.Hints(err)}
			}
			h := &Hook{Project: p, Kind: kind, Mutates: mutates}
			for _, other := range all {
				if other.File() == h.File() {
					return problem.New("%s: %s is listed twice", flag, kind.Resource)
				}
			}
			all = append(all, h)
		}
		return nil
	}
	err := add("--mutate", true, mutate)
	if err == nil {
		err = add("--validate", false, validate)
	}
	if err == nil && len(all) == 0 {
		err = problem.New("no kinds are given: use --mutate or --validate").
			Hint("--mutate pods --validate apps/v1/deployments")
	}
	return all, err
}

// SampleText returns the object that the tests create. If only a validating hook handles it, it has the label that the
// hook requires.
func (h *Hook) SampleText() string {
	text := strings.TrimSuffix(h.Kind.Sample, "\n") + "\n"
	if h.Mutates {
		return text
	}
	return strings.Replace(text, "metadata:\n", "metadata:\n  labels:\n    "+h.Domain+"/team: checkout\n", 1)
}
