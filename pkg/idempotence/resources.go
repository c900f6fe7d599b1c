// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// named gives a custom resource the name that the rules have for it, and the scope.
func (s Subject) named(k *objects.Kind) *objects.Kind {
	if k.GoType == nil {
		s.pluralize(k)
		k.Namespaced = !s.inClusterOnly(k)
	}
	return k
}

// guessesScope reports whether nothing says that a custom resource is in namespaces, as it is taken to be.
func (o *options) guessesScope(s Subject, k *objects.Kind) bool {
	if k.GoType != nil || k.Custom != nil || !k.Namespaced {
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
		return err == nil && gvk == k.GroupVersionKind && objects.NamespaceOf(s.doc, "") != ""
	})
}

// inClusterOnly reports whether the rules for a resource are all for such as are in no namespace.
func (s Subject) inClusterOnly(k *objects.Kind) bool {
	found := false
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			if !hasOrAll(rule.APIGroups, k.Group, "*") || !slices.Contains(rule.Resources, k.Resource.Resource) {
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
func (s Subject) pluralize(k *objects.Kind) {
	var names []string
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			if !hasOrAll(rule.APIGroups, k.Group, "*") || !hasOrAll(rule.APIVersions, k.Version, "*") {
				continue
			}
			if slices.Contains(rule.Resources, k.Resource.Resource) {
				return
			}
			names = append(names, rule.Resources...)
		}
	}
	like := strings.ToLower(k.Kind)
	for _, name := range names {
		if !strings.Contains(name, "/") && len(name) > len(like)/2 && strings.HasPrefix(name, like[:len(like)-1]) {
			k.Resource.Resource = name
			return
		}
	}
}

// kindOf returns a kind as its definition or the rules describe it.
func (o *options) kindOf(subject Subject, gvk schema.GroupVersionKind) *objects.Kind {
	k := objects.KindOf(gvk)
	d := o.defined[gvk]
	if d == nil {
		return subject.named(k)
	}
	k.Define(d)
	return k
}
