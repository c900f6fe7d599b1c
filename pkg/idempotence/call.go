// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	_ "github.com/admitkit/admitkit/pkg/patch" // bounds what the copies of a patch add up to, as the API server does
)

// A query describes one call of a webhook.
type query struct {
	version   string // of the review; empty: the first that the webhook declares
	operation admissionv1.Operation
	object    *objects.Object
	old       *objects.Object
	dryRun    bool
	raw       []byte // sent instead of object.raw
}

// An answer is the response to a call, as the API server reads it.
type answer struct {
	allowed  bool
	message  string // of a denial
	fault    string // why the API server could not use the answer, or ""
	faultOf  Law    // which law that is a matter of: L2, L8 or L10
	patch    []byte
	warnings []string
	// patched is the document with the patch, after is what the API server goes on with. Both are
	// there if the request is allowed and there is no fault.
	patched []byte
	after   *objects.Object

	Exchange // for the report
}

// ask calls the webhook as the API server does, checks the response with the API server's own code
// (request.VerifyAdmissionResponse), applies the patch as it does, and decodes and defaults the result.
func (r *run) ask(w *webhook, to caller, q query) *answer {
	r.calls++
	a := &answer{}
	if !slices.Contains(w.versions(), q.version) {
		q.version = w.versions()[0]
	}
	uid := newUID()
	body := r.review(q, uid)
	a.Exchange = Exchange{Webhook: w.Name, Operation: q.operation, DryRun: q.dryRun, ReviewVersion: q.version, Object: q.sent()}
	ctx, cancel := context.WithTimeout(r.ctx, w.timeout())
	status, response, err := to.call(ctx, body)
	cancel()
	a.Exchange.Status, a.Exchange.Response = status, reported(response, uid)
	switch {
	case err != nil:
		a.fault, a.broke = err.Error(), brokeOff(err)
		a.late = errors.Is(err, context.DeadlineExceeded) && r.ctx.Err() == nil
	case status < 200 || status > 206:
		a.fault = fmt.Sprintf("HTTP %d: %s", status, bytes.TrimSpace(a.Exchange.Response))
	default:
		a.read(q, uid, response)
	}
	switch {
	case err != nil || status < 200 || status > 206:
		a.faultOf = L2
	case a.fault != "" && a.faultOf == "":
		a.faultOf = L8
	case a.allowed:
		if a.apply(r.kind, q); a.fault != "" {
			a.faultOf = L10
		}
	}
	a.fault, a.message = string(withoutUIDs([]byte(a.fault), uid)), string(withoutUIDs([]byte(a.message), uid))
	a.finish()
	return a
}

func (q *query) sent() json.RawMessage {
	switch {
	case q.raw != nil:
		return q.raw
	case q.object != nil:
		return q.object.Raw
	}
	return nil
}

// typeOf describes a response that is not an AdmissionReview.
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

// read decodes and verifies the response.
func (a *answer) read(q query, uid types.UID, response []byte) {
	if first := bytes.TrimSpace(response); len(first) == 0 || first[0] != '{' {
		asJSON, err := yaml.YAMLToJSON(response) // the API server looks at the content, too
		if err != nil {
			a.fault = "the answer is not an AdmissionReview: " + err.Error()
			return
		}
		response = asJSON
	}
	var review runtime.Object = &admissionv1.AdmissionReview{}
	if q.version == "v1beta1" {
		review = &admissionv1beta1.AdmissionReview{}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(response, review); err != nil {
		a.fault = "the answer is not an AdmissionReview: " + err.Error()
		return
	}
	gvk := review.GetObjectKind().GroupVersionKind()
	left := q.version == "v1beta1" && gvk.Empty() // which the API server does not look at there
	if !left && (gvk.Kind != "AdmissionReview" || gvk.Group != "admission.k8s.io" || gvk.Version != q.version) {
		a.fault = fmt.Sprintf("the answer %s, want AdmissionReview of admission.k8s.io/%s", typeOf(gvk), q.version)
		return
	}
	verified, err := request.VerifyAdmissionResponse(uid, true, review)
	if err != nil {
		a.fault = err.Error()
		return
	}
	a.allowed, a.patch, a.warnings = verified.Allowed, verified.Patch, verified.Warnings
	if !a.allowed && verified.Result != nil {
		a.message = verified.Result.Message
		if code := verified.Result.Code; code >= http.StatusInternalServerError {
			// So libraries answer for a handler that failed or panicked: that decides nothing.
			a.fault, a.faultOf = fmt.Sprintf("the answer is status %d: %s", code, a.message), L2
			return
		}
	}
	if len(a.patch) > 0 && verified.PatchType != admissionv1.PatchTypeJSONPatch {
		a.fault = fmt.Sprintf("patchType %q is unknown", verified.PatchType)
	}
}

// apply applies the patch as mutatingDispatcher.callAttrMutatingHook does, and decodes the result.
func (a *answer) apply(k *objects.Kind, q query) {
	if len(a.patch) == 0 {
		a.after, a.patched = q.object, q.sent()
		return
	}
	if q.sent() == nil {
		a.fault = "there is a patch, but no object on " + string(q.operation)
		return
	}
	operations, err := jsonpatch.DecodePatch(a.patch)
	if err != nil {
		a.fault = "the patch is not a JSON Patch: " + err.Error()
		return
	}
	if len(operations) == 0 {
		a.patch = nil
		a.apply(k, q)
		return
	}
	if a.patched, err = k.Memory.Patch(operations, a.patch, q.sent()); err != nil {
		a.fault = "the patch cannot be applied to the object that was sent: " + err.Error()
		return
	}
	if a.after, err = k.TakeIn(a.patched); err != nil {
		a.fault = "what the patch makes is no object: " + err.Error()
	}
}

// review encodes the AdmissionReview of a call.
func (r *run) review(q query, uid types.UID) []byte {
	k := r.kind
	out := make([]byte, 0, 1024+2*len(q.sent()))
	out = append(out, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/`+q.version+`","request":{"uid":"`...)
	out = append(out, uid...)
	gvk := fmt.Sprintf(`{"group":%q,"version":%q,"kind":%q}`, k.Group, k.Version, k.Kind)
	gvr := fmt.Sprintf(`{"group":%q,"version":%q,"resource":%q}`, k.Resource.Group, k.Resource.Version, k.Resource.Resource)
	out = append(out, `","kind":`+gvk+`,"resource":`+gvr+`,"requestKind":`+gvk+`,"requestResource":`+gvr...)
	if name := objects.NameOf(q.object, q.old); name != "" {
		out = append(append(out, `,"name":`...), tree.Encode(name)...)
	}
	if namespace := k.NamespaceOf(q.object, q.old); namespace != "" {
		out = append(append(out, `,"namespace":`...), tree.Encode(namespace)...)
	}
	out = append(out, `,"operation":"`+string(q.operation)+`","userInfo":`...)
	out = append(out, userInfo...)
	out = appendDocument(append(out, `,"object":`...), q.sent())
	var old []byte
	if q.old != nil {
		old = q.old.Raw
	}
	out = appendDocument(append(out, `,"oldObject":`...), old)
	out = strconv.AppendBool(append(out, `,"dryRun":`...), q.dryRun)
	options := map[admissionv1.Operation]string{admissionv1.Create: "CreateOptions", admissionv1.Update: "UpdateOptions", admissionv1.Delete: "DeleteOptions"}[q.operation]
	return append(out, `,"options":{"kind":"`+options+`","apiVersion":"meta.k8s.io/v1"}}}`+"\n"...)
}

var userInfo = func() []byte {
	encoded, err := json.Marshal(authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters", "system:authenticated"}})
	if err != nil {
		panic(err)
	}
	return encoded
}()

func appendDocument(dst, doc []byte) []byte {
	if doc == nil {
		return append(dst, "null"...)
	}
	return append(dst, doc...)
}

// mostResponse bounds the bytes of a response in a report.
const mostResponse = 64 << 10

// clipped returns a copy of at most mostResponse bytes, so that the rest can be freed.
func clipped(b []byte) []byte { return bytes.Clone(b[:min(len(b), mostResponse)]) }
