// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"regexp"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/source"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/trigger"
)

// messages are what the webhook said while its trigger was looked for.
type messages struct{ hints trigger.Hints }

// writtenKey matches the keys of labels and annotations in the paths of a JSON Patch.
var writtenKey = regexp.MustCompile(`/(?:annotations|labels)/([a-z0-9.-]+)~1[A-Za-z0-9._-]+`)

// read takes names and values from a denial, from warnings and from a patch.
func (m *messages) read(out *session.Outcome) {
	m.hints.AddMessage(out.Message)
	for _, text := range out.Warnings {
		m.hints.AddMessage(text)
	}
	for _, found := range writtenKey.FindAllSubmatch(out.Patch, -1) {
		m.hints.AddWritten(string(found[1]) + "/")
	}
}

// hintsOf collects what may switch the webhooks on: from their registrations, their messages, their source and their
// names.
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
