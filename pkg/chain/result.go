// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"slices"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
)

// newResult returns the result of a run that ended with err, which may be nil.
func newResult(e *engine, c *caller, err error) (*Result, error) {
	result := &Result{Annotations: c.recording.annotations, Passes: 1}
	if err != nil {
		result.Rejection = rejectionOf(err, e.realHosts)
	} else if c.subject.Object != nil {
		var encoding error
		if result.Object, encoding = e.objects.Encode(c.subject.Object, c.subject.Kind); encoding != nil {
			return nil, encoding
		}
	}
	ranks := ranksOf(c.selector.list)
	called := map[*inprocess.Hook]bool{}
	for _, call := range c.recording.calls {
		if rank, ok := ranks[call.hook]; ok {
			call.Index = rank
		}
		called[call.hook] = true
	}
	judge(c.recording.calls, c.recording.failedOpen, err, e.realHosts)
	result.Evaluations = c.policies.list()
	result.Calls = ordered(c.recording.calls)
	result.Webhooks = selections(c.selector.list, called)
	result.Limits = limitsOf(e, c)
	return result, nil
}

// ranksOf returns the index of each validating webhook among those that match.
func ranksOf(list []selected) map[*inprocess.Hook]int {
	ranks := map[*inprocess.Hook]int{}
	for _, s := range list {
		if !s.hook.Mutating && s.decision == Matches {
			ranks[s.hook] = len(ranks)
		}
	}
	return ranks
}

// ordered returns the calls in the order in which they began. Validating webhooks are called concurrently, so their calls
// are in the order of the configurations.
func ordered(all []*call) []Call {
	// A DELETE in two steps has mutating and validating calls in each step.
	for from := 0; from < len(all); from++ {
		to := from
		for to < len(all) && !all[to].Mutating && all[to].step == all[from].step {
			to++
		}
		slices.SortStableFunc(all[from:to], func(a, b *call) int { return cmp.Compare(a.hook.Index, b.hook.Index) })
		from = max(from, to-1)
	}
	var calls []Call
	for _, c := range all {
		calls = append(calls, c.Call)
	}
	return calls
}

// selections returns the value of [Result.Webhooks].
func selections(list []selected, called map[*inprocess.Hook]bool) []Selection {
	all := make([]Selection, 0, len(list))
	for _, s := range list {
		one := Selection{Configuration: s.hook.Configuration, Webhook: s.hook.GetName(), Mutating: s.hook.Mutating,
			Index: s.hook.Index, Called: called[s.hook], Reason: s.decision, Detail: s.detail}
		if s.decision == Matches && !one.Called {
			one.Reason, one.Detail = ByRejection, rejectedBefore
		}
		all = append(all, one)
	}
	return all
}
