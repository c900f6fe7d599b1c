// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/examples/gallery/configfile"
	"github.com/admitkit/admitkit/examples/gallery/sources"
	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// names returns the names of the admission controllers, separated by commas.
func names() string { return strings.Join(slices.Sorted(maps.Keys(policies)), ", ") }

// known returns an error if the gallery has no admission controller with this name.
func known(name string) error {
	switch near := configfile.Nearest(name, slices.Sorted(maps.Keys(policies))); {
	case policies[name] != nil:
		return nil
	case strings.EqualFold(name, "ResourceQuota"):
		return errors.New("ResourceQuota is not possible as a webhook: see docs/gallery.md")
	case near != "":
		return fmt.Errorf("%q is not in the gallery: did you mean %s?", name, near)
	}
	return fmt.Errorf("%q is not in the gallery: choose from %s", name, names())
}

// A selection contains the values of the flags --enable and --config.
type selection struct {
	enabled []string
	files   map[string]string // configuration files by admission controller
}

// enable parses --enable. It ignores spaces around names, and empty names.
func (s *selection) enable(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if err := known(name); err != nil {
			return err
		}
		if slices.Contains(s.enabled, name) {
			return fmt.Errorf("%s is named twice", name)
		}
		s.enabled = append(s.enabled, name)
	}
	return nil
}

// configure parses --config.
func (s *selection) configure(value string) error {
	name, file, ok := strings.Cut(value, "=")
	if name = strings.TrimSpace(name); !ok || file == "" {
		return fmt.Errorf("%q does not have the form NAME=FILE", value)
	}
	if err := known(name); err != nil {
		return err
	}
	if s.files[name] != "" {
		return fmt.Errorf("%s has two configuration files", name)
	}
	if s.files == nil {
		s.files = map[string]string{}
	}
	s.files[name] = file
	return nil
}

// hooks returns the hooks of all admission controllers that are enabled, in the order of --enable.
func (s *selection) hooks(deps *program.Deps) ([]*webhook.Hook, error) {
	if len(s.enabled) == 0 {
		return nil, errors.New("nothing to run: set --enable to names such as AlwaysPullImages,PodNodeSelector")
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if !slices.Contains(s.enabled, name) {
			return nil, fmt.Errorf("--config names %s, which is not enabled: add it to --enable", name)
		}
	}
	from, err := sources.New(deps)
	if err != nil {
		return nil, err
	}
	var all []*webhook.Hook
	for _, name := range s.enabled {
		hooks, err := policies[name](from, s.files[name])
		if errors.Is(err, errNeedsConfiguration) {
			err = fmt.Errorf("%w: add --config=%s=FILE", err, name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, hooks...)
	}
	return all, nil
}
