// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// A Mode sets the effect of a hook's decisions. With Warn or Shadow, you can see what a new or changed policy would do
// before you enforce it.
type Mode string

// The modes. In Warn and Shadow, a call that fails or misses its deadline is admitted, too. But a call fails in every
// mode if its request cannot be read, for example over the limits of the server, or if its mode cannot be chosen. So
// use the failurePolicy Ignore until the hook enforces.
const (
	// Enforce sends each decision as it is. It is the default.
	Enforce Mode = "Enforce"
	// Warn admits each request. A denial or failure becomes a warning for the API client, and a patch is sent with a
	// warning that lists its changes.
	Warn Mode = "Warn"
	// Shadow admits each request and changes nothing. It drops patches and warnings. The handler sees a dry run, so
	// that it has no side effects.
	Shadow Mode = "Shadow"
)

// The keys of the audit annotations in Warn and Shadow. The API server adds the name of the webhook. The values are
// shortened to 1 KiB.
const (
	// AuditMode has the mode of the call. It is set together with one of the other annotations, and only then.
	AuditMode = "mode"
	// AuditWouldDeny has the message of a denial that was not sent.
	AuditWouldDeny = "would-deny"
	// AuditWouldFail has the error of a call that was admitted although it failed.
	AuditWouldFail = "would-fail"
	// AuditWouldChange lists the operations of a patch that was not sent, without their values.
	AuditWouldChange = "would-change"
)

// A ModeRequest is a request for which a [ModeFunc] chooses the mode. It is valid until the function returns.
type ModeRequest struct {
	review.Metadata
	document []byte
}

// Controller returns the owner reference that has controller: true, or nil. See [Request.Controller].
func (r *ModeRequest) Controller() *metav1.OwnerReference { return controllerIn(r.document) }

// Labels returns the labels of the new object, or on DELETE those of the old one.
func (r *ModeRequest) Labels() map[string]string { return metadataOf(r.document).Metadata.Labels }

// A ModeFunc chooses the mode of a call. An empty mode means Enforce. If it returns an error or an unknown mode, the
// call fails, and the failurePolicy decides. It must be safe for concurrent use.
type ModeFunc func(ctx context.Context, req *ModeRequest) (Mode, error)

// WithMode returns a hook with this mode for all calls.
func (h *Hook) WithMode(mode Mode) *Hook {
	return h.WithModes(func(context.Context, *ModeRequest) (Mode, error) { return mode, nil })
}

// WithModes returns a hook that calls choose for the mode of each call, after the request was read and before the handler
// is called. Package rollout has such a function, which reads a file.
func (h *Hook) WithModes(choose ModeFunc) *Hook {
	c := *h
	c.chooseMode = choose
	return &c
}

// HasModes reports whether [Hook.WithMode] or [Hook.WithModes] returned the hook, so that not all of its calls may enforce.
func (h *Hook) HasModes() bool { return h.chooseMode != nil }

// An effect records the mode of a call, and the decision that the mode withholds. The zero value enforces.
type effect struct {
	mode     Mode
	version  review.Version // of the answer
	withheld Outcome        // what the hook decided, if that was not sent
	err      error          // of a failure that was not sent
}

// isLenient reports whether the call is admitted whatever the hook decides.
func (e *effect) isLenient() bool { return e.mode == Warn || e.mode == Shadow }

// setMode chooses the mode of the call.
func (x *exchange) setMode(wire *review.Request) (err error) {
	if x.hook.chooseMode == nil {
		return nil
	}
	defer reply.Recover("choosing the mode", &err)
	deadline, _ := x.ctx.Deadline()
	timer := time.AfterFunc(time.Until(deadline), x.ctx.Expire)
	defer timer.Stop()
	req := &ModeRequest{Metadata: wire.Metadata, document: wire.Object}
	if wire.Operation == admissionv1.Delete {
		req.document = wire.OldObject
	}
	defer func() { req.document = nil }() // the function may keep req
	mode, err := x.hook.chooseMode(&x.ctx, req)
	switch {
	case x.ctx.Expired():
		return x.ctx.TimedOut("the mode was not chosen")
	case err != nil:
		return fmt.Errorf("the mode of the webhook cannot be chosen: %w", err)
	case mode == Enforce || mode == "":
		return nil
	case mode != Warn && mode != Shadow:
		return fmt.Errorf("the mode of the webhook is %q: use %s, %s or %s", mode, Enforce, Warn, Shadow)
	}
	x.effect = effect{mode: mode, version: wire.Version}
	wire.DryRun = wire.DryRun || mode == Shadow
	return nil
}

// lenient returns the decision and the patch to send in the mode Warn or Shadow. The arguments are the decision and the
// patch of the hook, or the error of a failed call.
func (x *exchange) lenient(d *review.Decision, p patch.Patch, err error) (*review.Decision, patch.Patch) {
	e := &x.effect
	sent := review.Allow()
	if d != nil {
		if e.mode == Warn {
			for _, line := range d.Warnings() {
				sent.Warn(line)
			}
		}
		for key, value := range d.AuditAnnotations() {
			_ = sent.Audit(key, value) // it was valid in d
		}
	}
	name := x.hook.Name()
	switch {
	case err != nil:
		status := reply.StatusOf(err)
		e.withheld, e.err = x.outcomeOf(err), err
		x.logFailure(&status, err, e.withheld)
		e.note(sent, AuditWouldFail, status.Message)
		e.warn(sent, fmt.Sprintf("%s cannot decide about this request, which will fail once it is enforced: %s", name, status.Message))
	case !d.Allowed():
		e.withheld = Denied
		e.note(sent, AuditWouldDeny, d.Denial().Message)
		e.warn(sent, fmt.Sprintf("%s will deny this request once it is enforced: %s", name, d.Denial().Message))
	case len(p) > 0 && e.mode == Warn:
		e.warn(sent, fmt.Sprintf("%s has changed this object: %s", name, operations(p)))
		return sent, p
	case len(p) > 0:
		e.withheld = Mutated
		e.note(sent, AuditWouldChange, operations(p))
	}
	return sent, nil
}

func (e *effect) warn(d *review.Decision, text string) {
	if e.mode == Warn {
		d.Warn(text)
	}
}

func (e *effect) note(d *review.Decision, key, value string) {
	_ = d.Audit(AuditMode, string(e.mode)) // the keys are valid
	_ = d.Audit(key, shortened(value))
}

// maxAuditBytes is the size of the largest value of an audit annotation.
const maxAuditBytes = 1 << 10

func shortened(text string) string {
	if len(text) <= maxAuditBytes {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:maxAuditBytes-len(more)], "") + more
}

// maxOperations is the maximum number of operations that are listed.
const maxOperations = 20

// operations lists the operations of a patch without their values.
func operations(p patch.Patch) string {
	var text strings.Builder
	for i, op := range p {
		switch {
		case i == maxOperations:
			fmt.Fprintf(&text, ", and %d more", len(p)-i)
			return text.String()
		case i > 0:
			text.WriteString(", ")
		}
		text.WriteString(string(op.Op) + " " + string(op.Path))
	}
	return text.String()
}

// lateAnswer returns the answer of a lenient call whose handler missed its deadline or ended its goroutine, or nil if
// the call is not lenient.
func (x *exchange) lateAnswer(err error) []byte {
	if !x.effect.isLenient() {
		return nil
	}
	d, _ := x.lenient(nil, nil, err)
	answer := review.AppendMutating(nil, &review.Request{Version: x.effect.version, Metadata: review.Metadata{UID: x.ctx.Fields.UID}}, d, nil)
	x.report(Observation{Outcome: Allowed, Code: http.StatusOK}, answer)
	return answer
}
