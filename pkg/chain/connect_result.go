// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mutatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/realserver"
)

// result returns the Result of the request, from the reply and the observed calls.
func (a *serverAdmission) result(ctx context.Context, r *realserver.Reply, event <-chan map[string]string, calls []realserver.ObservedCall) (*Result, error) {
	result := &Result{Rejection: r.Status(), Warnings: r.Warnings}
	if result.Rejection != nil {
		a.Proxy.RealAddresses(result.Rejection)
	}
	if a.Operation == admissionv1.Connect && connected(result.Rejection, r.Code) {
		result.Rejection = nil
	}
	if result.Rejection == nil {
		result.Object = a.finalObject(r, calls)
	}
	if len(a.Differences) > 0 {
		a.limit(OldObjectDiffers, "The old object is not stored as given: the API server has other values at %s.", strings.Join(a.Differences, ", "))
	}
	result.Calls, result.Passes = a.calls(calls)
	if err := a.readAudit(ctx, event, result); err != nil {
		return nil, err
	}
	blameLast(result)
	takeErrors(result, calls)
	if !a.callsOnly {
		result.Webhooks = a.verdicts(ctx, result, calls)
	}
	a.addLimits(result)
	result.Limits = a.limits
	return result, nil
}

// finalObject returns the object in the reply. On CONNECT, it returns the object as the last webhook left it.
func (a *serverAdmission) finalObject(r *realserver.Reply, calls []realserver.ObservedCall) []byte {
	switch {
	case a.Operation == admissionv1.Delete:
		return nil
	case a.Operation != admissionv1.Connect:
		return r.Body
	case len(calls) == 0:
		return a.Object
	}
	last := calls[len(calls)-1]
	if r := last.Read(); r.Patched != nil {
		return r.Patched
	}
	return last.Object()
}

// connected reports whether a CONNECT passed admission. A CONNECT that passed still fails, because there is no server
// to connect to.
func connected(s *metav1.Status, code int) bool {
	if s == nil {
		return true
	}
	if strings.HasPrefix(s.Message, "admission webhook ") || strings.Contains(s.Message, "failed calling webhook") {
		return false
	}
	switch code {
	case http.StatusNotFound:
		return s.Reason == metav1.StatusReasonNotFound && s.Details != nil && strings.HasSuffix(s.Message, fmt.Sprintf("%q not found", s.Details.Name))
	case http.StatusBadRequest:
		return strings.Contains(s.Message, "does not have a host assigned")
	case http.StatusServiceUnavailable:
		return strings.HasPrefix(s.Message, "no endpoints available")
	}
	return false
}

// calls returns the observed calls, each with its round. It also returns how often the API server ran the whole
// admission: see [Result.Passes].
func (a *serverAdmission) calls(observed []realserver.ObservedCall) ([]Call, int) {
	var calls []Call
	rounds := map[*realserver.Target]int{}
	passes, validated, matching := 1, false, 0
	for i := range observed {
		o := &observed[i]
		// In one admission, each mutating webhook is called at most once a round, and not after a validating webhook.
		// Another call means that the API server began the whole admission again. Without an object there is no second
		// round.
		again := o.Target.Mutating && (validated || rounds[o.Target] == 2 || rounds[o.Target] == 1 && o.Object() == nil)
		if !o.Target.Mutating && rounds[o.Target] == 1 {
			again = true
		}
		if again {
			passes++
			rounds, validated, matching = map[*realserver.Target]int{}, false, 0
		}
		c := callOf(o)
		if o.Target.Mutating {
			c.Round = rounds[o.Target]
		} else {
			validated = true
			c.Index = matching
			matching++
		}
		rounds[o.Target]++
		calls = append(calls, c)
	}
	if passes > 1 {
		a.limit(AdmittedAgain, "The API server ran the whole admission %d times for this request. Calls lists the calls of all runs.", passes)
	}
	return calls, passes
}

// callOf returns the [Call] for a call that the proxy observed.
func callOf(c *realserver.ObservedCall) Call {
	r := c.Read()
	call := Call{
		Configuration: c.Target.Configuration, Webhook: c.Target.Webhook, Mutating: c.Target.Mutating, Index: c.Target.Index,
		Request: c.Request, Response: c.Response, Status: c.Status, Attempts: c.Attempts, Patch: inprocess.ResponsePatch(c.Response), Mutated: r.Changed,
		Effect: effectOf(c, r), Error: r.Denial, Duration: c.Ended.Sub(c.Began),
	}
	if c.Ended.IsZero() {
		call.Duration = 0
	}
	if r.Failure != nil {
		call.Error = r.Failure.Error()
	}
	return call
}

// effectOf returns the effect of a call on the request.
func effectOf(c *realserver.ObservedCall, r realserver.Reading) Effect {
	switch {
	case r.Failure != nil && !r.Final && c.Target.FailurePolicy == admissionregistrationv1.Ignore:
		return FailedOpen
	case r.Failure != nil:
		return Failed
	case !r.Allowed:
		return Denied
	}
	return Allowed
}

// blameLast marks the last call as failed if its patch produced an object that the API server could not decode. Only
// the API server can detect this, and it calls no webhook after that.
func blameLast(r *Result) {
	if r.Rejection == nil || len(r.Calls) == 0 || r.Rejection.Code != http.StatusInternalServerError {
		return
	}
	last := &r.Calls[len(r.Calls)-1]
	for _, c := range r.Calls {
		if c.Effect == Denied || c.Effect == Failed {
			return
		}
	}
	if last.Mutating && len(last.Patch) > 0 {
		last.Effect, last.Error, last.Mutated = Failed, r.Rejection.Message, false
	}
}

// takeErrors copies the API server's errors about failed calls into the result, because they say more than the
// responses.
func takeErrors(r *Result, calls []realserver.ObservedCall) {
	if r.Rejection == nil {
		return
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		if _, text, ok := strings.Cut(r.Rejection.Message, fmt.Sprintf("failed calling webhook %q: ", c.Webhook)); ok && c.Effect == Failed {
			if calls[i].Panicked {
				text += " (" + calls[i].Failure + ")"
			}
			c.Error = text
		}
	}
}

// readAudit copies what the API server recorded in the audit event into the result.
func (a *serverAdmission) readAudit(ctx context.Context, event <-chan map[string]string, r *Result) error {
	if a.audit == nil {
		for _, c := range r.Calls {
			if c.Mutating && len(c.Patch) > 0 {
				a.limit(MutatedDerived, "Call.Mutated is derived from the patch. Set ConnectOptions.AuditLog to read the API server's own decision.")
				break
			}
		}
		a.limit(NoAnnotations, "There are no audit annotations, because ConnectOptions.AuditLog is empty.")
		return nil
	}
	annotations, err := a.audit.Annotations(ctx, event)
	if err != nil {
		return err
	}
	for key, value := range annotations {
		if strings.HasPrefix(key, mutatingplugin.MutationAuditAnnotationPrefix) {
			a.noteMutation(r, key, value)
		}
		level := auditinternal.LevelMetadata
		if strings.HasPrefix(key, mutatingplugin.PatchAuditAnnotationPrefix) {
			level = auditinternal.LevelRequest
		}
		r.Annotations = append(r.Annotations, Annotation{Key: key, Value: value, Level: string(level)})
	}
	slices.SortFunc(r.Annotations, func(x, y Annotation) int { return cmp.Compare(x.Key, y.Key) })
	return nil
}

func (a *serverAdmission) noteMutation(r *Result, key, value string) {
	var noted mutatingplugin.MutationAuditAnnotation
	if json.Unmarshal([]byte(value), &noted) != nil {
		return
	}
	found := false
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Mutating && c.Configuration == noted.Configuration && c.Webhook == noted.Webhook && strings.Contains(key, fmt.Sprintf("round_%d_", c.Round)) {
			c.Mutated, found = noted.Mutated, true
		}
	}
	if !found && !a.Proxy.Has(noted.Configuration, noted.Webhook) {
		a.limit(OtherWebhooks, "A webhook that does not belong to the engine was called: %s of %s.", noted.Webhook, noted.Configuration)
	}
}

// addLimits records further differences from what the API server would have done without the engine, such as possible
// calls of other webhooks.
func (a *serverAdmission) addLimits(r *Result) {
	if len(a.Foreign) > 0 {
		a.limit(OtherWebhooks, "The API server has other webhooks that may have been called too: %s.", strings.Join(a.Foreign, ", "))
	}
	if a.Operation == admissionv1.Connect {
		a.limit(NotConnected, "No connection was opened: Object is what the last webhook received, with its patch applied.")
	}
	if r.Rejection != nil && r.Rejection.Reason == metav1.StatusReasonForbidden && strings.Contains(r.Rejection.Message, "cannot "+verb(a.Operation)+" resource") {
		a.limit(NotAuthorized, "The API server's authorization rejected the request before any webhook was called.")
	}
	for key := range a.User.Extra {
		if key != strings.ToLower(key) {
			a.limit(ExtraLowercased, "The key %q of the user's extra was sent in lower case.", key)
		}
	}
}

func verb(operation admissionv1.Operation) string {
	if operation == admissionv1.Connect {
		return "create"
	}
	return strings.ToLower(string(operation))
}
