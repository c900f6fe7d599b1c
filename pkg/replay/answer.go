// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// An answer is what a version of the webhook decided about a request.
type answer struct {
	// failure is the reason why there is no decision, or "".
	failure string
	allowed bool
	// status is the status of a denial, or nil.
	status *metav1.Status
	// patch is the JSON Patch of the answer, or nil if it has no operations, and object is the object after it. changes
	// lists the operations of a patch that a hook in Shadow mode withheld.
	patch       []byte
	object      []byte
	changes     string
	warnings    []string
	annotations map[string]string
	// withheld is true if the hook was in the mode Warn or Shadow. Its warnings and annotations were dropped, because they
	// depend on the mode.
	withheld bool
	// redacted is the same answer with pseudonyms in place of secrets. It is set if the pseudonyms of the recording were made
	// with another key. A value that differs between the two is a secret, and cannot be compared with the recording.
	redacted *answer
	// hides is set by compare if it left out a secret of this answer.
	hides bool
}

// parse returns the answer in the body of an HTTP response, as the API server understands it. kind is the type of the
// webhook, as in record.Call.
func parse(req *review.Request, kind string, code int, body []byte) *answer {
	if code < http.StatusOK || code > http.StatusPartialContent {
		return &answer{failure: fmt.Sprintf("HTTP %d: %s", code, messageOf(body))}
	}
	var got runtime.Object = &admissionv1.AdmissionReview{}
	if req.Version == review.V1beta1 {
		got = &admissionv1beta1.AdmissionReview{}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, got); err != nil {
		return &answer{failure: "the answer is not an AdmissionReview: " + err.Error()}
	}
	gvk := got.GetObjectKind().GroupVersionKind()
	ignored := req.Version == review.V1beta1 && gvk.Empty() // the API server does not check the kind in v1beta1
	if want := schema.FromAPIVersionAndKind(req.Version.APIVersion(), "AdmissionReview"); gvk != want && !ignored {
		return &answer{failure: fmt.Sprintf("the answer has the apiVersion %q and the kind %q, want %s and AdmissionReview", gvk.GroupVersion(), gvk.Kind, want.GroupVersion())}
	}
	if v1, is := got.(*admissionv1.AdmissionReview); is && v1.Response != nil && v1.Response.UID != req.UID {
		return &answer{failure: "the answer does not have the uid of the request"} // the same text for all calls
	}
	mutating := kind != "validating"
	verified, err := request.VerifyAdmissionResponse(req.UID, mutating, got)
	if err != nil {
		return &answer{failure: "the answer is invalid: " + err.Error()}
	}
	a := &answer{allowed: verified.Allowed, status: verified.Result, warnings: verified.Warnings, annotations: verified.AuditAnnotations}
	if a.allowed && mutating {
		if a.patch, a.object, err = applied(req, verified.Patch, verified.PatchType); err != nil {
			return &answer{failure: err.Error()}
		}
	}
	if mode := webhook.Mode(a.annotations[webhook.AuditMode]); mode == webhook.Warn || mode == webhook.Shadow {
		a.useWithheld()
	}
	return a
}

// applied returns the patch of an answer, or nil if it has no operations, and the patched object.
func applied(req *review.Request, operations []byte, kind admissionv1.PatchType) (changes, object []byte, err error) {
	p := patch.Patch{}
	if len(operations) > 0 && string(bytes.TrimSpace(operations)) != "null" {
		if p, err = patch.Parse(operations); err != nil {
			return nil, nil, fmt.Errorf("the patch is invalid: %w", err)
		}
	}
	switch {
	case len(p) == 0:
		return nil, req.Object, nil
	case kind != admissionv1.PatchTypeJSONPatch:
		return nil, nil, fmt.Errorf("the patchType %q is unknown", kind)
	case req.Object == nil:
		return nil, nil, fmt.Errorf("the answer has a patch, and a %s has no object to patch", req.Operation)
	}
	if object, err = patch.Apply(req.Object, p); err != nil {
		return nil, nil, fmt.Errorf("the patch cannot be applied: %w", err)
	}
	return operations, object, nil
}

// useWithheld replaces the answer of a hook in the mode Warn or Shadow by the decision that the hook withheld.
func (a *answer) useWithheld() {
	notes := a.annotations
	if text, found := notes[webhook.AuditWouldFail]; found {
		*a = answer{failure: text, withheld: true}
		return
	}
	if text, found := notes[webhook.AuditWouldDeny]; found {
		a.allowed, a.status, a.patch, a.object = false, &metav1.Status{Message: text}, nil, nil
	}
	a.changes = notes[webhook.AuditWouldChange]
	a.warnings, a.annotations, a.withheld = nil, nil, true
}

// recorded returns the answer of a recorded call, or the reason why the call has no decision to compare.
func recorded(req *review.Request, c *record.Call) (_ *answer, reason string) {
	switch c.Outcome {
	case webhook.Shed, webhook.Refused, webhook.Canceled:
		return nil, "the recorded call was " + string(c.Outcome) + ", so there is no decision"
	case webhook.Allowed, webhook.Mutated, webhook.Denied:
		return parse(req, c.Type, http.StatusOK, c.Answer), ""
	}
	if len(c.Answer) == 0 {
		return &answer{failure: "the recorded call " + string(c.Outcome)}, ""
	}
	return &answer{failure: messageOf(c.Answer)}, ""
}

// messageOf returns the message of a metav1.Status, or the beginning of another text.
func messageOf(body []byte) string {
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return status.Message
	}
	return textutil.Clip(textutil.FirstLine(strings.TrimSpace(string(body))), 200)
}

// message returns the message of a denial, as the API server completes it.
func (a *answer) message() string {
	if a.status == nil {
		return unexplained
	}
	return cmp.Or(a.status.Message, string(a.status.Reason), unexplained)
}

const unexplained = "without explanation"

// denial returns the code, the reason and the message of a denial, as the API server sends them to the user. Of a hook
// that did not enforce, only the message is known.
func (a *answer) denial() string {
	if a.withheld {
		return a.message()
	}
	code, reason := int32(http.StatusBadRequest), ""
	if a.status != nil {
		code = max(code, a.status.Code)
		reason = string(a.status.Reason)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, reason)) + ": " + a.message()
}

// notes returns the warnings and the audit annotations.
func (a *answer) notes() string {
	var lines []string
	for _, w := range a.warnings {
		lines = append(lines, "warning: "+w)
	}
	for _, key := range slices.Sorted(maps.Keys(a.annotations)) {
		lines = append(lines, key+": "+a.annotations[key])
	}
	return strings.Join(lines, "\n")
}

// sameNotes reports whether the answers have the same warnings and audit annotations. It returns true if they cannot be
// compared: if a hook did not enforce, or if they have a secret.
func (a *answer) sameNotes(b *answer) bool {
	if b.redacted != nil && b.redacted.notes() != b.notes() {
		b.hides = true
		return true
	}
	if a.withheld || b.withheld {
		return true
	}
	return a.notes() == b.notes()
}

// String describes the answer in one line.
func (a *answer) String() string {
	switch {
	case a.failure != "":
		return "failed: " + a.failure
	case !a.allowed:
		return "denied: " + a.denial()
	case len(a.patch) > 0 || a.changes != "":
		return "allowed, with a patch"
	}
	return "allowed"
}
