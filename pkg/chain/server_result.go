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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mutatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
)

// result puts together what became of the request.
func (a *admissionRun) result(ctx context.Context, r *reply, event <-chan map[string]string, calls []observedCall) (*Result, error) {
	result := &Result{Rejection: r.status(), Warnings: r.warnings}
	if result.Rejection != nil {
		a.proxy.realAddresses(result.Rejection)
	}
	if a.Operation == admissionv1.Connect && connected(result.Rejection, r.code) {
		result.Rejection = nil
	}
	if result.Rejection == nil {
		result.Object = a.finalObject(r, calls)
	}
	result.Calls, result.Passes = a.calls(calls)
	if err := a.readAudit(ctx, event, result); err != nil {
		return nil, err
	}
	blameLast(result)
	takeErrors(result)
	result.Webhooks = a.verdicts(ctx, result, calls)
	a.tellLimits(result)
	result.Limits = a.limits
	return result, nil
}

// finalObject is what the API server answers with; on CONNECT, what the last webhook saw.
func (a *admissionRun) finalObject(r *reply, calls []observedCall) []byte {
	switch {
	case a.Operation == admissionv1.Delete:
		return nil
	case a.Operation != admissionv1.Connect:
		return r.body
	case len(calls) == 0:
		return a.Object
	}
	last := calls[len(calls)-1]
	if r := last.read(); r.patched != nil {
		return r.patched
	}
	return last.object()
}

// connected reports whether a CONNECT got past admission: there is nothing to connect to.
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

// calls are what the proxy saw, with the round that each call must have been in.
func (a *admissionRun) calls(observed []observedCall) ([]Call, int) {
	var calls []Call
	rounds := map[*target]int{}
	passes, validated, matching := 1, false, 0
	for i := range observed {
		o := &observed[i]
		// A webhook is called at most once a round, and not again after validation: then the
		// whole admission began anew. There is no second round without an object.
		again := o.target.mutating && (validated || rounds[o.target] == 2 || rounds[o.target] == 1 && o.object() == nil)
		if !o.target.mutating && rounds[o.target] == 1 {
			again = true
		}
		if again {
			passes++
			rounds, validated, matching = map[*target]int{}, false, 0
		}
		c := o.call()
		if o.target.mutating {
			c.Round = rounds[o.target]
		} else {
			validated = true
			c.Index = matching
			matching++
		}
		rounds[o.target]++
		calls = append(calls, c)
	}
	if passes > 1 {
		a.limit(AdmittedAgain, "The API server ran the whole admission %d times for this request. Calls lists the calls of all runs.", passes)
	}
	return calls, passes
}

func (c *observedCall) call() Call {
	r := c.read()
	call := Call{
		Configuration: c.target.configuration, Webhook: c.target.webhook, Mutating: c.target.mutating, Index: c.target.index,
		Request: c.request, Response: c.response, Status: c.status, Attempts: c.attempts, Patch: patch(c.response), Mutated: r.changed,
		Effect: c.outcome(r), Error: r.denial, Duration: c.ended.Sub(c.began),
	}
	if c.ended.IsZero() {
		call.Duration = 0
	}
	if r.failure != nil {
		call.Error = r.failure.Error()
	}
	return call
}

// blameLast is for a failure that needs the API server's types to see: a patch that makes
// something that cannot be decoded. Nothing is called after it.
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

// takeErrors takes what the API server says of a call that failed: it knows more than the answer.
func takeErrors(r *Result) {
	if r.Rejection == nil {
		return
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		if _, text, ok := strings.Cut(r.Rejection.Message, fmt.Sprintf("failed calling webhook %q: ", c.Webhook)); ok && c.Effect == Failed {
			if _, cause, ok := strings.Cut(c.Error, panickedPrefix); ok {
				text += " (" + panickedPrefix + cause + ")"
			}
			c.Error = text
		}
	}
}

// readAudit takes over what the API server noted itself.
func (a *admissionRun) readAudit(ctx context.Context, event <-chan map[string]string, r *Result) error {
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
	annotations, err := a.audit.annotations(ctx, event)
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

func (a *admissionRun) noteMutation(r *Result, key, value string) {
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
	if !found && !a.proxy.has(noted.Configuration, noted.Webhook) {
		a.limit(OtherWebhooks, "A webhook that does not belong to the engine was called: %s of %s.", noted.Webhook, noted.Configuration)
	}
}

// tellLimits notes what else is not as it would be without the engine.
func (a *admissionRun) tellLimits(r *Result) {
	if len(a.foreign) > 0 {
		a.limit(OtherWebhooks, "The API server has other webhooks that may have been called too: %s.", strings.Join(a.foreign, ", "))
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
