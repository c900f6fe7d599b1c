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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// patch is the JSON Patch of the answer. changes lists the operations of a patch that a hook in Shadow mode withheld.
	patch       []byte
	changes     string
	warnings    []string
	annotations map[string]string
	// withheld is true if the hook was in the mode Warn or Shadow. Its warnings and annotations were dropped, because they
	// depend on the mode.
	withheld bool
	// redacted is the same answer with pseudonyms in place of secrets. It is set if the pseudonyms of the recording were made
	// with another key. A value that differs between the two is a secret, and cannot be compared with the recording.
	redacted *answer
}

// A response is the part of an AdmissionReview that is compared. It is the same in v1 and v1beta1.
type response struct {
	Response *decision `json:"response"`
}

type decision struct {
	UID              types.UID         `json:"uid"`
	Allowed          *bool             `json:"allowed"`
	Status           *metav1.Status    `json:"status"`
	Patch            json.RawMessage   `json:"patch"`
	PatchType        *string           `json:"patchType"`
	Warnings         []string          `json:"warnings"`
	AuditAnnotations map[string]string `json:"auditAnnotations"`
}

// operations returns the patch as JSON. A webhook sends it in base64, and package redact returns it as JSON.
func (d *decision) operations() (operations []byte, err error) {
	if bytes.HasPrefix(d.Patch, []byte("[")) {
		return d.Patch, nil
	}
	if len(d.Patch) > 0 {
		err = json.Unmarshal(d.Patch, &operations)
	}
	return operations, err
}

// parse returns the answer in the body of an HTTP response. An invalid body results in an answer with a failure.
func parse(req *review.Request, code int, body []byte) *answer {
	if code != http.StatusOK {
		return &answer{failure: fmt.Sprintf("HTTP %d: %s", code, messageOf(body))}
	}
	var r response
	if err := json.Unmarshal(body, &r); err != nil {
		return &answer{failure: "the answer is not an AdmissionReview: " + err.Error()}
	}
	switch d := r.Response; {
	case d == nil:
		return &answer{failure: "the answer has no response"}
	case d.UID != req.UID && req.Version != review.V1beta1:
		return &answer{failure: fmt.Sprintf("the answer has the uid %q instead of the uid of the request", d.UID)}
	case d.Allowed == nil && req.Version != review.V1beta1:
		return &answer{failure: "the answer has no decision: response.allowed is missing"}
	case len(d.Patch) > 0 && string(d.Patch) != "null" && (d.PatchType == nil || *d.PatchType != "JSONPatch"):
		return &answer{failure: "the answer has a patch without the patchType JSONPatch"}
	}
	d := r.Response
	operations, err := d.operations()
	if err != nil {
		return &answer{failure: "the patch of the answer is not base64: " + err.Error()}
	}
	a := &answer{allowed: d.Allowed != nil && *d.Allowed, status: d.Status, patch: operations, warnings: d.Warnings, annotations: d.AuditAnnotations}
	if mode := webhook.Mode(a.annotations[webhook.AuditMode]); mode == webhook.Warn || mode == webhook.Shadow {
		a.useWithheld()
	}
	return a
}

// useWithheld replaces the answer of a hook in the mode Warn or Shadow by the decision that the hook withheld.
func (a *answer) useWithheld() {
	notes := a.annotations
	if text, found := notes[webhook.AuditWouldFail]; found {
		*a = answer{failure: text, withheld: true}
		return
	}
	if text, found := notes[webhook.AuditWouldDeny]; found {
		a.allowed, a.status, a.patch = false, &metav1.Status{Message: text}, nil
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
		return parse(req, http.StatusOK, c.Answer), ""
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

// applied applies the patch of the answer to the object, as the API server does, and returns the result.
func (a *answer) applied(object []byte) ([]byte, error) {
	if len(a.patch) == 0 {
		return object, nil
	}
	p, err := patch.Parse(a.patch)
	if err != nil {
		return nil, err
	}
	return patch.Apply(object, p)
}

// message returns the message of a denial.
func (a *answer) message() string {
	if a.status == nil {
		return ""
	}
	return a.status.Message
}

// denial returns the code, the reason and the message of a denial.
func (a *answer) denial() string {
	code, reason := int32(http.StatusForbidden), metav1.StatusReasonForbidden // the API server's defaults
	if a.status != nil {
		code, reason = cmp.Or(a.status.Code, code), cmp.Or(a.status.Reason, reason)
	}
	return fmt.Sprintf("%d %s: %s", code, reason, a.message())
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
	if a.withheld || b.withheld || b.redacted != nil && b.redacted.notes() != b.notes() {
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
