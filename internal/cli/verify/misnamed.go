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

// misnamed returns an error for a rule that has the name of a kind, such as "pod" or "Pods", in place of a resource.
// The API server accepts such a rule, but it matches nothing.
func misnamed(hooks []target, g *given) error {
	known := resourcesOf(g)
	for _, h := range hooks {
		for i, rule := range h.Rules {
			for _, named := range rule.Resources {
				name, sub, _ := strings.Cut(named, "/")
				for _, r := range known {
					if (slices.Contains(rule.APIGroups, r.Group) || slices.Contains(rule.APIGroups, "*")) && r.isMeantBy(name) {
						right := strings.TrimSuffix(r.Resource+"/"+sub, "/")
						return problem.New("%s: %s: rules[%d] has %q, which is not the name of a resource", h.where, h.Name, i, named).
							Hint("resources: [%s]", right)
					}
				}
			}
		}
	}
	return nil
}

// A resourceName is the name of a resource and the singular that users mistake for it.
type resourceName struct {
	schema.GroupResource
	singular string
}

// isMeantBy reports whether name is the singular of the resource, or its name in another case.
func (n resourceName) isMeantBy(name string) bool {
	return name != n.Resource && (strings.EqualFold(name, n.Resource) || strings.EqualFold(name, n.singular))
}

// resourcesOf returns the resources of Kubernetes and of the custom resource definitions, sorted.
func resourcesOf(g *given) (all []resourceName) {
	for gvk := range scheme.Scheme.AllKnownTypes() {
		many, one := meta.UnsafeGuessKindToResource(gvk)
		all = append(all, resourceName{many.GroupResource(), one.Resource})
	}
	for _, d := range g.CRDs {
		s := d.Value.Spec
		all = append(all, resourceName{schema.GroupResource{Group: s.Group, Resource: s.Names.Plural}, strings.ToLower(s.Names.Kind)})
	}
	slices.SortFunc(all, func(a, b resourceName) int { return strings.Compare(a.String(), b.String()) })
	return all
}
