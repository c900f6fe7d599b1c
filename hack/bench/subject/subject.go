// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/hack/bench/document"
)

// logger is what every library gets: a production logger, which has nothing to write here.
var logger = logr.FromSlogHandler(slog.NewJSONHandler(io.Discard, nil))

// The names of the candidates. All ratios are to Baseline.
const (
	Admitkit = "admitkit"
	Baseline = "controller-runtime"
	Floor    = "floor"
)

// A Subject is one handler and the review it is sent.
type Subject struct {
	Candidate string
	Shape     string // of the object in the handler: typed, projection…
	Handler   http.Handler
	Body      []byte
}

// Name tells a subject from the others of its row.
func (s *Subject) Name() string {
	if s.Shape == "" {
		return s.Candidate
	}
	return s.Candidate + " " + s.Shape
}

// A Row is one thing that handlers do, done by several subjects with the same review.
type Row struct {
	Name, Size string
	Patches    bool
	Subjects   []*Subject
}

// Rows makes every row for a size.
func Rows(size document.Size) []*Row {
	pod := document.PodReview(size.Pod(), nil)
	rows := []*Row{
		{Name: "validate", Subjects: []*Subject{
			{Baseline, "typed", crValidating(validatePod), pod},
			{Admitkit, "typed", admitkitValidating(validatePod), pod},
			{Admitkit, "projection", admitkitValidating(validateView), pod},
		}},
		{Name: "noop", Subjects: []*Subject{
			{Baseline, "typed", crMutating(nothing[corev1.Pod]), pod},
			{Admitkit, "typed", admitkitMutating(nothing[corev1.Pod]), pod},
			{Admitkit, "projection", admitkitMutating(nothing[podView]), pod},
		}},
		{Name: "mutate", Patches: true, Subjects: []*Subject{
			{Baseline, "typed", crMutating(appendPod), pod},
			{Admitkit, "typed", admitkitMutating(appendPod), pod},
			{Admitkit, "projection", admitkitMutating(appendView), pod},
		}},
		{Name: "mutate-prepend", Patches: true, Subjects: []*Subject{
			{Baseline, "typed", crMutating(prependPod), pod},
			{Admitkit, "typed", admitkitMutating(prependPod), pod},
			{Admitkit, "projection", admitkitMutating(prependView), pod},
		}},
	}
	for _, row := range rows {
		row.Size = size.Name
		row.Subjects = append([]*Subject{{Candidate: Floor, Handler: http.HandlerFunc(floor), Body: pod}}, row.Subjects...)
	}
	return rows
}

var fixedAnswer = []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}`)

// floor reads the body and gives a fixed answer: what no handler of this kind can be below,
// unless it reads better.
func floor(w http.ResponseWriter, r *http.Request) {
	if _, err := io.ReadAll(r.Body); err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(fixedAnswer)
}
