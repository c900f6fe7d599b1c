// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/source"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/trigger"
)

// messages has the hints in the answers of the webhook during the search for its trigger.
type messages struct{ hints trigger.Hints }

// writtenKey matches the keys of labels and annotations in the paths of a JSON Patch.
var writtenKey = regexp.MustCompile(`/(?:annotations|labels)/([a-z0-9.-]+)~1[A-Za-z0-9._-]+`)

// read adds the hints in the denial, the warnings and the patch of a result.
func (m *messages) read(out *session.Outcome) {
	m.hints.AddMessage(out.Message)
	for _, text := range out.Warnings {
		m.hints.AddMessage(text)
	}
	for _, found := range writtenKey.FindAllSubmatch(out.Patch, -1) {
		m.hints.AddDomain(string(found[1]))
	}
}

// hintsOf returns the hints for a trigger in the matchConditions, the answers, the source and the names of the
// webhooks.
func (r *Run) hintsOf() *trigger.Hints {
	h := &trigger.Hints{}
	for _, w := range r.Webhooks {
		for _, c := range w.MatchConditions {
			h.AddExpression(c.Expression)
		}
	}
	h.Merge(&r.messages.hints)
	for _, sample := range r.inputs.samples {
		addNotes(h, sample)
	}
	for _, w := range r.Webhooks {
		addSelector(h, w.ObjectSelector)
		addSelector(h, w.NamespaceSelector)
	}
	for _, w := range r.Webhooks {
		if w.InProcess {
			r.addSource(h, source.Of(w.NewHandler))
		}
	}
	for _, w := range r.Webhooks {
		h.AddName(w.Name)
		if s := w.ClientConfig.Service; s != nil {
			h.AddWords(s.Name)
			h.AddWords(s.Namespace)
			if s.Path != nil {
				h.AddWords(*s.Path)
			}
		}
		for _, text := range append(slices.Clone(w.URLs), ptr.Deref(w.ClientConfig.URL, "")) {
			if u, err := url.Parse(text); err == nil {
				h.AddWords(u.Path)
			}
		}
	}
	h.AddDomain(r.Kind.Group)
	group, _, _ := strings.Cut(r.Kind.Group, ".")
	h.AddWords(group)
	h.AddWords(r.Kind.Kind)
	return h
}

// addNotes adds the keys of the labels and annotations of a sample, and their domains.
func addNotes(h *trigger.Hints, sample any) {
	for _, key := range notesOf(sample) {
		if domain, _, ok := strings.Cut(key, "/"); ok {
			h.AddKey(key)
			h.AddDomain(domain)
		}
	}
}

// addSelector adds the keys of a selector, and their domains. Webhooks often read the same key, or one with the same
// domain, from Namespaces and from objects.
func addSelector(h *trigger.Hints, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	add := func(key string, values ...string) {
		for _, value := range values {
			h.AddPair(key, value)
		}
		h.AddKey(key)
		if domain, _, ok := strings.Cut(key, "/"); ok {
			h.AddDomain(domain)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		add(key, s.MatchLabels[key])
	}
	for _, e := range s.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			add(e.Key, e.Values...)
		case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpNotIn:
			add(e.Key)
		}
	}
}

func (r *Run) addSource(h *trigger.Hints, texts source.Texts) {
	for _, p := range texts.Pairs {
		h.AddPair(p.Key, p.Value)
	}
	for _, key := range texts.Keys {
		h.AddKey(key)
	}
	for _, text := range texts.All {
		h.AddText(strings.TrimSpace(text))
	}
}

// ownTexts returns the texts in the source of the webhooks that may be values, those of the handlers' own functions
// first.
func (r *Run) ownTexts() []string {
	if r.texts == nil {
		h := &trigger.Hints{}
		for _, w := range r.Webhooks {
			if w.InProcess {
				texts := source.Of(w.NewHandler)
				for _, key := range texts.Keys {
					h.AddKey(key)
				}
				for _, text := range texts.All {
					h.AddText(strings.TrimSpace(text))
				}
			}
		}
		r.texts, r.ownKeys = &h.Values, h.Keys
	}
	return *r.texts
}
