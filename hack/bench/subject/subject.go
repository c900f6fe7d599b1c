// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"io"
	"log/slog"
	"net/http"
	"slices"

	"github.com/go-logr/logr"
)

// logger is what a library gets that takes one: a production logger, which has nothing to
// write here.
var logger = logr.FromSlogHandler(slog.NewJSONHandler(io.Discard, nil))

// The names of the candidates.
const (
	Admitkit          = "admitkit"
	ControllerRuntime = "controller-runtime"
	Kubewebhook       = "kubewebhook"
	Floor             = "floor"
	Harness           = "harness"
)

// The shapes of the object in the handler.
const (
	Typed        = "typed"        // corev1.Pod
	Projection   = "projection"   // what the handler needs of a Pod
	Unstructured = "unstructured" // a Pod
	Custom       = "custom"       // a custom resource of a Go type
)

// A Subject is one handler and the review it is sent.
type Subject struct {
	Candidate string
	Shape     string // empty for the floor
	Handler   http.Handler
	Body      []byte
	object    []byte // in Body
	decode    func(object []byte) (any, error)
}

// Name tells a subject from the others of its row.
func (s *Subject) Name() string {
	if s.Shape == "" {
		return s.Candidate
	}
	return s.Candidate + " " + s.Shape
}

// A Row is one thing that handlers do, done by several subjects.
type Row struct {
	Name, Size string
	Subjects   []*Subject
}

// Baseline is the index of controller-runtime's subject that does what subject i does. It has
// no projections; what it does instead is decode the whole type.
func (r *Row) Baseline(i int) int {
	shape := r.Subjects[i].Shape
	if shape == Projection {
		shape = Typed
	}
	return slices.IndexFunc(r.Subjects, func(s *Subject) bool {
		return s.Candidate == ControllerRuntime && (s.Shape == shape || shape == "")
	})
}

// Harness is the index of the subject that does nothing.
func (r *Row) Harness() int {
	return slices.IndexFunc(r.Subjects, func(s *Subject) bool { return s.Candidate == Harness })
}

// Only returns the row with the subjects that keep says, or nil without a baseline among them.
func (r *Row) Only(keep func(*Subject) bool) *Row {
	kept := &Row{Name: r.Name, Size: r.Size}
	for _, s := range r.Subjects {
		if keep(s) {
			kept.Subjects = append(kept.Subjects, s)
		}
	}
	for i := range kept.Subjects {
		if kept.Baseline(i) < 0 {
			return nil
		}
	}
	return kept
}

// IsYardstick tells whether the subject is there to compare others with.
func (s *Subject) IsYardstick() bool { return s.Candidate == Floor || s.Candidate == Harness }

// harness does nothing, and so measures what the benchmark itself costs: to make a request and
// to record the response.
func harness(http.ResponseWriter, *http.Request) {}

var fixedAnswer = []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}`)

// floor reads the body and gives a fixed answer: the least that a handler does which reads
// its body like that.
func floor(w http.ResponseWriter, r *http.Request) {
	if _, err := io.ReadAll(r.Body); err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(fixedAnswer)
}
