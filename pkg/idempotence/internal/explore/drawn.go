// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// SetAside reports whether the other laws can be checked in spite of a finding about L3: the webhook keeps its random
// values in later calls, or they are all single values at known paths. If so, SetAside adds exceptions for them, and
// mentions this in the summary of the finding. The finding becomes advice if the webhook generates the values.
func (r *Run) SetAside(f *laws.Finding) bool {
	if f.Mode != laws.Varies {
		return false
	}
	changes, ok := r.Differences(f)
	x, valid := r.Valid(f.Case.Object)
	if !ok || !valid || len(changes) == 0 {
		return false
	}
	values, single := drawnValues(f.Outcomes[0].After.Doc, f.Outcomes[1].After.Doc)
	paths, law, kept := patternsOf(values), laws.L3, "Later calls keep the value, so the"
	if !single {
		paths = laws.Patterns(changes)
	}
	switch keeps := r.keeps(x, f.Outcomes[0].After, changes); {
	case keeps:
		f.Advice = single && r.generates(f, x, values, slices.ContainsFunc(changes, isTime))
	case !single || !onlyReplaced(changes):
		return false
	default:
		law, kept = "", "The"
	}
	for i, path := range paths {
		if all := forAllElements(path); law == laws.L3 && slices.ContainsFunc(r.Exceptions, func(e laws.Exception) bool { return e.Law == law && forAllElements(e.Path) == all }) {
			paths[i] = all // the same value was drawn, and kept, in another element
		}
		r.Exceptions = append(r.Exceptions, laws.Exception{Path: paths[i], Law: law})
	}
	f.Summary += ". " + kept + " other laws are checked without " + strings.Join(paths, ", ")
	return true
}

// setAsideKept sets aside the values of a finding about L3 that is not reported, if later calls keep them.
func (r *Run) setAsideKept(f *laws.Finding) {
	before := len(r.Exceptions)
	r.SetAside(f)
	r.Exceptions = slices.DeleteFunc(r.Exceptions, func(e laws.Exception) bool { return e.Law == "" && !slices.Contains(r.Exceptions[:before], e) })
}

// setAsideToo sets aside the values of a finding about L3 that repeats an earlier one. Its values may be in an element
// for which no exception exists yet. Otherwise, other laws would fail because of them.
func (r *Run) setAsideToo(f *laws.Finding) {
	if f.Case.Law == laws.L3 && !r.Impure && r.repeated < maxFindings {
		r.repeated++
		r.Impure = !r.SetAside(f) && !f.Advice
	}
}

// elementKey matches the key of an element in the pattern of a path, such as [name=app].
var elementKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[[^\]=]*=[^\]]*\]`) })

// forAllElements returns a pattern that has "*" in place of each key of an element.
func forAllElements(pattern string) string { return elementKey().ReplaceAllString(pattern, "[*]") }

// onlyReplaced reports whether changes only replace values.
func onlyReplaced(changes []tree.Change) bool {
	return !slices.ContainsFunc(changes, func(c tree.Change) bool { return c.Kind != tree.Replaced })
}

// callsToKeep is the number of calls after which a random value counts as kept. A value that depends on the order of a
// Go map is often the same in a few calls.
const callsToKeep = 100

// keeps reports whether further calls, on any instance, do not change the random values that the first call has set.
// earlier is the result of an earlier call for x. Later calls must keep its values, too: they may depend on the time.
func (r *Run) keeps(x, earlier *objects.Object, drawn []tree.Change) bool {
	if slices.ContainsFunc(drawn, func(c tree.Change) bool { return c.Kind == tree.Moved }) {
		return false
	}
	if again := r.Request(r.NewInstances(), session.Query{Object: earlier}); !again.OK() || !tree.Equal(again.After.Doc, earlier.Doc) {
		return false
	}
	out := r.Request(r.NewInstances(), session.Query{Object: x})
	for range callsToKeep {
		if !out.OK() {
			return false
		}
		again := r.Request(r.NewInstances(), session.Query{Object: out.After})
		if !again.OK() || !tree.Equal(again.After.Doc, out.After.Doc) {
			return false
		}
		out = again
	}
	return true
}

const (
	// mostVariedFindings is the maximum number of findings whose requests are repeated.
	mostVariedFindings = 60
	// mostWaited is the maximum number of findings whose requests are repeated in the next second.
	mostWaited = 8
)

// WithoutDrawn checks L3 on the objects of a finding about another law that compares two results. It sets the random
// values of the webhook aside, checks the case again, and returns the new finding. It returns nil if the random values
// were the only cause.
//
// The check reports the random values under L3, unless quietly is set or the run does not check L3.
func (r *Run) WithoutDrawn(f *laws.Finding, quietly bool) *laws.Finding {
	changes, ok := r.Differences(f)
	if !ok || len(changes) == 0 || f.Case.Law == laws.L3 || r.Impure || r.varied >= mostVariedFindings {
		return f
	}
	r.varied++
	quietly = quietly || slices.Contains(r.Without, laws.L3)
	known := func() int { return r.Tally.findings(laws.L3) + len(r.Exceptions) } // advice beyond the limit adds exceptions only
	before := known()
	for _, variant := range []laws.Variant{"", laws.NextSecond} {
		if variant == laws.NextSecond && (!r.uses(LaterCalls) || !slices.ContainsFunc(changes, isTime) || r.waited >= mostWaited) {
			break
		}
		if variant == laws.NextSecond {
			r.waited++
		}
		for _, out := range f.Outcomes[max(0, len(f.Outcomes)-2):] {
			if len(out.Calls) == 0 || known() > before {
				continue
			}
			if sent, err := tree.Decode(out.Calls[0].Exchange.Object); err == nil {
				c := &laws.Case{Law: laws.L3, Object: sent, Old: f.Case.Old, Variant: variant}
				if !quietly {
					r.try(c)
				} else if drawn, _ := r.Check(c); drawn != nil {
					r.setAsideKept(drawn)
				}
			}
		}
	}
	if known() == before {
		return f
	}
	again, _ := r.Check(&f.Case)
	return r.Judge(again)
}

// isTime reports whether a change is about a text or number of which only digits differ, as in two times.
func isTime(c tree.Change) bool {
	if c.Kind != tree.Replaced {
		return false
	}
	a, b := plain(c.Old), plain(c.New)
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && (a[i] < '0' || a[i] > '9' || b[i] < '0' || b[i] > '9') {
			return false
		}
	}
	return a != ""
}
