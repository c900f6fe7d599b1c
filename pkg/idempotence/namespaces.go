// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// places holds the namespaces of a run.
type places struct {
	own       string // of objects that name none
	known     map[string]labels.Set
	selectors map[*webhook]labels.Selector
	wanted    labels.Set // of a namespace of which nothing is known
}

func newPlaces(subject Subject, given []*corev1.Namespace) (*places, error) {
	p := &places{known: map[string]labels.Set{}, selectors: map[*webhook]labels.Selector{}, wanted: labels.Set{}}
	for _, w := range subject.webhooks {
		selector, err := objectSelector(w.NamespaceSelector)
		if err != nil {
			return nil, fmt.Errorf("webhook %q: namespaceSelector: %w", w.Name, err)
		}
		p.selectors[w] = selector
		p.satisfy(selector)
	}
	for _, n := range given {
		p.known[n.Name] = labels.Merge(n.Labels, labels.Set{corev1.LabelMetadataName: n.Name})
	}
	for _, n := range given {
		if p.own == "" && p.selected(n.Name) {
			p.own = n.Name
		}
	}
	switch {
	case p.own != "":
	case len(given) > 0:
		p.own = given[0].Name
	default:
		p.own = p.invented()
	}
	return p, nil
}

// satisfy adds the labels that a selector requires to a generated namespace.
func (p *places) satisfy(selector labels.Selector) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		_, has := p.wanted[r.Key()]
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			p.wanted[r.Key()] = r.ValuesUnsorted()[0]
		case selection.Exists:
			if !has {
				p.wanted[r.Key()] = "true"
			}
		}
	}
}

// invented returns a name for a generated namespace that the selectors match. They may require a certain name.
func (p *places) invented() string {
	if name := p.wanted[corev1.LabelMetadataName]; name != "" && name != "true" {
		return name
	}
	for i := range 100 {
		name := objects.TestNamespace
		if i > 0 {
			name = fmt.Sprintf("%s-%d", objects.TestNamespace, i)
		}
		if p.selected(name) {
			return name
		}
	}
	return objects.TestNamespace
}

// selected reports whether the namespaceSelectors of all webhooks match a namespace.
func (p *places) selected(name string) bool {
	for _, selector := range p.selectors {
		if !selector.Matches(p.labelsOf(name)) {
			return false
		}
	}
	return true
}

func (p *places) labelsOf(name string) labels.Set {
	if known, ok := p.known[name]; ok {
		return known
	}
	return labels.Merge(p.wanted, labels.Set{corev1.LabelMetadataName: name})
}

// selects reports whether the namespaceSelector matches an object's namespace (predicates/namespace.Matcher). It always matches a
// cluster-scoped object. For a Namespace, its own labels count.
func (p *places) selects(w *webhook, k *objects.Kind, q *query) bool {
	selector, ok := p.selectors[w]
	if !ok { // a rival
		selector, _ = objectSelector(w.NamespaceSelector)
		p.selectors[w] = selector
	}
	o := q.object
	if o == nil {
		o = q.old
	}
	switch {
	case selector == nil || selector.Empty():
		return true
	case k.IsNamespace():
		return selector.Matches(labelsOf(o))
	case !k.Namespaced:
		return true
	}
	return selector.Matches(p.labelsOf(k.NamespaceOf(o)))
}

func labelsOf(o *objects.Object) labels.Set {
	set := labels.Set{}
	value, _ := tree.Get(o.Doc, edits.Metadata.Member("labels"))
	found, _ := value.(map[string]any)
	for name, text := range found {
		set[name], _ = text.(string)
	}
	return set
}
