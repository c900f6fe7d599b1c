// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// rounds counts how often one request to the API server calls a webhook. Nothing in a review says
// so; but all calls of one request are in one trace, where the API server traces.
type rounds struct {
	now  func() time.Time
	mu   sync.Mutex
	seen map[string]*round
}

type round struct {
	number int
	last   time.Time
}

// A request to the API server takes 34 seconds at the most.
const longestRequest = time.Minute

func newRounds(now func() time.Time) *rounds { return &rounds{now: now, seen: map[string]*round{}} }

// of returns the round of a call, from 1; 0 if it cannot be told.
func (r *rounds) of(traceparent, webhook string, request *admissionv1.AdmissionRequest) int {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 {
		return 0
	}
	// An update that meets another one is admitted anew, and a deletion may be admitted in two steps:
	// these are no reinvocations. The old object tells. So does the name, for a deletion of many.
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

// stateOf tells the states of a stored object apart.
func stateOf(object []byte) string {
	var head struct {
		Metadata struct{ ResourceVersion, DeletionTimestamp string }
	}
	if json.Unmarshal(object, &head) != nil {
		return ""
	}
	return head.Metadata.ResourceVersion + " " + head.Metadata.DeletionTimestamp
}
