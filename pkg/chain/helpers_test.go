// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain"
)

// Failing calls must not write to the log. The error handlers of apimachinery also limit their rate by a
// process-wide clock, which does not work in testing/synctest.
func init() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil
}

// newChain returns an engine that is closed at the end of the test. options has at most one value.
func newChain(tb testing.TB, w chain.Webhooks, options ...chain.Options) *chain.Chain {
	tb.Helper()
	c, err := chain.New(w, append(options, chain.Options{})[0])
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

func admit(tb testing.TB, c chain.Engine, req chain.Request) *chain.Result {
	tb.Helper()
	got, err := c.Admit(tb.Context(), req)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// podRule returns a rule for Pods, by default with all operations.
func podRule(ops ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	if len(ops) == 0 {
		ops = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	}
	return admissionregistrationv1.RuleWithOperations{Operations: ops,
		Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods", "pods/*"}}}
}

func mutatingHook(name string, edit ...func(*admissionregistrationv1.MutatingWebhook)) admissionregistrationv1.MutatingWebhook {
	h := admissionregistrationv1.MutatingWebhook{
		Name: name, Rules: []admissionregistrationv1.RuleWithOperations{podRule()},
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
	for _, f := range edit {
		f(&h)
	}
	return h
}

func validatingHook(name string, edit ...func(*admissionregistrationv1.ValidatingWebhook)) admissionregistrationv1.ValidatingWebhook {
	h := admissionregistrationv1.ValidatingWebhook{
		Name: name, Rules: []admissionregistrationv1.RuleWithOperations{podRule()},
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
	for _, f := range edit {
		f(&h)
	}
	return h
}

func mutating(hooks ...admissionregistrationv1.MutatingWebhook) []*admissionregistrationv1.MutatingWebhookConfiguration {
	return []*admissionregistrationv1.MutatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "mutate"}, Webhooks: hooks}}
}

func validating(hooks ...admissionregistrationv1.ValidatingWebhook) []*admissionregistrationv1.ValidatingWebhookConfiguration {
	return []*admissionregistrationv1.ValidatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "validate"}, Webhooks: hooks}}
}

// A handlerFunc is a webhook whose responses come from a function.
type handlerFunc func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

func (f handlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := f(review.Request)
	if response.UID == "" {
		response.UID = review.Request.UID
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response}); err != nil {
		panic(err)
	}
}

// patching returns a webhook that allows each request with the patch that the function returns. It omits an empty
// patch.
func patching(patch func(*admissionv1.AdmissionRequest) string) handlerFunc {
	return func(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		response := &admissionv1.AdmissionResponse{Allowed: true}
		if p := patch(req); p != "" {
			response.Patch, response.PatchType = []byte(p), ptr.To(admissionv1.PatchTypeJSONPatch)
		}
		return response
	}
}

func always(patch string) func(*admissionv1.AdmissionRequest) string {
	return func(*admissionv1.AdmissionRequest) string { return patch }
}

func allowing() handlerFunc { return patching(always("")) }

func denying(message string) handlerFunc {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: message, Code: 403, Reason: metav1.StatusReasonForbidden}}
	}
}

// addLabel returns a function for patching. Its patch sets a label, and is empty if the object already has that label.
func addLabel(key, value string) func(*admissionv1.AdmissionRequest) string {
	return func(req *admissionv1.AdmissionRequest) string {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(req.Object.Raw, &object); err != nil || object.Labels[key] == value {
			return ""
		}
		if object.Labels == nil {
			return fmt.Sprintf(`[{"op":"add","path":"/metadata/labels","value":{%q:%q}}]`, key, value)
		}
		return fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/%s","value":%q}]`, key, value)
	}
}

var pods = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}

func podJSON(name string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","namespace":"default","labels":{"app":"web"}},` +
		`"spec":{"containers":[{"name":"main","image":"nginx"}]}}`)
}

func createPod(name string) chain.Request {
	return chain.Request{Operation: admissionv1.Create, Resource: pods, Object: podJSON(name)}
}

func contextWithCancelAfter(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(d, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}
