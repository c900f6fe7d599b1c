// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// rounds counts the calls of a webhook for one request to the API server. An AdmissionReview does not have this number,
// but with tracing, all calls for one request have the same trace id.
type rounds struct {
	now  func() time.Time
	mu   sync.Mutex
	seen map[string]*round
}

type round struct {
	number int
	last   time.Time
}

// longestRequest is how long rounds remembers a request. A request to the API server takes at most 34 seconds.
const longestRequest = time.Minute

func newRounds(now func() time.Time) *rounds { return &rounds{now: now, seen: map[string]*round{}} }

// of returns the round of a call, from 1, or 0 if it is unknown.
func (r *rounds) of(traceparent, webhook string, request *admissionv1.AdmissionRequest) int {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 {
		return 0
	}
	// The API server admits an update again after a conflict, and may admit a deletion in two steps. These calls are
	// not reinvocations. They differ in the state of the old object. When a collection is deleted, the calls differ in
	// the names of the objects.
	key := strings.Join([]string{parts[1], webhook, string(request.Operation), nameIn(request.Object.Raw, request.OldObject.Raw), stateOf(request.OldObject.Raw)}, "\n")
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for k, s := range r.seen {
		if now.Sub(s.last) > longestRequest {
			delete(r.seen, k)
		}
	}
	s := r.seen[key]
	if s == nil {
		s = &round{}
		r.seen[key] = s
	}
	s.number++
	s.last = now
	return s.number
}

// stateOf returns a text that identifies the state of a stored object.
func stateOf(object []byte) string {
	var head struct {
		Metadata struct{ ResourceVersion, DeletionTimestamp string }
	}
	if json.Unmarshal(object, &head) != nil {
		return ""
	}
	return head.Metadata.ResourceVersion + " " + head.Metadata.DeletionTimestamp
}
