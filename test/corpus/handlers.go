// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/received"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// A handler returns the patch for a request. ServeHTTP sends it unchanged.
type handler func(r *review.Request) (patch.Patch, error)

// An edit changes a Pod, or the template of a Pod.
type edit func(r *review.Request, p *corev1.Pod) error

// A denial is an error that rejects the object. Any other error is a failure of the webhook.
type denial string

func (d denial) Error() string { return string(d) }

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	serve(w, req, func(r *review.Request) ([]byte, error) {
		d, p, err := h.decide(r)
		return review.AppendMutating(nil, r, d, p), err
	})
}

// serve decodes the review of a request and sends the answer to it.
func serve(w http.ResponseWriter, req *http.Request, answer func(r *review.Request) ([]byte, error)) {
	var body bytes.Buffer
	body.Grow(int(max(req.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(req.Body)
	var r *review.Request
	if err == nil {
		r, err = review.Decode(body.Bytes())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, err := answer(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(out)
}

func (h handler) decide(r *review.Request) (*review.Decision, patch.Patch, error) {
	if r.Object == nil {
		return review.Allow(), nil, nil
	}
	p, err := h(r)
	var no denial
	if errors.As(err, &no) {
		return review.Deny(metav1.Status{Reason: metav1.StatusReasonForbidden, Message: string(no)}), nil, nil
	}
	return review.Allow(), p, err
}

// typed returns a handler that decodes the object into a T and changes the T. Fields that T lacks stay.
func typed[T any](change func(r *review.Request, object *T) error) handler {
	return func(r *review.Request) (patch.Patch, error) {
		var base received.Document
		object := new(T)
		if _, err := base.Decode(r.Object, 0, 0, object); err != nil {
			return nil, err
		}
		if err := change(r, object); err != nil {
			return nil, err
		}
		return base.Diff(object)
	}
}

func pods(e edit) handler { return typed(e) }

func deployments(e edit) handler {
	return typed(onTemplate(func(d *appsv1.Deployment) *corev1.PodTemplateSpec { return &d.Spec.Template }, e))
}

// onTemplate applies an edit of Pods to the Pod template of an object.
func onTemplate[T any](template func(object *T) *corev1.PodTemplateSpec, e edit) func(r *review.Request, object *T) error {
	return func(r *review.Request, object *T) error {
		t := template(object)
		p := corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
		err := e(r, &p)
		t.ObjectMeta, t.Spec = p.ObjectMeta, p.Spec
		return err
	}
}

// changes returns an edit from a function that cannot fail and does not depend on the request.
func changes[T any](change func(object T)) func(r *review.Request, object T) error {
	return func(_ *review.Request, object T) error {
		change(object)
		return nil
	}
}

// changesContainers returns an edit of the init containers and the regular containers.
func changesContainers(change func(c *corev1.Container)) edit {
	return changes(func(p *corev1.Pod) {
		for _, c := range everyContainer(p) {
			change(c)
		}
	})
}

// changesAppContainers returns an edit of the regular containers.
func changesAppContainers(change func(c *corev1.Container)) edit {
	return changes(func(p *corev1.Pod) {
		for _, c := range appContainers(p) {
			change(c)
		}
	})
}

// inOrder returns an edit that makes several edits in order. It stops at the first error.
func inOrder(edits ...edit) edit {
	return func(r *review.Request, p *corev1.Pod) error {
		for _, e := range edits {
			if err := e(r, p); err != nil {
				return err
			}
		}
		return nil
	}
}

// changesJSON returns a handler that decodes the object into a T, changes it and encodes it again. Its patch is the
// difference from the received document to that encoding. If onlyOwn is set, it is the difference from the encoding of
// the unchanged T instead.
func changesJSON[T any](change func(*T), onlyOwn bool) handler {
	return func(r *review.Request) (patch.Patch, error) {
		before, object := r.Object, new(T)
		err := json.Unmarshal(before, object)
		if err == nil && onlyOwn {
			before, err = json.Marshal(object)
		}
		if err != nil {
			return nil, err
		}
		change(object)
		after, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		return patch.Documents(before, after)
	}
}

// document returns a handler that decodes the object without types and returns hand-written
// operations.
func document(operations func(doc map[string]any) patch.Patch) handler {
	return func(r *review.Request) (patch.Patch, error) {
		var doc map[string]any
		if err := json.Unmarshal(r.Object, &doc); err != nil {
			return nil, err
		}
		return operations(doc), nil
	}
}

// add returns an add operation.
func add(at patch.Pointer, value any) patch.Operation {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // all values are constants of this package
	}
	return patch.Operation{Op: patch.Add, Path: at, Value: raw}
}

// member returns the value at a path in doc. A null counts as missing.
func member[T any](doc map[string]any, names ...string) (value T, ok bool) {
	var at any = doc
	for _, name := range names {
		inner, _ := at.(map[string]any)
		at = inner[name]
	}
	value, ok = at.(T)
	return value, ok
}

// put returns an operation that sets doc[names[0]][names[1]]… and creates missing parents.
func put(doc map[string]any, value any, names ...string) patch.Operation {
	var at patch.Pointer
	for i, name := range names {
		at = at.Append(name)
		inner, ok := doc[name].(map[string]any)
		if !ok {
			for j := len(names) - 1; j > i; j-- {
				value = map[string]any{names[j]: value}
			}
			break
		}
		doc = inner
	}
	return add(at, value)
}
