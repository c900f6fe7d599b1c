// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type respond func(slot string, req *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse)

// patch returns a response with these operations.
func patch(operations string) respond {
	return func(_ string, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
		r.Patch, r.PatchType = []byte(operations), new(admissionv1.PatchTypeJSONPatch)
	}
}

func deny(status *metav1.Status) respond {
	return func(_ string, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
		r.Allowed = false
		if status != nil {
			copied := *status
			r.Result = &copied
		}
	}
}

// both runs two responses in order.
func both(a, b respond) respond {
	return func(slot string, req *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
		a(slot, req, r)
		b(slot, req, r)
	}
}

// responses are the actions of a slot, in addition to rawAnswers.
var responses = map[string]respond{
	"annotate":    annotate(false),
	"count":       annotate(true),
	"noop":        noop,
	"same":        same,
	"nothing":     patch(`[]`),
	"unknown":     patch(`[{"op":"add","path":"/futureField","value":{"a":1}}]`),
	"missing":     patch(`[{"op":"remove","path":"/nowhere/at/all"}]`),
	"testfails":   patch(`[{"op":"test","path":"/kind","value":"None"}]`),
	"nopatch":     patch(`{}`),
	"badop":       patch(`[{"op":"frobnicate","path":"/kind"}]`),
	"wrongtype":   patch(`[{"op":"add","path":"/metadata/labels","value":"text"}]`),
	"rename":      patch(`[{"op":"replace","path":"/metadata/name","value":"renamed"}]`),
	"move":        patch(`[{"op":"add","path":"/metadata/namespace","value":"elsewhere"}]`),
	"kind":        patch(`[{"op":"replace","path":"/kind","value":"Other"}]`),
	"badlabel":    patch(`[{"op":"add","path":"/metadata/labels/bad","value":"not a label!"}]`),
	"emptymap":    patch(`[{"op":"add","path":"/metadata/ownerReferences","value":[]}]`),
	"finalizer":   patch(`[{"op":"add","path":"/metadata/finalizers","value":["example.com/diff"]}]`),
	"nomanaged":   patch(`[{"op":"add","path":"/metadata/managedFields","value":[]}]`),
	"paint":       patch(`[{"op":"add","path":"/spec/color","value":"green"}]`),
	"switchon":    patch(`[{"op":"add","path":"/metadata/labels/m3","value":"on"},{"op":"add","path":"/metadata/labels/v1","value":"on"}]`),
	"switchoff":   patch(`[{"op":"remove","path":"/metadata/labels/m0"}]`),
	"stdin":       patch(`[{"op":"add","path":"/stdin","value":true}]`),
	"nopatchtype": both(patch(`[]`), func(_ string, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) { r.PatchType = nil }),
	"onlytype":    both(patch(`[]`), func(_ string, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) { r.Patch = nil }),
	"othertype": both(annotate(false), func(_ string, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
		r.PatchType = new(admissionv1.PatchType("Merge"))
	}),
	"deny":        deny(&metav1.Status{Message: "no", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}),
	"denybare":    deny(nil),
	"denyreason":  deny(&metav1.Status{Reason: "Because", Code: http.StatusOK}),
	"denydetails": deny(&metav1.Status{Message: "no", Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Name: "x", Causes: []metav1.StatusCause{{Type: "FieldValueInvalid", Message: "bad", Field: "spec"}}}}),
	"denypatch":   both(annotate(false), deny(&metav1.Status{Message: "no"})),
	"denywarn":    both(warn, deny(&metav1.Status{Message: "no"})),
	"failagain":   failAgain,
	"allowstatus": func(_ string, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
		r.Result = &metav1.Status{Code: 500, Message: "ignored"}
	},
	"warn": warn,
	"warncontrol": func(_ string, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
		r.Warnings = []string{"a\nb", "", "quoted \"x\"", "quoted \"x\""}
	},
	"audit":      audit,
	"auditcount": both(annotate(true), audit),
	"auditbad": func(_ string, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
		r.AuditAnnotations = map[string]string{"a/b": "x", "-": "y"}
	},
	"warnannotate": both(annotate(false), warn),
}

// noop sends a test operation that succeeds.
func noop(_ string, req *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
	patch(fmt.Sprintf(`[{"op":"test","path":"/kind","value":%q}]`, req.Kind.Kind))("", req, r)
}

// same replaces a value with itself.
func same(_ string, req *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
	patch(fmt.Sprintf(`[{"op":"replace","path":"/kind","value":%q}]`, req.Kind.Kind))("", req, r)
}

// annotate returns a response that records in an annotation that the slot was called. If count is true, the annotation
// counts the calls.
func annotate(count bool) respond {
	return func(slot string, req *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
		n := seen(slot, req)
		if n > 0 && !count {
			return
		}
		r.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/metadata/annotations/seen-%s","value":"%d"}]`, slot, n+1)
		r.PatchType = new(admissionv1.PatchTypeJSONPatch)
	}
}

// failAgain sends a patch that cannot be applied, but only after another webhook has changed the object.
func failAgain(slot string, req *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
	if strings.Contains(string(req.Object.Raw), `"seen-m`) {
		patch(`[{"op":"remove","path":"/nowhere"}]`)(slot, req, r)
	}
}

// seen returns how often the slot changed the object.
func seen(slot string, req *admissionv1.AdmissionRequest) int {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if json.Unmarshal(req.Object.Raw, &object) != nil {
		return 0
	}
	n, err := strconv.Atoi(object.Metadata.Annotations["seen-"+slot])
	if err != nil {
		return 0
	}
	return n
}

func warn(slot string, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
	r.Warnings = []string{"from " + slot, "from all"}
}

// audit adds audit annotations with the name of the slot and the number of times that the slot has changed the object.
func audit(slot string, req *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
	r.AuditAnnotations = map[string]string{"slot": slot, "seen": strconv.Itoa(seen(slot, req))}
}
