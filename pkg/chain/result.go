// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/admitkit/admitkit/pkg/chain/internal/inmemory"
)

// withWarnings calls f with a context in which the API server's own code collects warnings, and
// returns those that a client is shown.
func withWarnings(ctx context.Context, f func(context.Context) error) ([]string, error) {
	var err error
	w := inmemory.NewResponse()
	filters.WithWarningRecorder(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		err = f(req.Context())
	})).ServeHTTP(w, (&http.Request{}).WithContext(ctx))
	var warnings []string
	shown, _ := utilnet.ParseWarningHeaders(w.Header()["Warning"])
	for _, s := range shown {
		warnings = append(warnings, s.Text)
	}
	return warnings, err
}

// result tells of the run, which ended with err.
func (r *run) result(err error) (*Result, error) {
	result := &Result{Annotations: r.annotations, Passes: 1}
	if err != nil {
		result.Rejection = r.rejection(err)
	} else if r.object != nil {
		var encoding error
		if result.Object, encoding = r.chain.objects.encode(r.object, r.kind); encoding != nil {
			return nil, encoding
		}
	}
	ranks := r.ranks()
	called := map[*hook]bool{}
	for _, c := range r.calls {
		if rank, ok := ranks[c.hook]; ok {
			c.Index = rank
		}
		called[c.hook] = true
	}
	r.judge(err)
	result.Calls = r.ordered()
	result.Webhooks = r.told(called)
	result.Limits = r.limits()
	return result, nil
}

func (r *run) rejection(err error) *metav1.Status {
	status := responsewriters.ErrorToAPIStatus(err).DeepCopy() // a plugin may keep its error
	status.Message = r.chain.realHosts.Replace(status.Message)
	if status.Details != nil {
		for i := range status.Details.Causes {
			status.Details.Causes[i].Message = r.chain.realHosts.Replace(status.Details.Causes[i].Message)
		}
	}
	return status
}

// ranks are the places of validating hooks among those that match.
func (r *run) ranks() map[*hook]int {
	ranks := map[*hook]int{}
	for _, v := range r.verdicts {
		if !v.hook.mutating && v.decision == Matches {
			ranks[v.hook] = len(ranks)
		}
	}
	return ranks
}

// ordered are the calls in the order in which they began, those of validating webhooks, which are
// made at the same time, in the order of their configurations.
func (r *run) ordered() []Call {
	// A DELETE may go through both sorts of webhooks twice.
	for from := 0; from < len(r.calls); from++ {
		to := from
		for to < len(r.calls) && !r.calls[to].Mutating && r.calls[to].step == r.calls[from].step {
			to++
		}
		slices.SortStableFunc(r.calls[from:to], func(a, b *call) int { return cmp.Compare(a.hook.index, b.hook.index) })
		from = max(from, to-1)
	}
	var calls []Call
	for _, c := range r.calls {
		calls = append(calls, c.Call)
	}
	return calls
}

// told are the verdicts, of hooks that were never asked too.
func (r *run) told(called map[*hook]bool) []Selection {
	verdicts := make([]Selection, 0, len(r.verdicts))
	for _, v := range r.verdicts {
		told := Selection{Configuration: v.hook.configuration, Webhook: v.hook.GetName(), Mutating: v.hook.mutating,
			Index: v.hook.index, Called: called[v.hook], Reason: v.decision, Detail: v.detail}
		if v.decision == Matches && !told.Called {
			told.Reason, told.Detail = ByRejection, "the request had been rejected by then"
		}
		verdicts = append(verdicts, told)
	}
	return verdicts
}

// judge decides what became of each call. The API server tells of failures that it ignored, and
// of one that it did not: its error.
func (r *run) judge(err error) {
	for i, c := range r.calls {
		c.Effect = Allowed
		c.answered()
		switch {
		case c.failedOpen:
			c.Effect, c.Error = FailedOpen, c.failure()
		case err == nil && (c.Mutating || !r.failedOpen):
		case c.Mutating && i < len(r.calls)-1:
		default:
			c.judgeBy(err)
		}
		if why := c.why(); why != "" && c.Error != "" {
			c.Error += " (" + why + ")"
		}
		c.Error = r.chain.realHosts.Replace(c.Error)
	}
}

// judgeBy judges a call that may be why a request was rejected.
func (c *call) judgeBy(err error) {
	name := c.hook.GetName()
	v := c.verify()
	switch {
	case v.denied:
		c.Effect, c.Error = Denied, v.message
	case err != nil && strings.Contains(err.Error(), `failed calling webhook "`+name+`"`):
		c.Effect = Failed
		_, c.Error, _ = strings.Cut(err.Error(), `failed calling webhook "`+name+`": `)
	case v.problem != "" && !c.Mutating && *c.hook.GetFailurePolicy() == admissionregistrationv1.Ignore:
		c.Effect, c.Error = FailedOpen, v.problem
	case v.problem != "":
		c.Effect, c.Error = Failed, v.problem
	case c.Mutating && v.operations > 0 && !c.patched && err != nil:
		c.Effect, c.Error = Failed, err.Error()
	}
}

func (c *call) failure() string {
	if v := c.verify(); v.problem != "" {
		return v.problem
	}
	return "the answer is of no use"
}

var errNeverSent = errors.New("the call could not be sent")
