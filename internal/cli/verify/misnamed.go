// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/internal/problem"
)

// misnamed finds a rule that names a kind, such as "pod" or "Pods", where resources are called otherwise, or
// returns nil: such a rule matches nothing, and the API server tells nobody.
func misnamed(hooks []hook, g *given) error {
	known := resourcesOf(g)
	for _, h := range hooks {
		for i, rule := range h.Rules {
			for _, named := range rule.Resources {
				name, sub, _ := strings.Cut(named, "/")
				for _, r := range known {
					if (slices.Contains(rule.APIGroups, r.Group) || slices.Contains(rule.APIGroups, "*")) && r.isMeantBy(name) {
						right := strings.TrimSuffix(r.Resource+"/"+sub, "/")
						return problem.New("%s: %s: rules[%d] names %q, which no resource is called", h.where, h.Name, i, named).
							Hint("resources: [%s]", right)
					}
				}
			}
		}
	}
	return nil
}

// A plural is the name of a resource, and what others may call it.
type plural struct {
	schema.GroupResource
	singular string
}

// isMeantBy reports whether a name is not that of the resource, but meant to be.
func (p plural) isMeantBy(name string) bool {
	return name != p.Resource && (strings.EqualFold(name, p.Resource) || strings.EqualFold(name, p.singular))
}

// resourcesOf are those of Kubernetes and of the definitions, in order.
func resourcesOf(g *given) (all []plural) {
	for gvk := range scheme.Scheme.AllKnownTypes() {
		many, one := meta.UnsafeGuessKindToResource(gvk)
		all = append(all, plural{many.GroupResource(), one.Resource})
	}
	for _, d := range g.CRDs {
		s := d.Value.Spec
		all = append(all, plural{schema.GroupResource{Group: s.Group, Resource: s.Names.Plural}, strings.ToLower(s.Names.Kind)})
	}
	slices.SortFunc(all, func(a, b plural) int { return strings.Compare(a.String(), b.String()) })
	return all
}
