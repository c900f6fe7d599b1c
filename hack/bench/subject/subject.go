// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"io"
	"log/slog"
	"net/http"
	"slices"

	"github.com/go-logr/logr"
)

// logger is the logger for libraries that need one: a production logger that discards its output.
var logger = logr.FromSlogHandler(slog.NewJSONHandler(io.Discard, nil))

// Names of the candidates: three libraries, and the handlers floor and harness, which exist only for comparison.
const (
	Admitkit          = "admitkit"
	ControllerRuntime = "controller-runtime"
	Kubewebhook       = "kubewebhook"
	Floor             = "floor"
	Harness           = "harness"
)

// Shapes: the kinds of Go types into which a handler can receive its object.
const (
	Typed        = "typed"        // corev1.Pod
	Projection   = "projection"   // a struct with the needed fields of a Pod
	Unstructured = "unstructured" // unstructured.Unstructured with a Pod
	Custom       = "custom"       // the Go type of a custom resource
)

// A Subject is one handler and the review that it receives.
type Subject struct {
	Candidate string
	Shape     string // empty for the floor and the harness
	Handler   http.Handler
	Body      []byte
	object    []byte // the object in Body
	decode    func(object []byte) (any, error)
}

// Name returns a name that is unique in the row.
func (s *Subject) Name() string {
	if s.Shape == "" {
		return s.Candidate
	}
	return s.Candidate + " " + s.Shape
}

// A Row is one task for a handler, and the subjects that perform it.
type Row struct {
	Name, Size string
	Subjects   []*Subject
}

// Baseline returns the index of the controller-runtime subject to compare subject i with. For a projection,
// that subject decodes the whole type.
func (r *Row) Baseline(i int) int {
	shape := r.Subjects[i].Shape
	if shape == Projection {
		shape = Typed
	}
	return slices.IndexFunc(r.Subjects, func(s *Subject) bool {
		return s.Candidate == ControllerRuntime && (s.Shape == shape || shape == "")
	})
}

// Harness returns the index of the subject that does nothing.
func (r *Row) Harness() int {
	return slices.IndexFunc(r.Subjects, func(s *Subject) bool { return s.Candidate == Harness })
}

// Only returns the row with the subjects that keep accepts, or nil if none of them is a baseline.
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

// IsReference reports whether the subject is the harness or the floor, which exist only for comparison.
func (s *Subject) IsReference() bool { return s.Candidate == Floor || s.Candidate == Harness }

// harness does nothing. It measures the cost of the benchmark itself: creating a request and
// recording the response.
func harness(http.ResponseWriter, *http.Request) {}

var fixedAnswer = []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}`)

// floor reads the body and sends a fixed response. This is the least that a handler can do.
func floor(w http.ResponseWriter, r *http.Request) {
	if _, err := io.ReadAll(r.Body); err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(fixedAnswer)
}
