// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/internal/textutil"
)

// A CallResult is the result of one call of a webhook.
type CallResult string

// The results. For Failed, the API server applies the failurePolicy.
const (
	Allowed CallResult = "allowed"
	Mutated CallResult = "mutated"
	Denied  CallResult = "denied"
	Failed  CallResult = "failed"
)

// An Admission is one call of a webhook. With -o json, dev prints it as one line of JSON.
type Admission struct {
	Event     string    `json:"event"` // "admission"
	Time      time.Time `json:"time"`  // time of the response
	Webhook   string    `json:"webhook"`
	Type      string    `json:"type"` // "mutating" or "validating"
	Operation string    `json:"operation"`
	Group     string    `json:"group,omitempty"`
	Version   string    `json:"version"`
	// Resource includes the subresource, as in "pods/status".
	Resource  string `json:"resource"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	User      string `json:"user,omitempty"`
	DryRun    bool   `json:"dryRun"`
	UID       string `json:"uid,omitempty"`
	// Round counts the calls of the webhook for one request to the API server, from 1. 2 means a reinvocation, and 0
	// means that the round is unknown.
	Round        int        `json:"round,omitempty"`
	Outcome      CallResult `json:"outcome"`
	Code         int32      `json:"code,omitempty"`
	Message      string     `json:"message,omitempty"`
	Milliseconds float64    `json:"milliseconds"` // duration of the call, without waiting
	// WaitedMilliseconds is how long the call waited for a rebuild.
	WaitedMilliseconds float64 `json:"waitedMilliseconds,omitempty"`
	// BeforeChange is true if the rebuild took too long, so that the old hooks answered.
	BeforeChange bool            `json:"beforeChange,omitempty"`
	Warnings     []string        `json:"warnings,omitempty"`
	Patch        json.RawMessage `json:"patch,omitempty"`

	before, after []byte // the object before and after the patch; nil without a patch
}

// describe sets the fields that come from the request.
func (a *Admission) describe(r *admissionv1.AdmissionRequest) {
	a.Operation, a.Group, a.Version, a.Resource, a.Kind = string(r.Operation), r.Resource.Group, r.Resource.Version, r.Resource.Resource, r.Kind.Kind
	if r.SubResource != "" {
		a.Resource += "/" + r.SubResource
	}
	a.Namespace, a.Name, a.User, a.UID = r.Namespace, r.Name, r.UserInfo.Username, string(r.UID)
	a.DryRun = r.DryRun != nil && *r.DryRun
	if a.Name == "" {
		a.Name = nameIn(r.Object.Raw, r.OldObject.Raw)
	}
	if a.Namespace == a.Name && r.Kind.Kind == "Namespace" {
		a.Namespace = "" // Namespaces are cluster-scoped
	}
}

// nameIn returns the name in the objects, for requests without a name: creations with generateName and deletions of
// collections.
func nameIn(objects ...[]byte) string {
	for _, raw := range objects {
		var head struct {
			Metadata struct{ Name, GenerateName string }
		}
		if json.Unmarshal(raw, &head) != nil {
			continue
		}
		switch m := head.Metadata; {
		case m.Name != "":
			return m.Name
		case m.GenerateName != "":
			return m.GenerateName + "…"
		}
	}
	return ""
}

// decide sets the fields that come from the response, such as the result.
func (a *Admission) decide(r *admissionv1.AdmissionRequest, status int, body []byte) {
	review := admissionv1.AdmissionReview{}
	if status < 200 || status > 206 {
		a.fail("HTTP %d: %s", status, textutil.Clip(textutil.FirstLine(strings.TrimSpace(statusMessage(body))), 300))
		return
	}
	if err := json.Unmarshal(body, &review); err != nil || review.Response == nil {
		a.fail("the response is not an AdmissionReview with a response")
		return
	}
	response := review.Response
	a.Warnings = response.Warnings
	switch {
	case response.UID != r.UID:
		a.fail("the response has the uid %q, not that of the request", response.UID)
	case !response.Allowed:
		a.Outcome, a.Code = Denied, 400
		if response.Result != nil {
			a.Message = response.Result.Message
			if a.Message == "" {
				a.Message = string(response.Result.Reason)
			}
			if response.Result.Code >= 400 {
				a.Code = response.Result.Code
			}
		}
		if a.Message == "" {
			a.Message = "(no message)"
		}
	case len(response.Patch) == 0:
		a.Outcome = Allowed
	default:
		a.patched(r.Object.Raw, response.Patch)
	}
}

func (a *Admission) fail(format string, args ...any) {
	a.Outcome, a.Message = Failed, fmt.Sprintf(format, args...)
}

// patched applies the patch as the API server does, and records the object before and after.
func (a *Admission) patched(object, patch []byte) {
	a.Outcome = Mutated
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		a.fail("the patch cannot be decoded: %v", err)
		return
	}
	if len(operations) == 0 {
		a.Outcome = Allowed
		return
	}
	if compact := (bytes.Buffer{}); json.Compact(&compact, patch) == nil {
		a.Patch = compact.Bytes()
	}
	after, err := operations.Apply(object)
	if err != nil {
		a.fail("the patch cannot be applied: %v", err)
		return
	}
	a.before, a.after = object, after
	if a.Kind == "Secret" && a.Group == corev1.GroupName {
		a.before, a.after, a.Patch = hideSecret(a.before, a.after)
	}
}

// hideSecret replaces the values of a Secret, because the output is often shared.
func hideSecret(before, after []byte) (b, a []byte, patch json.RawMessage) {
	var old, changed map[string]any
	if json.Unmarshal(before, &old) != nil || json.Unmarshal(after, &changed) != nil {
		return nil, nil, nil
	}
	for _, field := range []string{"data", "stringData"} {
		oldData, _ := old[field].(map[string]any)
		newData, _ := changed[field].(map[string]any)
		for key, value := range newData {
			newData[key] = "(hidden)"
			if was, there := oldData[key]; there && was != value {
				newData[key] = "(hidden, changed)"
			}
		}
		for key := range oldData {
			oldData[key] = "(hidden)"
		}
	}
	for _, o := range []map[string]any{old, changed} {
		metadata, _ := o["metadata"].(map[string]any)
		if annotations, _ := metadata["annotations"].(map[string]any); annotations != nil {
			delete(annotations, corev1.LastAppliedConfigAnnotation) // it contains the values
		}
	}
	b, err := json.Marshal(old)
	if err != nil {
		return nil, nil, nil
	}
	if a, err = json.Marshal(changed); err != nil {
		return nil, nil, nil
	}
	return b, a, nil
}

// statusMessage returns the message in the body of a failed response: the message of a Status, or the whole body.
func statusMessage(body []byte) string {
	var status struct{ Kind, Message string }
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return status.Message
	}
	return string(body)
}
