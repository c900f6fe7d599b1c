// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Call sends the review in Body to the handler, without a network, and returns the recorded response.
func (s *Subject) Call() *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/bench?timeout=10s", bytes.NewReader(s.Body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	return w
}

// Verify calls every subject once. It fails unless each one admits the object and its patched
// object equals that of controller-runtime.
func (r *Row) Verify() error {
	results := make([]any, len(r.Subjects))
	for i, s := range r.Subjects {
		if s.Candidate == Harness {
			continue
		}
		patched, err := s.outcome()
		if err != nil {
			return fmt.Errorf("%s %s: %s: %w", r.Size, r.Name, s.Name(), err)
		}
		if results[i], err = s.decode(patched); err != nil {
			return fmt.Errorf("%s %s: %s: cannot decode the patched object: %w", r.Size, r.Name, s.Name(), err)
		}
	}
	for i, s := range r.Subjects {
		if !s.IsReference() && !equality.Semantic.DeepEqual(results[i], results[r.Baseline(i)]) {
			return fmt.Errorf("%s %s: %s results in another object than controller-runtime:\n%s", r.Size, r.Name, s.Name(), s.Call().Body)
		}
	}
	return nil
}

// outcome calls the subject and returns the object after the patch of the response. It fails unless the response admits
// the object.
func (s *Subject) outcome() ([]byte, error) {
	w := s.Call()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		return nil, fmt.Errorf("cannot decode the response, HTTP %d: %w", w.Code, err)
	}
	switch {
	case w.Code != http.StatusOK || review.Response == nil:
		return nil, fmt.Errorf("HTTP %d: %.500s", w.Code, w.Body)
	case !review.Response.Allowed:
		return nil, errors.New("the response does not admit the object")
	case len(review.Response.Patch) == 0:
		return s.object, nil
	}
	patch, err := jsonpatch.DecodePatch(review.Response.Patch)
	if err != nil {
		return nil, err
	}
	return patch.Apply(s.object)
}

func decode[T any](object []byte) (any, error) {
	into := new(T)
	return into, json.Unmarshal(object, into)
}
