// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// named gives a custom resource the name that the rules have for it, and the scope.
func (s Subject) named(k *kind) *kind {
	if k.goType == nil {
		s.pluralize(k)
		k.namespaced = !s.inClusterOnly(k)
	}
	return k
}

// guessesScope reports whether nothing says that a custom resource is in namespaces, as it is taken to be.
func (o *options) guessesScope(s Subject, k *kind) bool {
	if k.goType != nil || k.custom != nil || !k.namespaced {
		return false
	}
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			if rule.Scope != nil && *rule.Scope == admissionregistrationv1.NamespacedScope {
				return false
			}
		}
	}
	return !slices.ContainsFunc(o.samples, func(s sample) bool {
		gvk, err := gvkOf(s.doc)
		return err == nil && gvk == k.GroupVersionKind && namespaceOf(s.doc, "") != ""
	})
}

// inClusterOnly reports whether the rules for a resource are all for such as are in no namespace.
func (s Subject) inClusterOnly(k *kind) bool {
	found := false
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			if !hasOrAll(rule.APIGroups, k.Group, "*") || !slices.Contains(rule.Resources, k.resource.Resource) {
				continue
			}
			if rule.Scope == nil || *rule.Scope != admissionregistrationv1.ClusterScope {
				return false
			}
			found = true
		}
	}
	return found
}

// pluralize takes the plural from the rules. English does not tell how the author of the definition
// wrote it: gateways, or gatewaies.
func (s Subject) pluralize(k *kind) {
	var names []string
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			if !hasOrAll(rule.APIGroups, k.Group, "*") || !hasOrAll(rule.APIVersions, k.Version, "*") {
				continue
			}
			if slices.Contains(rule.Resources, k.resource.Resource) {
				return
			}
			names = append(names, rule.Resources...)
		}
	}
	like := strings.ToLower(k.Kind)
	for _, name := range names {
		if !strings.Contains(name, "/") && len(name) > len(like)/2 && strings.HasPrefix(name, like[:len(like)-1]) {
			k.resource.Resource = name
			return
		}
	}
}
