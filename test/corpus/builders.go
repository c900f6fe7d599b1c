// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// A tree is a decoded JSON document.
type tree = map[string]any

// registered returns the case after change has modified its registration.
func (c Case) registered(change func(w *admissionregistrationv1.MutatingWebhook)) Case {
	change(&c.Webhook)
	return c
}

// onlyLabelled returns a function that adds an objectSelector for the label to a registration.
func onlyLabelled(key, value string) func(w *admissionregistrationv1.MutatingWebhook) {
	return func(w *admissionregistrationv1.MutatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func onlyVersion(version string) func(w *admissionregistrationv1.MutatingWebhook) {
	return func(w *admissionregistrationv1.MutatingWebhook) { w.AdmissionReviewVersions = []string{version} }
}

func neverReinvoked(w *admissionregistrationv1.MutatingWebhook) {
	w.ReinvocationPolicy = ptr.To(admissionregistrationv1.NeverReinvocationPolicy)
}

// kindCase returns a case of a webhook for creates and updates of the resource.
func kindCase(name, groupVersion, resource string, h http.Handler) Case {
	group, version, found := strings.Cut(groupVersion, "/")
	if !found {
		group, version = "", groupVersion
	}
	c := Case{Name: name, Webhook: registration(name, group, resource, create, update), New: func() http.Handler { return h }}
	c.Webhook.Rules[0].APIVersions = []string{version}
	return c
}

// onKind returns a case of a webhook that decodes objects into the Go type T and applies change.
func onKind[T any](name, groupVersion, resource string, change func(r *review.Request, object *T) error) Case {
	return kindCase(name, groupVersion, resource, typed(change))
}

// onTemplates returns a case of a webhook that applies an edit to the Pod template of an object.
func onTemplates[T any](name, groupVersion, resource string, template func(object *T) *corev1.PodTemplateSpec, e edit) Case {
	return onKind(name, groupVersion, resource, onTemplate(template, e))
}

// mapped returns a handler that decodes the object into a map and applies change. Numbers keep their text.
func mapped(change func(r *review.Request, doc tree) error) handler {
	return func(r *review.Request) (patch.Patch, error) {
		decoder := json.NewDecoder(bytes.NewReader(r.Object))
		decoder.UseNumber()
		var doc tree
		if err := decoder.Decode(&doc); err != nil {
			return nil, err
		}
		if err := change(r, doc); err != nil {
			return nil, err
		}
		after, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		return patch.Documents(r.Object, after)
	}
}

// An op is a hand-written patch operation.
type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	Value any    `json:"value,omitempty"`
}

// byHand returns a handler that decodes the review and encodes the response with the standard library,
// as webhooks without a framework do.
func byHand(decide func(r *admissionv1.AdmissionRequest, doc tree) ([]op, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var in admissionv1.AdmissionReview
		if err == nil {
			err = json.Unmarshal(body, &in)
		}
		var doc tree
		if err == nil {
			err = json.Unmarshal(in.Request.Object.Raw, &doc)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true}}
		ops, err := decide(in.Request, doc)
		var no denial
		switch {
		case errors.As(err, &no):
			out.Response.Allowed, out.Response.Result = false, &metav1.Status{Message: string(no), Code: http.StatusForbidden}
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		case len(ops) > 0:
			out.Response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
			if out.Response.Patch, err = json.Marshal(ops); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}

// ofHandler returns a function for Case.New that always returns the same handler.
func ofHandler(h http.Handler) func() http.Handler { return func() http.Handler { return h } }

// pointerToken escapes a name for a JSON pointer.
func pointerToken(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// at returns the object at a path of doc. It creates missing objects.
func at(doc tree, names ...string) tree {
	for _, name := range names {
		next, ok := doc[name].(tree)
		if !ok {
			next = tree{}
			doc[name] = next
		}
		doc = next
	}
	return doc
}

// textAt returns the string at a path of doc, or "".
func textAt(doc tree, names ...string) string {
	s, _ := member[string](doc, names...)
	return s
}

// objectsAt returns the elements of a list that are objects.
func objectsAt(doc tree, names ...string) []tree {
	list, _ := member[[]any](doc, names...)
	var out []tree
	for _, e := range list {
		if o, ok := e.(tree); ok {
			out = append(out, o)
		}
	}
	return out
}

func simplePod(annotations map[string]string) *corev1.Pod {
	return samplePod(annotations, corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}})
}

func labelledPod(key, value string) *corev1.Pod {
	p := simplePod(nil)
	p.Labels = map[string]string{key: value}
	return p
}

// readsV1 reports whether the body of the request is a v1 review. The body can be read again afterwards.
func readsV1(req *http.Request) bool {
	body, err := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	var kind metav1.TypeMeta
	return err == nil && json.Unmarshal(body, &kind) == nil && kind.APIVersion == admissionv1.SchemeGroupVersion.String()
}
