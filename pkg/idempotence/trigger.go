// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/trigger"
)

// A Trigger describes which objects of a kind the webhook changes.
type Trigger struct {
	Kind string `json:"kind"`
	// Sample is the number of the sample in Options.Samples of this kind, counted from 1. It is 0 if the harness
	// found the trigger in an object that it generated.
	Sample int `json:"sample,omitempty"`
	// Conditions lists the conditions that an object must meet, all of them, so that the webhook changes it. It is
	// empty if no condition was found.
	Conditions []Condition `json:"conditions"`
	// Partial is set if there may be more conditions, because the harness reached its limit of calls.
	Partial bool `json:"partial,omitempty"`
}

// A Condition is one part of a [Trigger].
type Condition struct {
	Path string        `json:"path"`
	Need ConditionNeed `json:"need"`
	// Value is the value in the object. Others are other values with which the webhook also changes the object.
	Value  json.RawMessage   `json:"value,omitempty"`
	Others []json.RawMessage `json:"others,omitempty"`
	// Text is the condition in words.
	Text string `json:"text"`
}

// A ConditionNeed says what a [Condition] requires of a part of the object.
type ConditionNeed string

// The values of ConditionNeed.
const (
	// NeedsPart means that the part must be set, to this value or another.
	NeedsPart ConditionNeed = "set"
	// NeedsValue means that the part must have this value or one of the others.
	NeedsValue ConditionNeed = "value"
	// NeedsNone means that the part must not be set.
	NeedsNone ConditionNeed = "absent"
)

// String returns the trigger in words.
func (t Trigger) String() string {
	about := "objects of kind " + t.Kind
	if t.Sample > 0 {
		about = fmt.Sprintf("sample %d (%s)", t.Sample, t.Kind)
	}
	if len(t.Conditions) == 0 {
		return "the webhook acts on " + about + ", and the harness found no condition for that"
	}
	var texts []string
	for _, c := range t.Conditions {
		texts = append(texts, c.Text)
	}
	text := "the webhook acts on " + about + " when " + strings.Join(texts, " and ")
	if t.Partial {
		text += " (there may be more conditions)"
	}
	return text
}

// triggersOf converts the triggers that a run found.
func triggersOf(kind string, found []explore.Trigger) (all []Trigger) {
	for _, f := range found {
		t := Trigger{Kind: kind, Sample: f.Sample, Partial: !f.Complete, Conditions: []Condition{}}
		for _, p := range f.Parts {
			c := Condition{Path: p.Path.String(), Need: ConditionNeed(p.Need), Text: p.String()}
			if p.Need != trigger.Absent {
				c.Value = tree.Encode(p.Value)
			}
			for _, other := range p.Others {
				c.Others = append(c.Others, tree.Encode(other))
			}
			t.Conditions = append(t.Conditions, c)
		}
		all = append(all, t)
	}
	return all
}

// searchedText returns the text of a Reason with the code ReasonTriggerSearched. It continues a sentence on objects
// that the webhook does not change.
func (r Reason) searchedText(hint string) string {
	text := fmt.Sprintf("%s with labels, annotations and names that may switch it on did not, either", textutil.Count(r.Of, "object"))
	if len(r.Names) > 0 {
		text += fmt.Sprintf(" (%s, such as %s)", textutil.Count(r.Count, "key"), strings.Join(r.Names, ", "))
	}
	return text + ": " + hint
}

// writeTriggers writes the triggers. It omits those without a condition, which tell the user nothing.
func (p *printer) writeTriggers(r *Report) {
	for _, t := range r.Triggers {
		if len(t.Conditions) > 0 {
			p.hanging("trigger: ", t.String())
		}
	}
}

// searched returns a reason that describes the search for a trigger. It returns nil if there was no search, or if it
// found one.
func (r *run) searched() *Reason {
	s := r.Searched
	if s == nil || len(r.Triggers) > 0 {
		return nil
	}
	return &Reason{Code: ReasonTriggerSearched, Of: s.Objects, Count: len(s.Keys), Names: s.Keys[:min(len(s.Keys), mostKeysNamed)]}
}

// mostKeysNamed is the maximum number of keys that a report names among those without effect.
const mostKeysNamed = 4
