// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	apiv1 "github.com/admitkit/admitkit/hack/bench/api/v1"
	"github.com/admitkit/admitkit/hack/bench/document"
)

// Rows returns all rows of the benchmark, with objects and reviews of the given size.
func Rows(size document.Size) []*Row {
	pod, db := size.Pod(), size.Database()
	newPod, newDB := document.WithUnknown(pod, "containers"), document.WithUnknown(db, "users")
	create := reviews{document.PodReview(pod, nil), pod, document.DatabaseReview(db, nil), db}
	update := reviews{document.PodReview(pod, pod), pod, document.DatabaseReview(db, db), db}
	unknown := reviews{document.PodReview(newPod, nil), newPod, document.DatabaseReview(newDB, nil), newDB}

	rows := []*Row{
		create.row("validate", slices.Concat(
			validating(Typed, onPod), one(Kubewebhook, Typed, kwhValidating(onPod.validate)),
			one(Admitkit, Projection, admitkitValidating(onView.validate, nil)),
			validating(Unstructured, onMap), validating(Custom, onDatabase))),
		create.row("noop", slices.Concat(noop(), one(Kubewebhook, Typed, kwhMutating(nothing[corev1.Pod])))),
		create.row("mutate", slices.Concat(inject(), one(Kubewebhook, Typed, kwhMutating(onPod.inject)))),
		create.row("mutate-prepend", slices.Concat(
			mutating(Typed, onPod.prepend), one(Admitkit, Projection, admitkitMutating(onView.prepend)),
			mutating(Unstructured, onMap.prepend), mutating(Custom, onDatabase.prepend))),
		update.row("update", slices.Concat(
			validating(Typed, onPod), one(Admitkit, Projection, admitkitValidating(nil, validateAccountUpdate)),
			validating(Unstructured, onMap), validating(Custom, onDatabase))),
		unknown.row("noop-unknown", noop()),
		unknown.row("mutate-unknown", inject()),
	}
	for _, r := range rows {
		r.Size = size.Name
	}
	return rows
}

func noop() []Subject {
	return slices.Concat(
		mutating(Typed, nothing[corev1.Pod]), one(Admitkit, Projection, admitkitMutating(nothing[podView])),
		mutating(Unstructured, nothing[unstructured.Unstructured]), mutating(Custom, nothing[apiv1.Database]))
}

func inject() []Subject {
	return slices.Concat(
		mutating(Typed, onPod.inject), one(Admitkit, Projection, admitkitMutating(onView.inject)),
		mutating(Unstructured, onMap.inject), mutating(Custom, onDatabase.inject))
}

func one(candidate, shape string, handler http.Handler) []Subject {
	return []Subject{{Candidate: candidate, Shape: shape, Handler: handler}}
}

// An object is a pointer to an API type.
type object[T any] interface {
	*T
	runtime.Object
}

func mutating[T any, O object[T]](shape string, mutate func(*T) error) []Subject {
	return append(
		one(ControllerRuntime, shape, crMutating(func(o O) error { return mutate(o) })),
		one(Admitkit, shape, admitkitMutating(mutate))...)
}

func validating[T any, O object[T]](shape string, f functions[T]) []Subject {
	return append(
		one(ControllerRuntime, shape, crValidating(
			func(o O) error { return f.validate(o) }, func(old, o O) error { return f.validateUpdate(old, o) })),
		one(Admitkit, shape, admitkitValidating(f.validate, f.validateUpdate))...)
}

// reviews has the reviews that the subjects of a row receive, and the objects in them.
type reviews struct{ podReview, pod, databaseReview, database []byte }

// row returns a row with the harness, the floor and these subjects.
func (v *reviews) row(name string, subjects []Subject) *Row {
	r := &Row{Name: name}
	for _, s := range slices.Concat(one(Harness, "", http.HandlerFunc(harness)), one(Floor, "", http.HandlerFunc(floor)), subjects) {
		s.Body, s.object, s.decode = v.podReview, v.pod, decode[corev1.Pod]
		if s.Shape == Custom {
			s.Body, s.object, s.decode = v.databaseReview, v.database, decode[apiv1.Database]
		}
		r.Subjects = append(r.Subjects, &s)
	}
	return r
}
