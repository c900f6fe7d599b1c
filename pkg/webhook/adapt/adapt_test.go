// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/adapt"
)

// pods implements the interfaces of controller-runtime. Its methods record their calls in seen,
// and return err and warnings.
type pods struct {
	err      error
	warnings admission.Warnings
	seen     []string
}

func (p *pods) Default(ctx context.Context, obj *corev1.Pod) error {
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	p.seen = append(p.seen, "default "+string(req.UID)+" "+obj.Name)
	obj.Spec.NodeName = "n"
	return p.err
}

func (p *pods) ValidateCreate(_ context.Context, obj *corev1.Pod) (admission.Warnings, error) {
	p.seen = append(p.seen, "create "+obj.Name)
	return p.warnings, p.err
}

func (p *pods) ValidateUpdate(_ context.Context, oldObj, newObj *corev1.Pod) (admission.Warnings, error) {
	p.seen = append(p.seen, "update "+oldObj.Name+" "+newObj.Name)
	return p.warnings, p.err
}

func (p *pods) ValidateDelete(_ context.Context, obj *corev1.Pod) (admission.Warnings, error) {
	p.seen = append(p.seen, "delete "+obj.Name)
	return p.warnings, p.err
}

var everything = webhook.Rules(admissionregistrationv1.RuleWithOperations{
	Operations: []admissionregistrationv1.OperationType{"*"},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
})

var (
	mutating   = admissionregistrationv1.MutatingWebhook{Name: "m.example.com", Rules: everything}
	validating = admissionregistrationv1.ValidatingWebhook{Name: "v.example.com", Rules: everything}
)

// ask sends one review and returns the response. It fails the test if the HTTP code is not wantCode.
func ask(t *testing.T, hook http.Handler, operation, object, oldObject string, wantCode int) admissionv1.AdmissionResponse {
	t.Helper()
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},` +
		`"resource":{"version":"v1","resource":"pods"},"operation":"` + operation + `","object":` + object + `,"oldObject":` + oldObject + `}}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	if w.Code != wantCode {
		t.Fatalf("status %d, want %d: %s", w.Code, wantCode, w.Body)
	}
	var review admissionv1.AdmissionReview
	if wantCode == http.StatusOK {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(w.Body.Bytes(), &review); err != nil {
			t.Fatal(err)
		}
		return *review.Response
	}
	return admissionv1.AdmissionResponse{}
}

const (
	podA = `{"metadata":{"name":"a"},"spec":{"containers":[]}}`
	podB = `{"metadata":{"name":"b"},"spec":{"containers":[]}}`
)

func TestDefaulter(t *testing.T) {
	d := &pods{}
	hook := adapt.Defaulter(mutating, d)
	resp := ask(t, hook, "CREATE", podA, "null", 200)
	if want := `[{"op":"add","path":"/spec/nodeName","value":"n"}]`; string(resp.Patch) != want {
		t.Errorf("patch %s, want %s", resp.Patch, want)
	}
	ask(t, hook, "DELETE", "null", podA, 200)
	if got := strings.Join(d.seen, ", "); got != "default u a" {
		t.Errorf("calls %q: want one for the create and none for the delete", got)
	}
}

func TestErrorsDenyAsTheyDoInControllerRuntime(t *testing.T) {
	gr := corev1.Resource("pods")
	for _, row := range []struct {
		reason   string
		err      error
		wantCode int32
		wantText string
	}{
		{"a plain error", errors.New("no"), 403, "no"},
		{"an API error", apierrors.NewConflict(gr, "a", errors.New("taken")), 409, `Operation cannot be fulfilled on pods "a": taken`},
		{"an API error of the 500s", apierrors.NewServiceUnavailable("later"), 503, "later"},
	} {
		for _, hook := range []http.Handler{
			adapt.Defaulter(mutating, &pods{err: row.err}),
			adapt.Validator(validating, &pods{err: row.err}),
		} {
			resp := ask(t, hook, "CREATE", podA, "null", 200)
			if resp.Allowed || resp.Result.Code != row.wantCode || resp.Result.Message != row.wantText || resp.Patch != nil {
				t.Errorf("%s: got allowed %v, %+v, patch %s; want denied with %d %q", row.reason, resp.Allowed, resp.Result, resp.Patch, row.wantCode, row.wantText)
			}
		}
	}
}

func TestValidatorIsCalledByOperation(t *testing.T) {
	v := &pods{warnings: admission.Warnings{"careful"}}
	hook := adapt.Validator(validating, v)
	for _, call := range [][3]string{{"CREATE", podA, "null"}, {"UPDATE", podB, podA}, {"DELETE", "null", podA}} {
		if resp := ask(t, hook, call[0], call[1], call[2], 200); !resp.Allowed || len(resp.Warnings) != 1 || resp.Warnings[0] != "careful" {
			t.Errorf("%s: got %+v, want allowed with a warning", call[0], resp)
		}
	}
	ask(t, hook, "CONNECT", podA, "null", 200)
	if got, want := strings.Join(v.seen, ", "), "create a, update a b, delete a"; got != want {
		t.Errorf("calls %q, want %q", got, want)
	}
}

func TestHandlers(t *testing.T) {
	respond := func(resp admission.Response) admission.Handler {
		return admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return resp })
	}
	patched := admission.Patched("", jsonpatch.NewOperation("add", "/spec/nodeName", "n")).WithWarnings("careful")
	patched.AuditAnnotations = map[string]string{"kept": "1", "not/kept": "2"}

	resp := ask(t, adapt.MutatingHandler(mutating, respond(patched)), "CREATE", podA, "null", 200)
	if want := `[{"op":"add","path":"/spec/nodeName","value":"n"}]`; !resp.Allowed || string(resp.Patch) != want || resp.PatchType == nil {
		t.Errorf("got %+v, want the patch %s", resp, want)
	}
	if len(resp.Warnings) != 1 || len(resp.AuditAnnotations) != 1 || resp.AuditAnnotations["kept"] != "1" {
		t.Errorf("got warnings %q, annotations %v", resp.Warnings, resp.AuditAnnotations)
	}
	resp = ask(t, adapt.ValidatingHandler(validating, respond(patched)), "CREATE", podA, "null", 200)
	if !resp.Allowed || resp.Patch != nil || resp.PatchType != nil {
		t.Errorf("a validating hook sent a patch: %+v", resp)
	}
	resp = ask(t, adapt.MutatingHandler(mutating, respond(admission.Denied("no"))), "CREATE", podA, "null", 200)
	if resp.Allowed || resp.Result.Code != 403 || resp.Result.Message != "no" {
		t.Errorf("got %+v, want a denial", resp)
	}
	broken := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, Patch: []byte("{")}}
	ask(t, adapt.MutatingHandler(mutating, respond(broken)), "CREATE", podA, "null", 500)
}

// A deprecated CustomDefaulter must work with MutatingHandler and admission.WithCustomDefaulter.
func TestDeprecatedDefaulterThroughTheHandler(t *testing.T) {
	wh := admission.WithCustomDefaulter(clientgoscheme.Scheme, &corev1.Pod{}, custom{})
	resp := ask(t, adapt.MutatingHandler(mutating, wh.Handler), "CREATE", podA, "null", 200)
	if !strings.Contains(string(resp.Patch), `"path":"/spec/nodeName"`) {
		t.Errorf("patch %s", resp.Patch)
	}
}

type custom struct{}

func (custom) Default(_ context.Context, obj runtime.Object) error {
	obj.(*corev1.Pod).Spec.NodeName = "n"
	return nil
}
