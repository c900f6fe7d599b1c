// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	_ "github.com/admitkit/admitkit/pkg/patch" // limits the total size of copies in a patch, as the API server does
)

// A FaultKind says which part of a response the API server could not use.
type FaultKind string

// The kinds of faults.
const (
	// NoDecision means no response, an HTTP error, or a denial with a status of 500 and above. The API server denies the
	// request for such a denial, but libraries report failures of handlers so.
	NoDecision  FaultKind = "no decision"
	BadEnvelope FaultKind = "bad envelope" // the AdmissionReview is invalid
	BadPatch    FaultKind = "bad patch"
)

// An Answer is the response to a call, as the API server reads it.
type Answer struct {
	Allowed  bool
	Message  string // of a denial
	Fault    string // why the API server could not use the response, or empty
	FaultOf  FaultKind
	Patch    []byte
	Warnings []string
	// Result is the patched document, and After the object that the API server continues with. Both
	// are set if the request is allowed and there is no fault.
	Result []byte
	After  *objects.Object

	Exchange Exchange
}

// An Exchange records the request and the response of one call for a report.
type Exchange struct {
	Webhook       string
	Operation     admissionv1.Operation
	DryRun        bool
	ReviewVersion string
	Object        json.RawMessage
	Status        int
	Response      []byte
	Patch         json.RawMessage // nil if it is not JSON
	Outcome       string          // in words

	Broke bool // the connection broke
	Late  bool // the response did not come in time
}

// record copies the result of the call to a.Exchange, which a report shows.
func (a *Answer) record() {
	if json.Valid(a.Patch) {
		a.Exchange.Patch = a.Patch
	}
	switch {
	case a.Fault != "":
		a.Exchange.Outcome = "failed: " + textutil.FirstLine(a.Fault)
	case !a.Allowed:
		a.Exchange.Outcome = "denied: " + a.Message
	case len(a.Patch) > 0:
		a.Exchange.Outcome = "allowed, with a patch"
	default:
		a.Exchange.Outcome = "allowed"
	}
}

// typeOf describes the type of a response that is not the expected AdmissionReview, for an error message.
func typeOf(gvk schema.GroupVersionKind) string {
	switch {
	case gvk.Empty():
		return "has no apiVersion and no kind"
	case gvk.Kind == "":
		return "has no kind"
	case gvk.Version == "":
		return "has the kind " + gvk.Kind + " and no apiVersion"
	}
	return fmt.Sprintf("has the kind %s of %s", gvk.Kind, gvk.GroupVersion())
}

// read decodes and verifies the response. If the API server could not use it, read sets a.Fault.
func (a *Answer) read(q Query, uid types.UID, response []byte) {
	if first := bytes.TrimSpace(response); len(first) == 0 || first[0] != '{' {
		asJSON, err := yaml.YAMLToJSON(response) // the API server also detects YAML by the content
		if err != nil {
			a.Fault = "the answer is not an AdmissionReview: " + err.Error()
			return
		}
		response = asJSON
	}
	var review runtime.Object = &admissionv1.AdmissionReview{}
	if q.Version == "v1beta1" {
		review = &admissionv1beta1.AdmissionReview{}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(response, review); err != nil {
		a.Fault = "the answer is not an AdmissionReview: " + err.Error()
		return
	}
	gvk := review.GetObjectKind().GroupVersionKind()
	ignored := q.Version == "v1beta1" && gvk.Empty() // the API server does not check the kind in v1beta1
	if !ignored && (gvk.Kind != "AdmissionReview" || gvk.Group != "admission.k8s.io" || gvk.Version != q.Version) {
		a.Fault = fmt.Sprintf("the answer %s, want AdmissionReview of admission.k8s.io/%s", typeOf(gvk), q.Version)
		return
	}
	verified, err := request.VerifyAdmissionResponse(uid, true, review)
	if err != nil {
		a.Fault = err.Error()
		return
	}
	a.Allowed, a.Patch, a.Warnings = verified.Allowed, verified.Patch, verified.Warnings
	if !a.Allowed && verified.Result != nil {
		a.Message = verified.Result.Message
		if code := verified.Result.Code; code >= http.StatusInternalServerError {
			// Libraries respond in this way if a handler failed or panicked. It is not a decision.
			a.Fault, a.FaultOf = fmt.Sprintf("the answer has the status code %d: %s", code, a.Message), NoDecision
			return
		}
	}
	if len(a.Patch) > 0 && verified.PatchType != admissionv1.PatchTypeJSONPatch {
		a.Fault = fmt.Sprintf("patchType %q is unknown", verified.PatchType)
	}
}

// apply applies the patch as mutatingDispatcher.callAttrMutatingHook does, and decodes the result.
func (a *Answer) apply(k *objects.Kind, q Query) {
	if len(a.Patch) == 0 {
		a.After, a.Result = q.Object, q.sent()
		return
	}
	if q.sent() == nil {
		a.Fault = "the answer has a patch, but a " + string(q.Operation) + " has no object to patch"
		return
	}
	operations, err := jsonpatch.DecodePatch(a.Patch)
	if err != nil {
		a.Fault = "the patch is not a JSON Patch: " + err.Error()
		return
	}
	if len(operations) == 0 {
		a.Patch = nil
		a.apply(k, q)
		return
	}
	if a.Result, err = k.Memory.Patch(operations, a.Patch, q.sent()); err != nil {
		a.Fault = "the patch cannot be applied to the object that was sent: " + err.Error()
		return
	}
	if a.After, err = k.TakeIn(a.Result); err != nil {
		a.Fault = "the patched document is not a valid object: " + err.Error()
	}
}
