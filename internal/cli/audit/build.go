// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/patch"
)

// report returns the report on all counted requests.
func (t *tally) report() *Report {
	r := &Report{
		Requests: t.requests, WithWebhooks: t.requests - t.silent, Duplicates: t.duplicates, OutsideTime: t.outside,
		Levels: t.levels, Mutating: []Mutating{}, Validating: []Validating{}, Policies: []PolicyCount{}, AuditAnnotations: []Annotation{},
		Withheld: t.withheldRows(), Findings: []Finding{}, Notes: []string{}, OnlyWithheld: t.options.Withheld, Top: t.options.Top,
	}
	if !t.first.IsZero() {
		r.First, r.Last = &t.first, &t.last
	}
	if r.OnlyWithheld {
		r.Notes = append(r.Notes, t.bounds()...)
		return r
	}
	r.Mutating, r.Validating, r.AuditAnnotations, r.Latency = t.mutatingRows(), t.validatingRows(), t.annotationRows(), t.latency
	r.Policies = t.policyRows()
	t.settleFights()
	r.Findings = append(t.findings(), t.repeated()...)
	slices.SortFunc(r.Findings, compareFindings)
	r.Findings, r.Hidden = t.topOfEach(r.Findings)
	r.Notes = append(r.Notes, t.bounds()...)
	r.Notes = append(r.Notes, t.caveats(r.Mutating)...)
	return r
}

func (t *tally) mutatingRows() []Mutating {
	rows := []Mutating{}
	for h, row := range t.hooks.rows {
		_, both := t.validating.rows[h.name]
		row.Configuration, row.Webhook = h.configuration, h.name
		row.Unclear = both && row.Failed+row.NoDryRun+row.Denied > 0
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b Mutating) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Configuration, b.Configuration), cmp.Compare(a.Webhook, b.Webhook))
	})
	return rows
}

func (t *tally) validatingRows() []Validating {
	rows := []Validating{}
	for name, row := range t.validating.rows {
		row.Webhook = name
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b Validating) int {
		return cmp.Or(cmp.Compare(b.FailedOpen+b.Failed+b.NoDryRun+b.Denied, a.FailedOpen+a.Failed+a.NoDryRun+a.Denied), cmp.Compare(a.Webhook, b.Webhook))
	})
	return rows
}

func (t *tally) annotationRows() []Annotation {
	rows := []Annotation{}
	for k, n := range t.notes.rows {
		rows = append(rows, Annotation{k.name, k.key, *n})
	}
	slices.SortFunc(rows, func(a, b Annotation) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	return rows
}

// settleFights adds a ping-pong finding for two webhooks and a field if both overwrote the field of one object in more
// than one request.
func (t *tally) settleFights() {
	for k, f := range t.fights.rows {
		if f.count < 2 {
			continue
		}
		all, isNew := t.found.row(foundKey{rule: pingPong, a: k.a, b: k.b, detail: string(k.path)})
		if isNew {
			all.hooks = []hook{k.a, k.b}
		}
		all.merge(f)
	}
}

func (f *findingRow) merge(other *findingRow) {
	f.count += other.count
	f.examples = append(f.examples, other.examples...)
	slices.SortFunc(f.examples, compareExamples)
	f.examples = f.examples[:min(len(f.examples), mostExamples)]
}

func (t *tally) findings() []Finding {
	all := []Finding{}
	for k, f := range t.found.rows {
		rule, _ := ruleOf(k.rule)
		finding := Finding{
			Rule: k.rule, Severity: rule.severity, Title: rule.title, Fix: rule.fix, Detail: strings.TrimSpace(k.detail),
			Webhooks: webhooks(f.hooks), Requests: f.count, LongestMilliseconds: f.longest.Milliseconds(), Examples: f.examples,
		}
		if k.rule == failedOpen {
			finding.Rejected = f.rejected
		}
		finding.Summary = summary(k, f)
		all = append(all, finding)
	}
	return all
}

// repeated returns the findings about webhooks that changed the same object in many requests. Each webhook has at most
// one finding per rule, which lists all such objects.
func (t *tally) repeated() (all []Finding) {
	type group struct {
		rule string
		hook hook
	}
	objects, examples := map[group][]ChangedObject{}, map[group][]Example{}
	for k, row := range t.objects.rows {
		if rule, ok := row.again(t.options.Again); ok {
			g := group{rule, k.hook}
			objects[g] = append(objects[g], ChangedObject{Object: k.object.String(), Requests: row.calls, Mutated: row.mutated, SamePatch: row.most(), Users: row.users})
			examples[g] = append(examples[g], row.examples...)
		}
	}
	for g, list := range objects {
		slices.SortFunc(list, func(a, b ChangedObject) int {
			return cmp.Or(cmp.Compare(b.Mutated, a.Mutated), cmp.Compare(a.Object, b.Object))
		})
		slices.SortFunc(examples[g], compareExamples)
		rule, _ := ruleOf(g.rule)
		total := 0
		for _, o := range list {
			total += o.Mutated
		}
		all = append(all, Finding{
			Rule: g.rule, Severity: rule.severity, Title: rule.title, Fix: rule.fix, Webhooks: webhooks([]hook{g.hook}),
			Summary:  repeatedSummary(g.hook, list),
			Requests: total, Objects: list[:min(len(list), t.options.Top)], Examples: examples[g][:min(len(examples[g]), mostExamples)],
		})
	}
	return all
}

func repeatedSummary(h hook, objects []ChangedObject) string {
	first := objects[0]
	text := fmt.Sprintf("%s changed %s in %d of %d updates", h, first.Object, first.Mutated, first.Requests)
	switch {
	case first.SamePatch == first.Mutated:
		text += ", each time with the same patch"
	case first.SamePatch > 1:
		text += fmt.Sprintf(", %d times with the same patch", first.SamePatch)
	}
	if len(objects) > 1 {
		text += fmt.Sprintf(", and %s in the same way", textutil.Count(len(objects)-1, "other object"))
	}
	return text + "."
}

// topOfEach keeps the first options.Top findings of each rule. hidden is the number of findings that it drops.
func (t *tally) topOfEach(sorted []Finding) (kept []Finding, hidden int) {
	kept = []Finding{}
	count := map[string]int{}
	for _, f := range sorted {
		if count[f.Rule]++; count[f.Rule] <= t.options.Top {
			kept = append(kept, f)
		}
	}
	return kept, len(sorted) - len(kept)
}

func compareFindings(a, b Finding) int {
	_, x := ruleOf(a.Rule)
	_, y := ruleOf(b.Rule)
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(b.Requests, a.Requests), cmp.Compare(fmt.Sprint(a.Webhooks), fmt.Sprint(b.Webhooks)), cmp.Compare(a.Detail, b.Detail))
}

func webhooks(hooks []hook) []Webhook {
	all := []Webhook{}
	for _, h := range hooks {
		all = append(all, Webhook{h.configuration, h.name})
	}
	return all
}

// summary returns a sentence with the facts of a finding.
func summary(k foundKey, f *findingRow) string {
	n := textutil.Count(f.count, "request")
	switch k.rule {
	case failedClosed:
		return fmt.Sprintf("%s rejected because the call of the %s webhook %s failed.", were(n, f.count), k.detail, k.a)
	case failedOpen:
		return fmt.Sprintf("The call of the %s webhook %s failed in %s", k.detail, k.a, resultsOfIgnored(f))
	case noDryRun:
		return fmt.Sprintf("%s rejected: the %s webhook %s is not called in dry runs.", were(n, f.count), k.detail, k.a)
	case notIdempotent:
		return fmt.Sprintf("In %s, %s added the same element to %s in round 0 and in round 1.", n, k.a, field(k.detail))
	case pingPong:
		return fmt.Sprintf("In %s, %s and %s alternately wrote different values to %s.", n, k.a, k.b, field(k.detail))
	case patchRefused:
		return fmt.Sprintf("%s failed with an error of the patch library, directly after the call of %s.", n, k.a)
	case apiServerPanic:
		return fmt.Sprintf("The API server panicked in %s that called webhooks; the examples show the last recorded call.", n)
	case noOpReinvokes:
		return fmt.Sprintf("In %s, %s wrote values that the object already had, and webhooks were reinvoked. No other change of the object is known.", n, k.a)
	case noOp:
		return fmt.Sprintf("In %s, the patch of %s changed nothing.", n, k.a)
	case slowMutating:
		return fmt.Sprintf("%s waited %s for %s.", n, upTo(f), k.detail)
	case slowValidating:
		return fmt.Sprintf("%s waited %s for validating webhooks; the log does not name them.", n, upTo(f))
	case certificateRule:
		return fmt.Sprintf("In %s: %s.", n, k.detail)
	case secretInPatch:
		return fmt.Sprintf("In %s, a patch of %s contained %s.", n, k.a, k.detail)
	case bothRounds:
		return fmt.Sprintf("In %s, %s each changed the object in round 0 and in round 1.", n, strings.Join(strings.Fields(k.detail), " and "))
	}
	return ""
}

// resultsOfIgnored describes the results of requests in which a failing webhook was ignored.
func resultsOfIgnored(f *findingRow) string {
	n := textutil.Count(f.count, "request")
	switch {
	case f.rejected == 0:
		return n + ", which continued without it."
	case f.count == 1:
		return n + ", which was still rejected."
	case f.rejected == f.count:
		return n + ", all of which were still rejected."
	}
	return fmt.Sprintf("%s: %d continued without it, %s still rejected.", n, f.count-f.rejected, were(strconv.Itoa(f.rejected), f.rejected))
}

func field(pointer string) string { return patch.Pointer(pointer).FieldPath() }

func upTo(f *findingRow) string {
	if f.count == 1 {
		return fmt.Sprintf("%d ms", f.longest.Milliseconds())
	}
	return fmt.Sprintf("up to %d ms", f.longest.Milliseconds())
}

func were(subject string, n int) string {
	if n == 1 {
		return subject + " was"
	}
	return subject + " were"
}

// bounds returns a note for each table that had to drop rows. The counts of such a table may be too low.
func (t *tally) bounds() (notes []string) {
	for _, b := range []struct {
		evicted, most int
		what          string
	}{
		{t.hooks.evicted, t.hooks.max, "mutating webhooks"},
		{t.validating.evicted, t.validating.max, "validating webhooks"},
		{t.notes.evicted, t.notes.max, "audit annotations"},
		{t.withheld.evicted, t.withheld.max, "withheld decisions"},
		{t.found.evicted, t.found.max, "findings"},
		{t.objects.evicted, t.objects.max, "updated objects"},
		{t.fights.evicted, t.fights.max, "contested fields"},
	} {
		if b.evicted > 0 {
			notes = append(notes, fmt.Sprintf("the log has more %s than the limit of %d: those with the fewest requests were dropped, so rows may be missing and counts too low; select a part of the log with --since, --until or --webhook", b.what, b.most))
		}
	}
	if t.seen.forgot {
		notes = append(notes, fmt.Sprintf("duplicate events were recognized only among the last %d requests with webhooks; others may count twice", t.seen.max))
	}
	return notes
}

// caveats returns notes on facts that the log does not record.
func (t *tally) caveats(mutating []Mutating) (notes []string) {
	switch {
	case t.requests == t.silent:
		notes = append(notes, "the log records no webhook: at level Metadata and above, the API server records calls of mutating webhooks, but only denials and failures of validating webhooks")
	case t.withoutPatches > 0:
		notes = append(notes, fmt.Sprintf("%d of %s with mutating webhooks %s logged at level Metadata, without patches: for these, audit cannot find webhooks that revert each other's changes, add elements twice or change nothing",
			t.withoutPatches, textutil.Count(t.withCalls, "request"), map[bool]string{true: "was", false: "were"}[t.withoutPatches == 1]))
	}
	if t.unread > 0 {
		notes = append(notes, fmt.Sprintf("%s of the API server about calls and patches could not be decoded, so the report lacks their content", textutil.Count(t.unread, "annotation")))
	}
	if t.collections > 0 {
		notes = append(notes, fmt.Sprintf("%s deleted collections: the API server calls webhooks for each object, but the log has only one call of each webhook", textutil.Count(t.collections, "request")))
	}
	var unclear []string
	for _, row := range mutating {
		if row.Unclear {
			unclear = append(unclear, row.Webhook)
		}
	}
	slices.Sort(unclear)
	for _, name := range slices.Compact(unclear) {
		notes = append(notes, fmt.Sprintf("a mutating and a validating webhook have the name %s: the log does not always show which of them rejected a request", name))
	}
	return notes
}
