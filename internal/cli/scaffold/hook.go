// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"path"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

// A Hook is what the templates of a hook are filled in with.
type Hook struct {
	*Project
	Kind    *Kind
	Mutates bool
	// CRD is the file of the project that defines a custom resource.
	CRD string
}

func (h *Hook) sort() string {
	if h.Mutates {
		return "mutate"
	}
	return "validate"
}

// File is the one in hooks with the hook.
func (h *Hook) File() string { return h.sort() + "_" + h.Kind.stem() + ".go" }

// TestFile is the one in hooks, and in e2e, with the test.
func (h *Hook) TestFile() string { return h.sort() + "_" + h.Kind.stem() + "_test.go" }

// Sample is the file in samples.
func (h *Hook) Sample() string { return h.Kind.stem() + ".yaml" }

// Constructor is the function that returns the hook.
func (h *Hook) Constructor() string {
	if h.Mutates {
		return h.Kind.name() + "Mutator"
	}
	return h.Kind.name() + "Validator"
}

// Handler is the function that decides.
func (h *Hook) Handler() string { return h.sort() + h.Kind.name() }

// Test is the function that tests.
func (h *Hook) Test() string { return "Test" + strings.ToUpper(h.sort()[:1]) + h.Handler()[1:] }

// WebhookName is that of the registration.
func (h *Hook) WebhookName() string {
	return h.sort() + "-" + strings.ReplaceAll(h.Kind.stem(), "_", "-") + "." + h.Name + "." + h.Domain
}

// declares are the names that the hook takes in its package.
func (h *Hook) declares() []string {
	return []string{h.Constructor(), h.Handler(), h.Test(), h.Test() + "Again"}
}

// crdFile is where the definition of a custom resource is.
func (k *Kind) crdFile(folder string) string {
	return path.Join(folder, k.Resource+"."+k.Group+".yaml")
}

// hooksOf reads the names of kinds.
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
					return problem.New("%s: %s are named twice: one hook is enough for them", flag, kind.Resource)
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
		err = problem.New("hooks for which kinds? name them by --mutate or --validate").
			Hint("--mutate pods --validate apps/v1/deployments")
	}
	return all, err
}
