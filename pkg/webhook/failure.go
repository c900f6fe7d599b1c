// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook/internal/callcontext"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// fail answers with an HTTP error whose body client-go reads as an API status. Its message is the
// one sentence that the user sees.
func (x *exchange) fail(w http.ResponseWriter, err error) {
	x.closeIfDue(w)
	x.closeIfLate(w)
	if own := (*reply.Failure)(nil); errors.As(err, &own) && own.RetryAfter != nil {
		w.Header()["Retry-After"] = own.RetryAfter
	}
	status := x.failed(err)
	switch x.client.rest {
	case noRest:
		reply.WriteStatus(w, status)
		return
	case restThenClose, restEvicted:
		reply.CloseConnection(w)
	case restThenNext:
	}
	reply.WriteEarly(w, int(status.Code), reply.Encode(status))
}

// closeIfLate makes a late answer close its connection. The read deadline may have expired for a moment while net/http
// waited for a hang-up. net/http would then end the contexts of later calls on the connection before they begin.
func (x *exchange) closeIfLate(w http.ResponseWriter) {
	if deadline, _ := x.ctx.Deadline(); x.client.http1 && !time.Now().Before(deadline) {
		reply.CloseConnection(w)
	}
}

// failed logs a failure, reports it to observers, and returns it as an API status, with the uid
// of the call if the uid was read.
func (x *exchange) failed(err error) metav1.Status {
	status := reply.StatusOf(err)
	if uid := x.ctx.Fields.UID; uid != "" {
		details := metav1.StatusDetails{}
		if status.Details != nil {
			details = *status.Details
		}
		details.UID = uid
		status.Details = &details
	}
	outcome := x.outcomeOf(err)
	x.logFailure(&status, err, outcome)
	if x.observed != nil {
		x.report(Observation{Outcome: outcome, Code: status.Code, Err: err}, reply.Encode(status))
	}
	return status
}

// logFailure logs a failure. Failures that any client can provoke are logged at most once per
// interval, failures of a handler always.
func (x *exchange) logFailure(status *metav1.Status, err error, outcome Outcome) {
	log, message, host := x.ctx.Logger(), errors.New(status.Message), x.hook.host
	var panicked *reply.Panic
	switch {
	case outcome == Shed:
		host.turnedAway.Error(log, message, "a call was rejected", "code", status.Code)
	case outcome == Canceled:
		log.V(1).Info("the API server closed the connection before the answer", "reason", status.Message)
	case errors.As(err, &panicked):
		log.WithValues("stack", panicked.Stack).Error(message, "cannot decide", "code", status.Code)
	case host != nil && !x.handler.called:
		host.invalidCall.Error(log, message, "cannot decide", "code", status.Code)
	default:
		log.Error(message, "cannot decide", "code", status.Code)
	}
}

// outcomeOf classifies a failure of this call. It is Canceled if the client went away, since a restart of the API
// server or a user who gives up must not count as a failure of the hook. If the client waited for at least half of
// x.ctx.Budget, it is TimedOut instead: when the API server repeats a call after a 429, it waits for less time than its
// timeout parameter says, and then closes the connection.
func (x *exchange) outcomeOf(err error) Outcome {
	outcome := outcomeOf(err)
	if outcome == Failed && x.client.isGone() && (errors.Is(err, callcontext.ErrHungUp) || strings.Contains(err.Error(), context.Canceled.Error())) {
		outcome = Canceled // compared by text, since not all clients wrap the error of their context
	}
	if outcome == Canceled && time.Since(x.ctx.Start) >= x.ctx.Budget/2 {
		return TimedOut
	}
	return outcome
}

// outcomeOf classifies a failure to decide.
func outcomeOf(err error) Outcome {
	var own *reply.Failure
	var panicked *reply.Panic
	switch {
	case errors.As(err, &panicked):
		return Panicked
	case errors.As(err, &own):
		return cmp.Or(outcomes[own.Cause], Failed)
	}
	return Failed
}

var outcomes = map[reply.Cause]Outcome{reply.TimedOut: TimedOut, reply.Shed: Shed, reply.Canceled: Canceled}
