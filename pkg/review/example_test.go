// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// body is what an API server sends, shortened.
const body = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{
	"uid":"705ab4f5","kind":{"group":"","version":"v1","kind":"Pod"},
	"namespace":"shop","operation":"CREATE","userInfo":{"username":"ada"},
	"object":{"metadata":{"name":"web"}},"oldObject":null,"dryRun":false}}
`

// This example handles one admission request without a server. It decodes the review, decides, and encodes the
// response.
func Example() {
	req, err := review.Decode([]byte(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	decision := review.Allow()
	if req.Namespace == "shop" {
		decision.Warn("the shop moves to another cluster in May")
	}
	fmt.Printf("%s", review.AppendValidating(nil, req, decision))
	// Output:
	// {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"705ab4f5","allowed":true,"warnings":["the shop moves to another cluster in May"]}}
}

func ExampleDecode() {
	req, err := review.Decode([]byte(body))
	fmt.Println(req.Version, req.Operation, req.Kind.Kind, req.UserInfo.Username, err)
	fmt.Printf("object %s, oldObject %t\n", req.Object, req.OldObject != nil)
	// Output:
	// v1 CREATE Pod ada <nil>
	// object {"metadata":{"name":"web"}}, oldObject false
}

// An error says what is wrong and where, and keeps the parts that could be read.
func ExampleDecode_error() {
	_, err := review.Decode([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5","dryRun":"yes"}}`))
	fmt.Println(err)

	var e *review.Error
	if errors.As(err, &e) {
		fmt.Println(e.Version, e.UID, e.Pointer, errors.Is(err, review.ErrShape))
	}
	// Output:
	// cannot read the AdmissionReview: request.dryRun: wrong type: want boolean, got string at byte 98
	// v1 705ab4f5 /request/dryRun true
}

// Deny completes a status that is only partly set.
func ExampleDeny() {
	denial := review.Deny(metav1.Status{Message: "images must come from registry.example.com"}).Denial()
	fmt.Println(denial.Code, denial.Reason, denial.Message)

	denial = review.Deny(metav1.Status{Code: 200, Reason: metav1.StatusReasonConflict}).Denial()
	fmt.Println(denial.Code, denial.Reason, denial.Message)
	// Output:
	// 403 Forbidden images must come from registry.example.com
	// 409 Conflict Conflict
}

func ExampleDecision_Warn() {
	decision := review.Allow()
	decision.Warn("spec.tier is deprecated\nuse spec.class")
	decision.Warn("use spec.class")
	for _, warning := range decision.Warnings() {
		fmt.Println(warning)
	}
	// Output:
	// spec.tier is deprecated
	// use spec.class
}

func ExampleAppendValidating() {
	req, err := review.Decode([]byte(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	decision := review.Deny(metav1.Status{Message: "not on a Friday"})
	if err := decision.Audit("policy", "no-friday-v2"); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s", review.AppendValidating(nil, req, decision))
	// Output:
	// {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"705ab4f5","allowed":false,"status":{"metadata":{},"status":"Failure","message":"not on a Friday","reason":"Forbidden","code":403},"auditAnnotations":{"policy":"no-friday-v2"}}}
}

func ExampleAppendMutating() {
	req, err := review.Decode([]byte(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	change := patch.Patch{{
		Op:    patch.Add,
		Path:  patch.Pointer("").Append("metadata").Append("labels"),
		Value: json.RawMessage(`{"team":"shop"}`),
	}}
	fmt.Printf("%s", review.AppendMutating(nil, req, review.Allow(), change))
	// Output:
	// {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"705ab4f5","allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7InRlYW0iOiJzaG9wIn19XQ==","patchType":"JSONPatch"}}
}
