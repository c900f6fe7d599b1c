// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// find adds a request to the finding with key k. It does nothing if the report is limited to webhooks that the finding
// is not about.
func (t *tally) find(k foundKey, q *request, took time.Duration, hooks []hook, calls ...*call) {
	if len(hooks) > 0 && !slices.ContainsFunc(hooks, t.options.wants) {
		return
	}
	if len(hooks) == 0 && len(t.options.Webhooks) > 0 {
		return // the webhooks of the finding are unknown
	}
	f, isNew := t.found.row(k)
	if isNew {
		f.hooks = hooks
	}
	f.add(q, took, calls...)
}

// about adds a request to a finding that is about one webhook.
func (t *tally) about(rule string, h hook, detail string, q *request, calls ...*call) {
	t.find(foundKey{rule: rule, a: h, detail: detail}, q, 0, []hook{h}, calls...)
}

// judge adds a request to each finding that it belongs to.
func (t *tally) judge(q *request) {
	t.judgeFailures(q)
	t.judgeLatency(q)
	for _, n := range q.certificates {
		t.find(foundKey{rule: certificateRule, detail: n.about + " at " + n.key + ": " + clip(n.text, mostText)}, q, 0, nil)
	}
	t.judgePatches(q)
	t.judgeFights(q)
	t.judgeObject(q)
}

func (t *tally) judgeFailures(q *request) {
	open := map[hook][]*call{} // calls by webhook; a request counts once for each webhook
	for _, c := range q.calls {
		if c.failedOpen {
			open[c.hook] = append(open[c.hook], c)
		}
	}
	for h, calls := range open {
		t.about(failedOpen, h, "mutating", q, calls...)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(q.openValidating))) {
		t.about(failedOpen, hook{name: name}, "validating", q)
	}
	r := q.rejected()
	who, phase := hook{name: r.name}, "validating"
	var calls []*call
	if r.by != nil {
		who, phase, calls = r.by.hook, "mutating", []*call{r.by}
	}
	switch {
	case r.kind == "failed":
		t.about(failedClosed, who, phase, q, calls...)
	case r.kind == "no dry run":
		t.about(noDryRun, who, phase, q, calls...)
	case q.panicked:
		t.find(foundKey{rule: apiServerPanic}, q, 0, nil, q.calls...)
	case q.patchRefused():
		t.about(patchRefused, q.last().hook, "mutating", q, q.last())
	}
}

// patchRefused reports whether the request failed because the patch of the last webhook did not apply. The API server's
// message does not name the webhook. With code 500, only the patch of a webhook can cause this message.
func (q *request) patchRefused() bool {
	last := q.last()
	if last == nil || last.mutated || last.patched || last.failedOpen || q.code != 500 {
		return false
	}
	for _, begin := range refusals {
		if strings.HasPrefix(q.message, "Internal error occurred: "+begin) {
			return true
		}
	}
	return strings.HasPrefix(q.message, "Internal error occurred: admission webhook ") && strings.Contains(q.message, "attempted to modify the object")
}

// refusals are the prefixes of errors of the API server's patch library. The log has no other trace of such an error.
var refusals = []string{
	"jsonpatch ", "error in add for ", "error in remove for ", "error in move for ", "error in test for ", "error in copy for ", "add operation does not apply", "remove operation does not apply", "replace operation does not apply", "test operation does not apply",
	"move operation does not apply", "copy operation does not apply", "testing value ", "Unexpected kind: ",
}

func (t *tally) judgeLatency(q *request) {
	if q.mutating >= t.options.Slow && q.mutating > 0 {
		var hooks []hook
		for _, c := range q.calls {
			if !slices.Contains(hooks, c.hook) {
				hooks = append(hooks, c.hook)
			}
		}
		slices.SortFunc(hooks, compareHooks)
		var names []string
		for _, h := range hooks {
			names = append(names, h.String())
		}
		t.find(foundKey{rule: slowMutating, detail: strings.Join(names, ", ")}, q, q.mutating, hooks, q.calls...)
	}
	if q.validating >= t.options.Slow && q.validating > 0 {
		t.find(foundKey{rule: slowValidating}, q, q.validating, nil)
	}
}

func compareHooks(a, b hook) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.configuration, b.configuration))
}
