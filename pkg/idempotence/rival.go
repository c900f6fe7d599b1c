// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/pkg/patch"
)

// Rival returns a webhook for [Options].Rivals. It is called for every create and update of the tested kinds, and its
// patch makes the changes of edit. The object consists of maps, slices, strings, booleans, int64, float64 and nil. edit
// must be safe to call again: it must not change its own result.
func Rival(name string, edit func(object map[string]any)) Subject {
	all := []string{"*"}
	registration := admissionregistrationv1.MutatingWebhook{
		Name: name, AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: all, APIVersions: all, Resources: all},
		}},
	}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		err := json.NewDecoder(r.Body).Decode(&review)
		if err == nil {
			review.Response, err = edited(review.Request, edit)
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("rival %s: %v", name, err), http.StatusInternalServerError)
			return
		}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
	return Handler(registration, func() http.Handler { return serve })
}

// edited returns the response of a rival to a request. Its patch has the changes that edit makes to the object.
func edited(r *admissionv1.AdmissionRequest, edit func(object map[string]any)) (*admissionv1.AdmissionResponse, error) {
	doc, err := tree.Decode(r.Object.Raw)
	if err != nil {
		return nil, err
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("the object is not a JSON object")
	}
	edit(object)
	operations, err := patch.Documents(r.Object.Raw, tree.Encode(object))
	if err != nil {
		return nil, err
	}
	response := &admissionv1.AdmissionResponse{UID: r.UID, Allowed: true}
	if len(operations) == 0 {
		return response, nil
	}
	kind := admissionv1.PatchTypeJSONPatch
	response.PatchType = &kind
	response.Patch, err = json.Marshal(operations)
	return response, err
}
