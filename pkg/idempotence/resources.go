// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// named sets a custom resource's name and scope from the rules.
func (s Subject) named(k *objects.Kind) *objects.Kind {
	if k.GoType == nil {
		s.pluralize(k)
		k.Namespaced = !s.inClusterOnly(k)
	}
	return k
}

// guessesScope reports whether a custom resource is only assumed to be namespaced.
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

// inClusterOnly reports whether all rules for a resource have the scope Cluster.
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

// pluralize takes a kind's plural from the rules, because grammar does not decide it: the definition may say gateways or
// gatewaies.
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

// kindOf returns a kind by its definition or by the rules.
func (o *options) kindOf(subject Subject, gvk schema.GroupVersionKind) *objects.Kind {
	k := objects.KindOf(gvk)
	d := o.defined[gvk]
	if d == nil {
		return subject.named(k)
	}
	k.Define(d)
	return k
}
