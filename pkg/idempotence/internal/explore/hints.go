// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"regexp"
	"strings"

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
		m.hints.AddWritten(string(found[1]) + "/")
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
	said := r.messages.hints
	for _, p := range said.Pairs {
		h.AddPair(p.Key, p.Value)
	}
	h.Keys, h.Values, h.Words = append(h.Keys, said.Keys...), append(h.Values, said.Values...), append(h.Words, said.Words...)
	for _, w := range r.Webhooks {
		if !w.InProcess {
			continue
		}
		texts := source.Of(w.NewHandler)
		for _, p := range texts.Pairs {
			h.AddPair(p.Key, p.Value)
		}
		for _, text := range texts.All {
			h.AddText(strings.TrimSpace(text))
		}
	}
	for _, w := range r.Webhooks {
		h.AddName(w.Name)
	}
	return h
}

// ownTexts returns the texts in the source of the webhooks that may be values, those of the handlers' own functions
// first.
func (r *Run) ownTexts() []string {
	if r.texts == nil {
		h := &trigger.Hints{}
		for _, w := range r.Webhooks {
			if w.InProcess {
				for _, text := range source.Of(w.NewHandler).All {
					h.AddText(strings.TrimSpace(text))
				}
			}
		}
		r.texts = &h.Values
	}
	return *r.texts
}
