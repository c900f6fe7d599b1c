// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Finding is a case in which a law fails.
type Finding struct {
	Case     Case
	Mode     Mode
	Advice   bool               // the behaviour may be intended
	OnCopies bool               // advice, because only a copy of an object reaches the webhook a second time
	Summary  string             // what happened, in words
	Outcomes []*session.Outcome // the requests that show the failure
	Refusals []string           // the API server's reasons to reject the result, in the form of session.FieldOf
}

// Finding returns a finding about a case, with the kind and the operation of the trial.
func (t *Trial) Finding(c *Case, mode Mode, summary string, outcomes ...*session.Outcome) *Finding {
	found := *c
	found.Kind, found.Operation = t.Kind.GroupVersionKind, t.Operation
	return &Finding{Case: found, Mode: mode, Summary: summary, Outcomes: outcomes}
}

// Differences returns the changes between the two objects of a finding that should be equal. It returns false if the
// finding does not compare two objects.
func (t *Trial) Differences(f *Finding) ([]tree.Change, bool) {
	from, to := f.compared()
	if from == nil || to == nil {
		return nil, false
	}
	return slices.DeleteFunc(t.differences(f.Case.Law, from, to), func(c tree.Change) bool {
		if f.Case.Law == L6 && isTouched(c) {
			return true
		}
		switch f.Mode {
		case TreatedUnlike, Order, AddsZero:
			return c.Kind == tree.Moved
		case Removes, Overwrites, OverwritesZero, RemovesSample, Incomplete, LostByReplace, CannotReplace, NeedsUpdate:
			return c.Kind == tree.Moved || c.Kind == tree.Added
		case Regenerates, ChangesWithName:
			return c.Kind != tree.Replaced
		case ReadsNamespace:
			return c.Path.String() == "metadata.namespace"
		}
		return false
	}), true
}

// isTouched reports whether a change is only the annotation with which the harness updates an object.
func isTouched(c tree.Change) bool {
	last := edits.TouchedAnnotation[len(edits.TouchedAnnotation)-1].Name
	fields, isMap := c.Old.(map[string]any)
	return slices.Equal(c.Path, edits.TouchedAnnotation) || isMap && len(fields) == 1 && fields[last] != nil && edits.TouchedAnnotation.HasPrefix(c.Path)
}

// compared returns the two objects that should be equal, or nil if the finding does not compare two objects.
func (f *Finding) compared() (from, to *objects.Object) {
	o := f.Outcomes
	n := len(o)
	switch f.Mode {
	case Grows, Changes, NeverSettles, NotTheSame:
		if n < 2 {
			return nil, nil
		}
		return o[n-2].After, o[n-1].After
	case ReadsStatus, IgnoresChange, Varies, Differs, Incomplete, LostByReplace, Regenerates, CannotReplace, NeedsUpdate, ChangesWithName, ReadsNamespace:
		return o[0].After, o[1].After
	case TreatedUnlike:
		return o[1].After, o[n-1].After
	case Order, AddsZero:
		if n == 4 {
			return o[1].After, o[3].After
		}
	case Removes, Overwrites, OverwritesZero, RemovesSample:
		sent := o[n-1].Calls[0].Exchange.Object
		if doc, err := tree.Decode(sent); err == nil {
			return &objects.Object{Raw: sent, Doc: doc}, o[n-1].After
		}
	}
	return nil, nil
}

// changeMode returns the failure mode of a changed result: Grows if a value was added, or else Changes.
func changeMode(changes []tree.Change) Mode {
	for _, c := range changes {
		if c.Kind == tree.Added {
			return Grows
		}
	}
	return Changes
}

// summary describes the first few changes.
func summary(changes []tree.Change) string {
	var texts []string
	for i, c := range changes {
		if i == 3 {
			texts = append(texts, fmt.Sprintf("and %d more", len(changes)-3))
			break
		}
		switch text := fmt.Sprintf("%s is %s", c.Path, c.Kind); c.Kind {
		case tree.Replaced:
			texts = append(texts, fmt.Sprintf("%s: %s → %s", c.Path, brief(c.Old), brief(c.New)))
		default:
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}

// brief returns a value as text, clipped for a sentence.
func brief(v any) string {
	text := string(tree.Encode(v))
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// described returns the decision of a request in words.
func described(o *session.Outcome) string {
	switch {
	case o.Fault != "":
		return "a failure (" + textutil.FirstLine(o.Fault) + ")"
	case o.Allowed:
		return "allowed"
	}
	return "denied (" + o.Message + ")"
}
