// SPDX-License-Identifier: Apache-2.0

package planted

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// A Call is a request with secrets, and an answer that quotes some of them and adds others.
type Call struct{ Request, Answer []byte }

// Calls returns a create, an update and a failed create for each object, and calls for subresources and reviews.
func (p *Planter) Calls(suffix string) (calls []Call) {
	for _, o := range p.Objects(suffix) {
		kind := object{"group": o.Group, "version": o.Version, "kind": o.Kind}
		calls = append(calls,
			Call{p.request("CREATE", kind, o.JSON, nil), p.answer(o)},
			Call{p.request("UPDATE", kind, o.JSON, o.JSON), p.denial()},
			Call{p.request("DELETE", kind, nil, o.JSON), p.failure()})
	}
	for _, o := range []object{
		{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": object{"audiences": list{"a"}}, "status": object{"token": p.password()}},
		{"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": object{"token": p.password()}},
		{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": object{"user": "ada", "extra": object{"a.example/b": list{p.password()}}}},
		{"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1", "spec": object{"extra": object{"x": list{p.password(), p.password()}}}},
		{"kind": "PodExecOptions", "apiVersion": "v1", "command": list{"mysql", "--password", p.password()}},
		{"kind": "Event", "apiVersion": "v1", "message": "Error: cannot log in with " + p.token()},
	} {
		data, _ := json.Marshal(o) // it always marshals
		group, version, ok := strings.Cut(o["apiVersion"].(string), "/")
		if !ok {
			group, version = "", group
		}
		calls = append(calls, Call{p.request("CREATE", object{"group": group, "version": version, "kind": o["kind"]}, data, nil), p.failure()})
	}
	return calls
}

// request returns a review. Its user has secrets.
func (p *Planter) request(operation string, kind object, object, old []byte) []byte {
	orNull := func(document []byte) json.RawMessage {
		if document == nil {
			return json.RawMessage("null")
		}
		return document
	}
	review := map[string]any{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": map[string]any{
		"uid": "u-1", "kind": kind, "operation": operation, "namespace": "shop", "name": "web",
		"userInfo": map[string]any{"username": "system:serviceaccount:secret:default", "groups": list{"a"},
			"extra": map[string]any{"authentication.kubernetes.io/credential-id": list{p.password()}, "x": list{p.password(), "b"}}},
		"object": orNull(object), "oldObject": orNull(old), "dryRun": false, "options": nil,
	}}
	data, _ := json.Marshal(review) // it always marshals
	return data
}

// quoted returns a secret that was planted last, in a sentence.
func (p *Planter) quoted() string {
	secret := p.Secrets[len(p.Secrets)-1-p.random.IntN(2)] // those of userInfo.extra
	switch p.random.IntN(3) {
	case 0:
		return fmt.Sprintf("the value %q is not allowed", secret)
	case 1:
		return "got " + secret + ", want another"
	}
	return "see https://x.example/?value=" + base64.StdEncoding.EncodeToString([]byte(secret))
}

// answer returns an answer with a patch that fits the kind of the object.
func (p *Planter) answer(o Object) []byte {
	quoted := p.quoted()
	secret := p.Secrets[len(p.Secrets)-1]
	ops := list{
		object{"op": "add", "path": "/metadata/annotations/example.com~1copy", "value": secret},
		object{"op": "add", "path": "/metadata/annotations/example.com~1password", "value": p.password()},
	}
	switch o.Kind {
	case "Pod":
		ops = append(ops, object{"op": "add", "path": "/spec/containers/0/env/-", "value": object{"name": "NEW", "value": p.password()}},
			object{"op": "replace", "path": "/spec/containers/0/env/0/value", "value": p.password()},
			object{"op": "add", "path": "/spec/containers/-", "value": p.podSpec()["containers"].(list)[0]},
			object{"op": "add", "path": "/spec/containers/1/args/-", "value": "--password"},
			object{"op": "add", "path": "/spec/containers/1/args/-", "value": p.plant("", p.text(lower, 12), "")})
	case "Secret":
		ops = append(ops, object{"op": "add", "path": "/data/new", "value": p.base64()})
	case "ConfigMap":
		ops = append(ops, object{"op": "replace", "path": "/data", "value": object{"new": p.password()}})
	case "Deployment":
		ops = append(ops, object{"op": "replace", "path": "/spec/template", "value": p.template()})
	case "Widget":
		ops = append(ops, object{"op": "replace", "path": "/spec/auth/password", "value": p.password()}, object{"op": "test", "path": "/spec/pin", "value": p.plant("", "8"+p.text(digits, 9), "")})
	}
	patch, _ := json.Marshal(ops) // it always marshals
	return review(object{"uid": "u-1", "allowed": true, "patchType": "JSONPatch", "patch": patch, "warnings": list{quoted, p.token()},
		"auditAnnotations": object{"value": quoted, "token": p.password()}})
}

func (p *Planter) denial() []byte {
	return review(object{"uid": "u-1", "allowed": false, "status": object{"code": 403, "message": p.quoted() + ": " + p.token(),
		"details": object{"causes": list{object{"field": "spec", "message": p.quoted()}}}}})
}

// failure returns the answer of a failed call: a status, or text.
func (p *Planter) failure() []byte {
	if p.random.IntN(2) == 0 {
		return []byte("panic: " + p.quoted())
	}
	data, _ := json.Marshal(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": p.quoted(), "code": 500}) // it always marshals
	return data
}

func review(response object) []byte {
	data, _ := json.Marshal(object{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}) // it always marshals
	return data
}
