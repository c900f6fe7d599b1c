// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	webhookrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/warning"

	"github.com/admitkit/admitkit/pkg/patch"
)

const webhookName = "sidecar.example.com"

// TestAnswersPassTheAPIServer encodes random decisions and patches for both versions and both kinds of webhook, and passes
// the bytes to the API server's own code: its codec, VerifyAdmissionResponse, ToStatusErr, its warning recorder and
// its annotation check.
func TestAnswersPassTheAPIServer(t *testing.T) {
	for n := range uint64(1_000) {
		req, d, p := randomAnswer(n)
		for _, mutating := range []bool{true, false} {
			var body []byte
			if mutating {
				body = AppendMutating([]byte("before"), req, d, p)
			} else {
				body = AppendValidating([]byte("before"), req, d)
			}
			body, ok := bytes.CutPrefix(body, []byte("before"))
			if !ok {
				t.Fatalf("answer %d does not append: %q", n, body)
			}
			if err := checkAnswer(req, d, p, mutating, body); err != nil {
				t.Fatalf("answer %d, %s, mutating %t: %v\n%s", n, req.Version, mutating, err, body)
			}
		}
		if again, d2, p2 := randomAnswer(n); !bytes.Equal(AppendMutating(nil, req, d, p), AppendMutating(nil, again, d2, p2)) {
			t.Fatalf("answer %d has other bytes the second time", n)
		}
	}
}

func checkAnswer(req *Request, d *Decision, p patch.Patch, mutating bool, body []byte) error {
	got, err := readAnswer(req, mutating, body)
	if err != nil {
		return err
	}
	withPatch := mutating && d.Allowed() && len(p) > 0
	return errors.Join(
		checkDocument(body, d.Allowed(), withPatch),
		checkVerdict(got, d),
		checkPatch(got, p, withPatch),
		checkWarnings(got.Warnings, d.Warnings()),
		checkAnnotations(got.AuditAnnotations, d.AuditAnnotations()),
	)
}

// codec is the codec of the API server's webhook client (NewClientManager, called by generic.NewWebhook).
var codec = func() runtime.Codec {
	scheme := runtime.NewScheme()
	if err := errors.Join(admissionv1beta1.AddToScheme(scheme), admissionv1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	return serializer.NewCodecFactory(scheme).LegacyCodec([]schema.GroupVersion{admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion}...)
}()

// readAnswer decodes and verifies the body of a response as the dispatchers of the API server do.
func readAnswer(req *Request, mutating bool, body []byte) (*webhookrequest.AdmissionResponse, error) {
	into := map[Version]runtime.Object{V1: &admissionv1.AdmissionReview{}, V1beta1: &admissionv1beta1.AdmissionReview{}}[req.Version]
	out, gvk, err := codec.Decode(body, nil, into)
	if err != nil {
		return nil, err
	}
	if want := (schema.GroupVersionKind{Group: "admission.k8s.io", Version: string(req.Version), Kind: "AdmissionReview"}); out != into || *gvk != want {
		return nil, fmt.Errorf("got a %v in %T, want %v", gvk, out, want)
	}
	// VerifyAdmissionResponse checks neither version nor uid of a v1beta1 answer.
	var echo struct {
		metav1.TypeMeta `json:",inline"`
		Response        struct{ UID types.UID }
	}
	if err := json.Unmarshal(body, &echo); err != nil {
		return nil, err
	}
	if echo.Kind != "AdmissionReview" || echo.APIVersion != req.Version.APIVersion() || echo.Response.UID != req.UID {
		return nil, fmt.Errorf("got %+v, want the version and uid of %q %q", echo, req.Version, req.UID)
	}
	return webhookrequest.VerifyAdmissionResponse(req.UID, mutating, into)
}

// checkDocument checks that the body is one JSON document on one line, and that its response has
// exactly the expected members.
func checkDocument(body []byte, allowed, withPatch bool) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	var document struct{ Response map[string]json.RawMessage }
	if err := decoder.Decode(&document); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) || bytes.IndexByte(body, '\n') != len(body)-1 || !utf8.Valid(body) {
		return errors.New("the body is more than one line of UTF-8 with one document")
	}
	for name, want := range map[string]bool{"uid": true, "allowed": true, "status": !allowed, "patch": withPatch, "patchType": withPatch} {
		if _, has := document.Response[name]; has != want {
			return fmt.Errorf("response.%s is there: %t, want %t", name, has, want)
		}
	}
	return nil
}

func checkVerdict(got *webhookrequest.AdmissionResponse, d *Decision) error {
	if got.Allowed != d.Allowed() {
		return fmt.Errorf("allowed is %t, want %t", got.Allowed, d.Allowed())
	}
	if got.Allowed {
		return nil
	}
	// The status that an API client gets. The API server changes only the start of the message.
	sent := *got.Result
	seen := webhookerrors.ToStatusErr(webhookName, got.Result.DeepCopy()).ErrStatus
	prefix := fmt.Sprintf("admission webhook %q denied the request: ", webhookName)
	switch {
	case seen.Code < 400 || seen.Code > 599 || seen.Code != sent.Code:
		return fmt.Errorf("the client sees code %d, was sent %d", seen.Code, sent.Code)
	case strings.TrimSpace(string(seen.Reason)) == "" || seen.Reason != sent.Reason:
		return fmt.Errorf("the client sees reason %q, was sent %q", seen.Reason, sent.Reason)
	case seen.Status != metav1.StatusFailure:
		return fmt.Errorf("the client sees status %q", seen.Status)
	case strings.TrimSpace(sent.Message) == "" || seen.Message != prefix+sent.Message:
		return fmt.Errorf("the client sees %q, was sent %q", seen.Message, sent.Message)
	}
	want := d.Denial()
	if sent.Message != valid(want.Message) || sent.Code != want.Code || string(sent.Reason) != valid(string(want.Reason)) {
		return fmt.Errorf("got %+v, want %+v", sent, want)
	}
	details, err := json.Marshal(want.Details)
	if err != nil {
		return err
	}
	var carried *metav1.StatusDetails
	if err := json.Unmarshal(details, &carried); err != nil {
		return err
	}
	if !reflect.DeepEqual(sent.Details, carried) {
		return fmt.Errorf("got details %+v, want %s", sent.Details, details)
	}
	return nil
}

// checkPatch decodes the patch with the API server's own library and compares it with p. Without a patch, the response
// must have no patchType either.
func checkPatch(got *webhookrequest.AdmissionResponse, p patch.Patch, withPatch bool) error {
	if !withPatch {
		if len(got.Patch) > 0 || got.PatchType != "" {
			return fmt.Errorf("got a patch %q of type %q, want none", got.Patch, got.PatchType)
		}
		return nil
	}
	if got.PatchType != admissionv1.PatchTypeJSONPatch {
		return fmt.Errorf("got patchType %q", got.PatchType)
	}
	ops, err := jsonpatch.DecodePatch(got.Patch)
	if err != nil {
		return err
	}
	if len(ops) != len(p) {
		return fmt.Errorf("got %d operations, want %d", len(ops), len(p))
	}
	for i, op := range ops {
		path, err := op.Path()
		if err != nil || op.Kind() != string(p[i].Op) || path != valid(string(p[i].Path)) {
			return fmt.Errorf("got operation %s %q (%w), want %+v", op.Kind(), path, err, p[i])
		}
	}
	return nil
}

// checkWarnings passes the warnings to the API server's filter, which must not change or drop any.
func checkWarnings(got, want []string) error {
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		return fmt.Errorf("got warnings %q, want %q", got, want)
	}
	for _, w := range got {
		if _, err := utilnet.NewWarningHeader(299, "", w); err != nil || utf8.RuneCountInString(w) > 120 {
			return fmt.Errorf("warning %q: %w", w, err)
		}
	}
	recorder := httptest.NewRecorder()
	filters.WithWarningRecorder(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for _, w := range got {
			warning.AddWarning(r.Context(), "", w)
		}
	})).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	headers, errs := utilnet.ParseWarningHeaders(recorder.Header()["Warning"])
	if len(errs) > 0 || len(headers) != len(want) {
		return fmt.Errorf("the client sees %d warnings (%v), want %d", len(headers), errs, len(want))
	}
	for i, header := range headers {
		if header.Text != want[i] {
			return fmt.Errorf("the client sees warning %q, want %q", header.Text, want[i])
		}
	}
	return nil
}

// checkAnnotations compares the annotations. It also passes them to the API server's own code (checkKeyFormat), which
// must accept every key.
func checkAnnotations(got, want map[string]string) error {
	if len(got) != len(want) {
		return fmt.Errorf("got annotations %q, want %q", got, want)
	}
	attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, "", admission.Create, nil, false, nil)
	for key, value := range got {
		if value != valid(want[key]) {
			return fmt.Errorf("got annotation %s=%q, want %q", key, value, want[key])
		}
		if err := attributes.AddAnnotation(webhookName+"/"+key, value); err != nil {
			return err
		}
	}
	return nil
}

// valid returns s as JSON carries it: each invalid byte becomes U+FFFD.
func valid(s string) string { return string([]rune(s)) }
