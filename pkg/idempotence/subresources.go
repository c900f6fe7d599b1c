// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"
)

// subresourcesOnly returns the resources of the rules if all are subresources. The harness generates no objects for
// those.
func (s Subject) subresourcesOnly() (names []string) {
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			for _, resource := range rule.Resources {
				if _, part, ok := strings.Cut(resource, "/"); !ok || part == "*" {
					return nil
				}
				if !slices.Contains(names, resource) {
					names = append(names, resource)
				}
			}
		}
	}
	return names
}
