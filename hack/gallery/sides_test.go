// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // the conversions and defaults of each group
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"

	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// A request is an admission request. An object is nil if the operation has none.
type request struct {
	operation       admission.Operation
	kind            schema.GroupVersionKind
	resource        schema.GroupVersionResource
	subresource     string
	name, namespace string
	object, old     runtime.Object
	user            user.Info // nil means ann, a user who may do everything
	dryRun          bool
	exists          bool // on API servers, the old object exists already, and its name gets no suffix
}

// ann is the user of all requests that name no other user.
var ann = &user.DefaultInfo{Name: "ann", Groups: []string{"system:masters", "system:authenticated"}}

// from returns the user who sends the request.
func (r *request) from() user.Info {
	if r.user == nil {
		return ann
	}
	return r.user
}

// The verdicts. An error without a status, or with a code of 500 or more, is a failure.
const (
	allowed = "allowed"
	denied  = "denied"
	failed  = "failed"
)

// A result is what the original or the hooks decide about a request.
type result struct {
	verdict string
	code    int32
	reason  metav1.StatusReason
	message string
	object  runtime.Object // of an allowed request, after the changes
	advice  advice
}

// internal returns the version of the objects that the API server passes to its own admission controllers.
func (r *request) internal() schema.GroupVersion {
	return schema.GroupVersion{Group: r.kind.Group, Version: runtime.APIVersionInternal}
}

// convert returns a copy of the object in another version.
func convert(t *testing.T, object runtime.Object, to schema.GroupVersion) runtime.Object {
	t.Helper()
	if object == nil {
		return nil
	}
	converted, err := legacyscheme.Scheme.ConvertToVersion(object, to)
	if err != nil {
		t.Fatal(err)
	}
	converted.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return converted
}

// encoded returns the request with its objects as the API server sends them: with defaults, and converted to the
// internal version and back.
func (r *request) encoded(t *testing.T) *request {
	t.Helper()
	complete := func(object runtime.Object) runtime.Object {
		if object == nil {
			return nil
		}
		object = object.DeepCopyObject()
		legacyscheme.Scheme.Default(object)
		return convert(t, convert(t, object, r.internal()), r.kind.GroupVersion())
	}
	completed := *r
	completed.object, completed.old = complete(r.object), complete(r.old)
	return &completed
}

func (r *request) attributes(t *testing.T) admission.Attributes {
	t.Helper()
	return admission.NewAttributesRecord(convert(t, r.object, r.internal()), convert(t, r.old, r.internal()), r.kind, r.namespace, r.name,
		r.resource, r.subresource, r.operation, nil, r.dryRun, r.from())
}

// A variant is an original and the hooks with the same configuration.
type variant struct {
	plugin admission.Interface
	hooks  []*webhook.Hook
}

// original calls the mutating or the validating part of the original. It returns false if the original lacks the part.
func (v *variant) original(t *testing.T, r *request, mutating bool) (result, bool) {
	t.Helper()
	attributes := r.attributes(t)
	_, mutates := v.plugin.(admission.MutationInterface)
	_, validates := v.plugin.(admission.ValidationInterface)
	if mutating && !mutates || !mutating && !validates {
		return result{}, false
	}
	var err error
	ctx, given := withAdvice(t)
	audited := admission.WithAudit(v.plugin) // writes the annotations of the attributes
	switch {
	case !v.plugin.Handles(r.operation):
	case mutating:
		err = audited.(admission.MutationInterface).Admit(ctx, attributes, nil)
	default:
		err = audited.(admission.ValidationInterface).Validate(ctx, attributes, nil)
	}
	got := result{verdict: allowed}
	if err != nil {
		got = resultOf(statusOf(err))
	} else {
		got.object = convert(t, attributes.GetObject(), r.kind.GroupVersion())
	}
	got.advice = given()
	return got, true
}

// statusOf returns the status with which the API server answers if an admission controller returns the error
// (responsewriters.ErrorToAPIStatus).
func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status()
	}
	return metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonUnknown, Message: err.Error()}
}

func resultOf(status metav1.Status) result {
	verdict := denied
	if status.Code >= http.StatusInternalServerError {
		verdict = failed
	}
	return result{verdict: verdict, code: status.Code, reason: status.Reason, message: status.Message}
}

// ours calls the mutating or the validating hooks whose rules match, until one does not allow the request.
func (v *variant) ours(t *testing.T, r *request, mutating bool) result {
	t.Helper()
	object := r.object
	var all advice
	for _, hook := range v.hooks {
		if hook.Mutating() != mutating || !matches(t, hook, r) {
			continue
		}
		got := call(t, hook, r)
		all.add(got.advice)
		if got.verdict != allowed {
			got.advice = all
			return got
		}
		object = got.object
	}
	return result{verdict: allowed, object: object, advice: all}
}

// matches reports whether a rule of the hook matches the request. It ignores the selectors of the hook.
func matches(t *testing.T, hook *webhook.Hook, r *request) bool {
	t.Helper()
	mutating, validating, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "gallery", URL: "https://127.0.0.1"}, hook)
	if err != nil {
		t.Fatal(err)
	}
	var list []admissionregistrationv1.RuleWithOperations
	if mutating != nil {
		list = mutating.Webhooks[0].Rules
	} else {
		list = validating.Webhooks[0].Rules
	}
	for _, rule := range list {
		if m := (rules.Matcher{Rule: rule, Attr: r.attributes(t)}); m.Matches() {
			return true
		}
	}
	return false
}

// call sends the request to the hook and applies the patch.
func call(t *testing.T, hook http.Handler, r *request) result {
	t.Helper()
	return r.resultFrom(t, post(t.Context(), hook, r.review(t)))
}

// review returns the AdmissionReview of the request as JSON.
func (r *request) review(t *testing.T) []byte {
	t.Helper()
	resource := r.resource.Resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	req := webhooktest.Request(t, admissionv1.Operation(r.operation), r.kind, resource, document(r.object), document(r.old))
	req.Name, req.Namespace, req.DryRun = r.name, r.namespace, &r.dryRun
	req.Resource = metav1.GroupVersionResource(r.resource) // the resource of a subresource can be in another group than the kind
	req.UserInfo = userInfo(r.from())
	review := admissionv1.AdmissionReview{Request: req}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// post sends an AdmissionReview to the hook.
func post(ctx context.Context, hook http.Handler, body []byte) *httptest.ResponseRecorder {
	call := httptest.NewRequestWithContext(ctx, http.MethodPost, "/?timeout=10s", bytes.NewReader(body))
	call.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, call)
	return w
}

// resultFrom returns the result in the answer of a hook, with the patch applied.
func (r *request) resultFrom(t *testing.T, answered *httptest.ResponseRecorder) result {
	t.Helper()
	if answered.Code != http.StatusOK {
		var status metav1.Status
		decode(t, answered.Body.Bytes(), &status)
		return resultOf(status)
	}
	var answer admissionv1.AdmissionReview
	decode(t, answered.Body.Bytes(), &answer)
	if !answer.Response.Allowed {
		got := resultOf(*answer.Response.Result)
		got.verdict, got.advice = denied, adviceIn(answer.Response)
		return got
	}
	return result{verdict: allowed, object: patched(t, r, answer.Response.Patch), advice: adviceIn(answer.Response)}
}

// userInfo returns the user as the API server sends it to a webhook.
func userInfo(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}

// patched applies the patch to the object of the request, and returns the patched object.
func patched(t *testing.T, r *request, patch []byte) runtime.Object {
	t.Helper()
	if len(patch) == 0 {
		return r.object
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	raw := webhooktest.Request(t, admissionv1.Operation(r.operation), r.kind, r.resource.Resource, document(r.object), document(r.old)).Object.Raw
	after, err := operations.Apply(raw)
	if err != nil {
		t.Fatalf("%v: %s", err, patch)
	}
	into, err := legacyscheme.Scheme.New(r.kind)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, after, into)
	return convert(t, into, r.kind.GroupVersion())
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}

// document returns the object, or an untyped nil if there is none.
func document(object runtime.Object) any {
	if object == nil {
		return nil
	}
	return object
}
