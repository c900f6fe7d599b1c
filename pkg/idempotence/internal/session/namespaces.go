// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// Namespaces has the namespaces of a run and the namespaceSelectors of its webhooks.
type Namespaces struct {
	Default   string // namespace of objects that do not name one
	known     map[string]labels.Set
	notes     map[string][]string // values of the annotations of the declared namespaces
	selectors map[*Webhook]labels.Selector
	wanted    labels.Set // labels of a namespace that is not declared
}

// NewNamespaces returns the namespaces of a run. Any namespace that is not declared gets labels that match
// the namespaceSelectors of the webhooks.
func NewNamespaces(webhooks []*Webhook, given []*corev1.Namespace) (*Namespaces, error) {
	n := &Namespaces{known: map[string]labels.Set{}, notes: map[string][]string{}, selectors: map[*Webhook]labels.Selector{}, wanted: labels.Set{}}
	for _, w := range webhooks {
		selector, err := objectSelector(w.NamespaceSelector)
		if err != nil {
			return nil, fmt.Errorf("webhook %q: namespaceSelector: %w", w.Name, err)
		}
		n.selectors[w] = selector
		n.satisfy(selector)
	}
	for _, ns := range given {
		n.notes[ns.Name] = slices.Sorted(maps.Values(ns.Annotations))
		n.known[ns.Name] = labels.Merge(ns.Labels, labels.Set{corev1.LabelMetadataName: ns.Name})
	}
	for _, ns := range given {
		if n.Default == "" && n.selected(ns.Name) {
			n.Default = ns.Name
		}
	}
	switch {
	case n.Default != "":
	case len(given) > 0:
		n.Default = given[0].Name
	default:
		n.Default = n.invented()
	}
	return n, nil
}

// otherNamespace is the namespace of copied objects if no namespaces are declared.
const otherNamespace = "copies"

// Other returns a namespace for a copy of an object. The namespaceSelectors of all webhooks match it. Other returns ""
// if no such namespace is known.
func (n *Namespaces) Other() string {
	for _, name := range n.Names() {
		if name != n.Default && n.selected(name) {
			return name
		}
	}
	for _, selector := range n.selectors {
		if !selector.Empty() {
			return ""
		}
	}
	if len(n.known) > 0 {
		return ""
	}
	return otherNamespace
}

// Annotations returns the values of the annotations of a declared namespace.
func (n *Namespaces) Annotations(name string) []string { return n.notes[name] }

// Names returns the sorted names of the declared namespaces.
func (n *Namespaces) Names() []string { return slices.Sorted(maps.Keys(n.known)) }

// satisfy records the labels that a selector requires. Namespaces that are not declared get these labels.
func (n *Namespaces) satisfy(selector labels.Selector) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		_, has := n.wanted[r.Key()]
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			n.wanted[r.Key()] = r.ValuesUnsorted()[0]
		case selection.Exists:
			if !has {
				n.wanted[r.Key()] = "true"
			}
		}
	}
}

// invented returns a name for a namespace that is not declared. If a selector requires a certain name, it returns
// that name.
func (n *Namespaces) invented() string {
	if name := n.wanted[corev1.LabelMetadataName]; name != "" && name != "true" {
		return name
	}
	for i := range 100 {
		name := objects.TestNamespace
		if i > 0 {
			name = fmt.Sprintf("%s-%d", objects.TestNamespace, i)
		}
		if n.selected(name) {
			return name
		}
	}
	return objects.TestNamespace
}

// selected reports whether the namespaceSelectors of all webhooks match a namespace.
func (n *Namespaces) selected(name string) bool {
	for _, selector := range n.selectors {
		if !selector.Matches(n.labelsOf(name)) {
			return false
		}
	}
	return true
}

func (n *Namespaces) labelsOf(name string) labels.Set {
	if known, ok := n.known[name]; ok {
		return known
	}
	return labels.Merge(n.wanted, labels.Set{corev1.LabelMetadataName: name})
}

// selects reports whether the namespaceSelector of a webhook matches the namespace of a request
// (predicates/namespace.Matcher). It always matches a cluster-scoped object. For a Namespace, the selector is matched
// with its own labels.
func (n *Namespaces) selects(w *Webhook, k *objects.Kind, q *Query) bool {
	selector, ok := n.selectors[w]
	if !ok { // a rival
		selector, _ = objectSelector(w.NamespaceSelector)
		n.selectors[w] = selector
	}
	o := q.Object
	if o == nil {
		o = q.Old
	}
	switch {
	case selector == nil || selector.Empty():
		return true
	case k.IsNamespace():
		return selector.Matches(labelsOf(o))
	case !k.Namespaced:
		return true
	}
	return selector.Matches(n.labelsOf(k.NamespaceOf(o)))
}
