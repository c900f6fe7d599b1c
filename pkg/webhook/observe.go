// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An Outcome is what came of a call.
type Outcome string

// The outcomes. All but the first three are failures to decide, to which the API server
// applies the failurePolicy.
const (
	Allowed  Outcome = "allowed"
	Mutated  Outcome = "mutated" // allowed, with a patch
	Denied   Outcome = "denied"
	Failed   Outcome = "failed"    // unreadable, of the wrong kind, or the handler returned an error
	Panicked Outcome = "panicked"  // the handler did
	TimedOut Outcome = "timed_out" // the handler did not decide in time
	Shed     Outcome = "shed"      // turned away before it was read: too much at once, or stopping
	Refused  Outcome = "refused"   // turned away before it was read: without valid credentials
)

// A Call is what an [Observer] is told at the end of a call. What could not be read is zero.
type Call struct {
	Hook      string
	Mutating  bool
	UID       types.UID
	Kind      metav1.GroupVersionKind
	Operation admissionv1.Operation
	Namespace string
	Name      string
	DryRun    bool

	Outcome Outcome
	// Code is that of the HTTP answer for a failure, that of the denial for a denial, else 200.
	Code int32
	// Err is why the call failed, nil after a decision.
	Err error
	// Duration runs from the headers of the request until the answer is made.
	Duration time.Duration
	// BodyBytes is the size of the request's body, PatchBytes and PatchOperations those of the
	// patch.
	BodyBytes, PatchBytes, PatchOperations int
}

// An Observer is told of the calls of a hook, for metrics and traces: see packages metrics and
// tracing. It is called by many goroutines at once.
type Observer interface {
	// Begin is called before the call is read. The context it returns, derived from ctx, is
	// that of the handler. The function it returns is called once, when the answer is made, and
	// must not keep the Call; it may be nil.
	Begin(ctx context.Context, h *Hook, r *http.Request) (context.Context, func(*Call))
}

// A ConnectionObserver is an [Observer] that is also told of connections that came to nothing.
type ConnectionObserver interface {
	// HandshakeFailed is called for each TLS handshake that failed; class is one of few words,
	// fit for a label.
	HandshakeFailed(class string)
}
