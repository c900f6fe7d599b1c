// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A builder returns an instance of a webhook for its registration.
type builder func(admissionregistrationv1.MutatingWebhook) http.Handler

// A server is a webhook with its own function, which the harness can find here as it can find the methods of a handler.
type server struct {
	function any
	http.Handler
}

// typed builds a webhook whose handler gets the object as a Go type.
func typed[T any](mutate func(*webhook.Request[T]) error) builder {
	return withState(func() func(*webhook.Request[T]) error { return mutate })
}

// withState is like typed, for a webhook with memory. start creates the memory of an instance and returns its handler.
func withState[T any](start func() func(*webhook.Request[T]) error) builder {
	return func(reg admissionregistrationv1.MutatingWebhook) http.Handler {
		mutate := start()
		return server{mutate, webhook.Mutating(reg, func(_ context.Context, req *webhook.Request[T]) error { return mutate(req) })}
	}
}

// templates builds a webhook whose handler gets the Pod template of a workload.
func templates(mutate func(*webhook.Request[corev1.PodTemplateSpec]) error, custom ...webhook.Workload) builder {
	return func(reg admissionregistrationv1.MutatingWebhook) http.Handler {
		return server{mutate, webhook.MutatingPodTemplates(reg,
			func(_ context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error { return mutate(req) }, custom...)}
	}
}

// An operation is one operation of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func add(path string, value any) operation { return operation{Op: "add", Path: path, Value: value} }

func replace(path string, value any) operation {
	return operation{Op: "replace", Path: path, Value: value}
}

// errDenied is wrapped by the errors of a handler that denies the object. For any other error, the request fails.
var errDenied = errors.New("denied")

// raw builds a webhook without pkg/webhook: it decodes the AdmissionReview, and handle returns the operations of the
// patch.
func raw(handle func(*admissionv1.AdmissionRequest, object) ([]operation, error)) builder {
	return rawWithState(func() func(*admissionv1.AdmissionRequest, object) ([]operation, error) { return handle })
}

// rawWithState is like raw, for a webhook with memory. start creates the memory of an instance and returns its handler.
func rawWithState(start func() func(*admissionv1.AdmissionRequest, object) ([]operation, error)) builder {
	return func(admissionregistrationv1.MutatingWebhook) http.Handler {
		handle := start()
		return server{handle, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serveRaw(w, r, handle) })}
	}
}

func serveRaw(w http.ResponseWriter, r *http.Request,
	handle func(*admissionv1.AdmissionRequest, object) ([]operation, error)) {
	defer func() {
		if p := recover(); p != nil {
			http.Error(w, fmt.Sprint("panic: ", p), http.StatusInternalServerError)
		}
	}()
	var in admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request == nil {
		http.Error(w, "the body is not an AdmissionReview with a request", http.StatusBadRequest)
		return
	}
	out := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Response: &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true},
	}
	var obj object
	if err := json.Unmarshal(in.Request.Object.Raw, &obj); err != nil {
		http.Error(w, "the object is not JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	ops, err := handle(in.Request, obj)
	switch {
	case errors.Is(err, errDenied):
		out.Response.Allowed = false
		out.Response.Result = &metav1.Status{Message: err.Error(), Code: http.StatusForbidden}
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	case len(ops) > 0:
		patchType := admissionv1.PatchTypeJSONPatch
		out.Response.PatchType = &patchType
		if out.Response.Patch, err = json.Marshal(ops); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		return // the client has closed the connection
	}
}

// hook returns a registration with these rules. Cases sets the other fields.
func hook(rules ...admissionregistrationv1.RuleWithOperations) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{Rules: rules}
}

// forNamespaces restricts a registration to Namespaces with a label.
func forNamespaces(reg admissionregistrationv1.MutatingWebhook, key string, values ...string,
) admissionregistrationv1.MutatingWebhook {
	reg.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}}}
	return reg
}

// forObjects restricts a registration to objects with a label.
func forObjects(reg admissionregistrationv1.MutatingWebhook, key string, values ...string,
) admissionregistrationv1.MutatingWebhook {
	reg.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}}}
	return reg
}

// pointer returns the JSON pointer with these tokens, which it escapes.
func pointer(tokens ...any) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(t)))
	}
	return b.String()
}
