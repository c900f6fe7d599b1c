// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// An Outcome is F(x), the result of one API request.
type Outcome struct {
	*Answer           // the answer to the last call, which decides
	Calls   []*Answer // all calls
	Patched bool      // any call returned a patch
}

// Admitted returns the outcome of a request that is admitted without a call.
func Admitted(o *objects.Object) *Outcome {
	return &Outcome{Answer: &Answer{Allowed: true, After: o}}
}

// Denied returns the outcome of a request that is denied without a call.
func Denied(message string) *Outcome { return &Outcome{Answer: &Answer{Message: message}} }

// OK reports whether the request was admitted without a failure.
func (o *Outcome) OK() bool { return o.Allowed && o.Fault == "" }

// Late reports whether the last call timed out.
func (o *Outcome) Late() bool { return len(o.Calls) > 0 && o.Calls[len(o.Calls)-1].Exchange.Late }

// Request sends a request through the webhooks as the API server does, with one instance of each.
func (s *Session) Request(instances Instances, q Query) *Outcome {
	if s.Over() {
		return &Outcome{Answer: &Answer{Fault: "the run is over", FaultOf: NoDecision}}
	}
	if q.Operation == "" {
		q.Operation = s.Operation
	}
	q = s.WithOld(q)
	out := Admitted(q.Object)
	seen := make([]any, len(instances)) // the object after each webhook's last call
	for round := range 2 {
		changed := false
		for i, w := range s.Webhooks {
			if round > 0 && (!w.reinvoked() || seen[i] == nil || tree.Equal(seen[i], q.Object.Doc)) {
				continue
			}
			a := s.callIfSelected(w, instances[i], q)
			if a == nil {
				continue
			}
			if out.Answer = a.Answer; a.called {
				out.Calls = append(out.Calls, a.Answer)
			}
			if a.Fault != "" || !a.Allowed {
				return out
			}
			out.Patched = out.Patched || len(a.Patch) > 0
			changed = changed || len(a.Patch) > 0
			if q.Object = a.After; q.Raw != nil {
				q.Raw = a.Result // the next webhook also gets the unknown fields
			}
			if q.Object != nil { // a DELETE has no object
				seen[i] = q.Object.Doc
			}
		}
		if !changed || len(instances) == 1 {
			break // a webhook is called again only after another webhook changed the object
		}
	}
	return out
}

// WithOld returns the query of an update with its old object: the stored one, or else the object itself.
func (s *Session) WithOld(q Query) Query {
	if q.Operation == admissionv1.Update && q.Old == nil {
		if q.Old = s.Kind.Old; q.Old == nil {
			q.Old = q.Object
		}
	}
	return q
}

// A turn is the answer of one webhook to one request. In some cases, the API server answers without a call.
type turn struct {
	*Answer
	called bool // the answer appears in Outcome.Calls
}

// callIfSelected calls a webhook if its registration selects the request. Otherwise it returns nil.
func (s *Session) callIfSelected(w *Webhook, instance Caller, q Query) *turn {
	if !w.Handles(s.Kind, q.Operation) || !w.selects(q.Object, q.Old) || !s.Namespaces.selects(w, s.Kind, &q) {
		return nil
	}
	q.user = s.User
	matches, err := w.matches(s.Ctx, s.Kind, &q)
	switch {
	case err != nil:
		return &turn{unmatched(w, err), true}
	case !matches:
		return nil
	case q.DryRun && !w.DryRuns():
		return &turn{&Answer{Message: fmt.Sprintf("admission webhook %q does not support dry run", w.Name)}, false}
	}
	return &turn{s.Ask(w, instance, q), true}
}

// Ask calls the webhook and uses its response as the API server does. It checks the response with the API server's own
// code (request.VerifyAdmissionResponse), applies the patch, and decodes and defaults the result.
func (s *Session) Ask(w *Webhook, instance Caller, q Query) *Answer {
	if a := s.patience.known(w, &q); a != nil {
		return a
	}
	c := s.begin(w, q)
	ctx, cancel := context.WithTimeout(s.Ctx, s.patience.of(w))
	start := time.Now()
	c.status, c.response, c.err = instance.Call(ctx, c.body)
	cancel()
	took := time.Since(start)
	if c.err == nil {
		s.Connection.timed(took, s.Kind, q.Object)
	}
	a := s.end(c)
	s.patience.note(s.Ctx, w, &c.query, a, took)
	s.Connection.lostOn(c.query.sent())
	s.Behaviour.note(&c.query, a)
	return a
}

// A call is one request to a webhook, and its response.
type call struct {
	*Answer
	query    Query
	uid      types.UID
	body     []byte
	status   int
	response []byte
	err      error
}

// begin counts a call and encodes its request.
func (s *Session) begin(w *Webhook, q Query) *call {
	*s.calls++
	if !slices.Contains(w.Versions(), q.Version) {
		q.Version = w.Versions()[0]
	}
	q.user = s.User
	c := &call{Answer: &Answer{}, query: q, uid: cmp.Or(q.UID, NewUID())}
	c.Exchange = Exchange{Webhook: w.Name, Operation: q.Operation, DryRun: q.DryRun, ReviewVersion: q.Version, Object: q.sent()}
	c.body = q.review(s.Kind, c.uid)
	return c
}

// end reads the response of a call.
func (s *Session) end(c *call) *Answer {
	a := c.Answer
	a.Exchange.Status, a.Exchange.Response = c.status, reported(c.response, c.uid)
	switch {
	case c.err != nil:
		a.Fault, a.FaultOf, a.Exchange.Broke = c.err.Error(), NoDecision, connectionBroke(c.err)
		a.Exchange.Late = errors.Is(c.err, context.DeadlineExceeded) && s.Ctx.Err() == nil
	case c.status < 200 || c.status > 206:
		a.Fault, a.FaultOf = fmt.Sprintf("HTTP %d: %s", c.status, bytes.TrimSpace(a.Exchange.Response)), NoDecision
	default:
		a.use(s.Kind, c.query, c.uid, c.response)
	}
	a.Fault, a.Message = string(withoutUIDs([]byte(a.Fault), c.uid)), string(withoutUIDs([]byte(a.Message), c.uid))
	a.record()
	return a
}

// use decodes a response and applies its patch.
func (a *Answer) use(k *objects.Kind, q Query, uid types.UID, response []byte) {
	a.read(q, uid, response)
	switch {
	case a.Fault != "" && a.FaultOf == "":
		a.FaultOf = BadEnvelope
	case a.Fault == "" && a.Allowed:
		if a.apply(k, q); a.Fault != "" {
			a.FaultOf = BadPatch
		}
	}
}
