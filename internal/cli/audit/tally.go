// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"hash/maphash"
	"slices"
	"time"
)

// These limits bound the memory for logs of any length.
const (
	mostHooks    = 2000
	mostNotes    = 2000
	mostWithheld = 5000
	mostFound    = 1000
	mostObjects  = 20_000
	mostFights   = 20_000
	mostSeen     = 1 << 20
)

// A tally collects the facts of a log in bounded memory. The order of requests does not matter until a table is full.
type tally struct {
	options Options

	requests, silent, duplicates, outside int
	withCalls, withoutPatches             int // requests with mutating calls, and how many of them lack patches
	unread                                int // annotations of the API server that could not be decoded
	collections                           int // requests with mutating calls that delete many objects
	first, last                           time.Time
	levels                                map[string]int

	hooks      *table[hook, Mutating]
	validating *table[string, Validating]
	policies   *table[policyKey, PolicyCount]
	notes      *table[noteKey, int]
	withheld   *table[withheldKey, withheldRow]
	latency    Latency

	found   *table[foundKey, findingRow]
	objects *table[objectKey, objectRow]
	fights  *table[fightKey, findingRow]

	others                    others // webhooks that the report does not cover
	outsideFirst, outsideLast time.Time

	seen *seen
	seed maphash.Seed
}

type noteKey struct{ name, key string }

// add counts a request that spent d in webhooks.
func (l *LatencyOf) add(d time.Duration) {
	if d > 0 {
		l.Requests++
		l.LongestMilliseconds = max(l.LongestMilliseconds, d.Milliseconds())
	}
}

func newTally(o Options) *tally {
	return &tally{
		options:    o,
		levels:     map[string]int{},
		hooks:      newTable[hook](mostHooks, func(r *Mutating) int { return r.Calls }),
		validating: newTable[string](mostHooks, func(r *Validating) int { return r.FailedOpen + r.Denied + r.Failed + r.NoDryRun }),
		policies:   newTable[policyKey](mostHooks, func(c *PolicyCount) int { return c.Denied + c.Audited }),
		notes:      newTable[noteKey](mostNotes, func(n *int) int { return *n }),
		withheld:   newTable[withheldKey](mostWithheld, func(r *withheldRow) int { return r.count }),
		found:      newTable[foundKey](mostFound, func(f *findingRow) int { return f.count }),
		objects:    newTable[objectKey](mostObjects, func(r *objectRow) int { return 2*r.mutated + 1 }),
		fights:     newTable[fightKey](mostFights, func(f *findingRow) int { return f.count }),
		seen:       newSeen(mostSeen),
		seed:       maphash.MakeSeed(),
	}
}

// add counts an event if it is the last one of its request and was not counted before.
func (t *tally) add(r *raw) {
	if !r.finished() {
		return
	}
	if !t.options.within(r.time()) {
		t.outside++
		extend(&t.outsideFirst, &t.outsideLast, r.time())
		return
	}
	if r.silent() {
		t.countSilent(r)
		return
	}
	q := r.request()
	policies := q.onlyPolicies()
	if q.silent() && q.unread == 0 && !policies {
		t.countSilent(r)
		return
	}
	if t.seen.before(t.key(r)) {
		t.duplicates++
		return
	}
	if policies {
		t.countSilent(r)
		t.countPolicies(q)
		return
	}
	t.requests++
	extend(&t.first, &t.last, q.time)
	t.levels[q.level]++
	t.unread += q.unread
	t.count(q)
	t.judgeWithheld(q)
	if !t.options.Withheld {
		t.judge(q)
	}
}

// key identifies a request. The audit ID is not enough: clients may choose it, and an aggregated API server logs the
// same request under the same ID.
func (t *tally) key(r *raw) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, m := range []int{inAuditID, inStage, inReceived, inRequestURI, inVerb} {
		h.Write(r.member[m])
		h.WriteByte(0)
	}
	return h.Sum64()
}

// countSilent counts a request without webhooks.
func (t *tally) countSilent(r *raw) {
	t.requests++
	t.silent++
	extend(&t.first, &t.last, r.time())
}

// extend widens the range from first to last so that it includes at.
func extend(first, last *time.Time, at time.Time) {
	if at.IsZero() {
		return
	}
	if first.IsZero() || at.Before(*first) {
		*first = at
	}
	if at.After(*last) {
		*last = at
	}
}

// count adds a request to the rows of its webhooks.
func (t *tally) count(q *request) {
	for _, c := range q.calls {
		t.countCall(c)
	}
	if len(q.calls) > 0 {
		t.withCalls++
		if q.level == "Metadata" {
			t.withoutPatches++
		}
		if q.verb == "deletecollection" {
			t.collections++
		}
	}
	if len(q.calls) == 1 && q.mutating > 0 && t.options.wants(q.calls[0].hook) {
		row, _ := t.hooks.row(q.calls[0].hook)
		row.SlowestMilliseconds = max(row.SlowestMilliseconds, q.mutating.Milliseconds())
	}
	for _, name := range q.openValidating {
		if t.options.wants(hook{name: name}) {
			row, _ := t.validating.row(name)
			row.FailedOpen++
		} else {
			t.others.add(name)
		}
	}
	for _, n := range q.own {
		if t.options.wants(hook{name: n.about}) {
			times, _ := t.notes.row(noteKey{n.about, n.key})
			*times++
		}
	}
	t.countRejection(q.rejected())
	t.countPolicies(q)
	if len(t.options.Webhooks) == 0 || slices.ContainsFunc(q.calls, func(c *call) bool { return t.options.wants(c.hook) }) {
		t.latency.Mutating.add(q.mutating)
	}
	if len(t.options.Webhooks) == 0 {
		t.latency.Validating.add(q.validating)
	}
}

func (t *tally) countCall(c *call) {
	if !t.options.wants(c.hook) {
		t.others.add(c.hook.name)
		return
	}
	row, _ := t.hooks.row(c.hook)
	row.Calls++
	if c.mutated {
		row.Mutated++
	}
	if c.round > 0 {
		row.Reinvoked++
		if c.mutated {
			row.MutatedInRound1++
		}
	}
	if c.patched {
		row.Patches++
		row.Operations += len(c.patch)
	}
	if c.failedOpen {
		row.FailedOpen++
	}
}

func (t *tally) countRejection(r rejection) {
	if r.kind == "" {
		return
	}
	var denied, failed, noDryRun *int
	if r.by != nil {
		if !t.options.wants(r.by.hook) {
			return
		}
		row, _ := t.hooks.row(r.by.hook)
		denied, failed, noDryRun = &row.Denied, &row.Failed, &row.NoDryRun
	} else {
		if !t.options.wants(hook{name: r.name}) {
			t.others.add(r.name)
			return
		}
		row, _ := t.validating.row(r.name)
		denied, failed, noDryRun = &row.Denied, &row.Failed, &row.NoDryRun
	}
	switch r.kind {
	case "denied":
		*denied++
	case "failed":
		*failed++
	case "no dry run":
		*noDryRun++
	}
}
