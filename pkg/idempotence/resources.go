// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"
)

// named gives a custom resource the name that the rules have for it. English does not tell how the
// author of the definition wrote the plural: gateways, or gatewaies.
func (s Subject) named(k *kind) *kind {
	if k.goType != nil {
		return k
	}
	var names []string
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			if !hasOrAll(rule.APIGroups, k.Group, "*") || !hasOrAll(rule.APIVersions, k.Version, "*") {
				continue
			}
			if slices.Contains(rule.Resources, k.resource.Resource) {
				return k
			}
			names = append(names, rule.Resources...)
		}
	}
	like := strings.ToLower(k.Kind)
	for _, name := range names {
		if !strings.Contains(name, "/") && len(name) > len(like)/2 && strings.HasPrefix(name, like[:len(like)-1]) {
			k.resource.Resource = name
			return k
		}
	}
	return k
}
