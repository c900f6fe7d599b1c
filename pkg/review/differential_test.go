// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// These are the API's own types of an AdmissionReview, without the response. No client sends a response with a request,
// and Decode does not read it.
type (
	referenceV1 struct {
		admissionv1.AdmissionReview `json:",inline"`
		Response                    json.RawMessage `json:"response"`
	}
	referenceV1beta1 struct {
		admissionv1beta1.AdmissionReview `json:",inline"`
		Response                         json.RawMessage `json:"response"`
	}
)

// TestDecodeAgreesWithKubernetes decodes the tables and generated reviews with Decode and with sigs.k8s.io/json, the API
// server's decoder, into the API's own types. The results must be equal, even for duplicate names, unless the review
// breaks one of Decode's own requirements.
func TestDecodeAgreesWithKubernetes(t *testing.T) {
	for _, row := range acceptedReviews {
		row.reason.run(t, func(t *testing.T) { agree(t, []byte(row.body)) })
	}
	for _, row := range refusedReviews {
		row.reason.run(t, func(t *testing.T) { agree(t, []byte(row.body)) })
	}
	const n = 5_000
	verdicts := map[bool]int{}
	for i := range uint64(n) {
		verdicts[agree(t, generateReview(i))]++
		if t.Failed() {
			t.Fatalf("generated review %d", i)
		}
	}
	t.Logf("%d generated reviews accepted, %d refused", verdicts[true], verdicts[false])
	if min(verdicts[true], verdicts[false]) < n/4 {
		t.Errorf("%d reviews accepted, %d refused: the generator tests one side only", verdicts[true], verdicts[false])
	}
}

func FuzzDecode(f *testing.F) {
	add := func(body string) {
		if len(body) < 2000 { // long bodies, such as deeply nested ones, slow the search down
			f.Add([]byte(body))
		}
	}
	for _, row := range acceptedReviews {
		add(row.body)
	}
	for _, row := range refusedReviews {
		add(row.body)
	}
	for i := range uint64(64) {
		add(string(generateReview(i)))
	}
	f.Fuzz(func(t *testing.T, body []byte) { agree(t, body) })
}

// agree decodes one body with Decode and with sigs.k8s.io/json, and checks that the results agree. It reports whether
// Decode accepted the body.
func agree(t *testing.T, body []byte) bool {
	t.Helper()
	before := string(body)
	got, err := Decode(body)
	if string(body) != before {
		t.Fatalf("%.2000q: the body became %.2000q", before, body)
	}
	sameWithReader(t, body, got, err)
	want, readErr := reference(t, body)
	if err != nil {
		refusalAgrees(t, body, err, want, readErr)
		return false
	}
	if readErr != nil || ownCheck(want) != nil {
		t.Fatalf("%.2000q: accepted, want %v, %v", body, readErr, ownCheck(want))
	}
	if wanted := requestOf(want); !reflect.DeepEqual(got, wanted) {
		t.Fatalf("%.2000q: (-want +got)\n-%s\n+%s", body, show(wanted), show(got))
	}
	return true
}

// refusalAgrees checks that an error of Decode agrees with the results of reference for the same body: want and
// readErr.
func refusalAgrees(t *testing.T, body []byte, err error, want *admissionv1.AdmissionReview, readErr error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(body) || !e.Pointer.Valid() || !strings.HasPrefix(e.Error(), "cannot read the AdmissionReview: ") {
		t.Fatalf("%.2000q: got %#v, want an *Error with a place inside the body", body, err)
	}
	if readErr == nil {
		if cause := ownCheck(want); cause == nil || !errors.Is(err, cause) {
			t.Fatalf("%.2000q: got %v, want %v", body, err, cause)
		}
		if version := knownVersion(want.APIVersion); e.Version != version || want.Request != nil && e.UID != want.Request.UID {
			t.Fatalf("%.2000q: got version %q and uid %q, want those of %+v", body, e.Version, e.UID, want)
		}
		return
	}
	// Decode stops at the first fault of any kind. sigs.k8s.io/json checks the grammar of the whole body
	// first.
	notJSON, _ := kjson.SyntaxErrorOffset(readErr)
	isObject := strings.HasPrefix(strings.TrimLeft(string(body), " \t\r\n"), "{")
	switch {
	case errors.Is(err, ErrShape):
	case errors.Is(err, ErrSyntax) && notJSON:
	case errors.Is(err, ErrNotReview) && !isObject:
	default:
		t.Fatalf("%.2000q: got %v, sigs.k8s.io/json has %v", body, err, readErr)
	}
}

// reference reads a body as the API server does, into the type of its version.
func reference(t *testing.T, body []byte) (*admissionv1.AdmissionReview, error) {
	t.Helper()
	var v1 referenceV1
	var v1beta1 referenceV1beta1
	err := kjson.UnmarshalCaseSensitivePreserveInts(body, &v1)
	errBeta := kjson.UnmarshalCaseSensitivePreserveInts(body, &v1beta1)
	if (err == nil) != (errBeta == nil) {
		t.Fatalf("%.2000q: the versions differ: %v, %v", body, err, errBeta)
	}
	if v1.APIVersion != V1beta1.APIVersion() {
		return &v1.AdmissionReview, err
	}
	review := &admissionv1.AdmissionReview{TypeMeta: v1beta1.TypeMeta}
	if in := v1beta1.Request; in != nil {
		review.Request = &admissionv1.AdmissionRequest{}
		from, to := reflect.ValueOf(in).Elem(), reflect.ValueOf(review.Request).Elem()
		for i := range from.NumField() {
			field := to.FieldByName(from.Type().Field(i).Name)
			field.Set(from.Field(i).Convert(field.Type()))
		}
	}
	return review, err
}

// ownCheck returns the error of a check that Decode makes and sigs.k8s.io/json does not. The checks come in
// the same order as in Decode.
func ownCheck(review *admissionv1.AdmissionReview) error {
	switch {
	case review.Kind != "AdmissionReview":
		return ErrNotReview
	case knownVersion(review.APIVersion) == "":
		return ErrVersion
	case review.Request == nil:
		return ErrNoRequest
	case review.Request.UID == "":
		return ErrNoUID
	}
	return nil
}

func knownVersion(apiVersion string) Version {
	return map[string]Version{"admission.k8s.io/v1": V1, "admission.k8s.io/v1beta1": V1beta1}[apiVersion]
}

// requestOf returns the request that Decode must return for a review.
func requestOf(review *admissionv1.AdmissionReview) *Request {
	in := review.Request
	r := &Request{
		Version: knownVersion(review.APIVersion),
		Metadata: Metadata{
			UID: in.UID, Name: in.Name, Namespace: in.Namespace, Operation: in.Operation, UserInfo: in.UserInfo,
			Kind: in.Kind, Resource: in.Resource, SubResource: in.SubResource,
			RequestKind: in.Kind, RequestResource: in.Resource, RequestSubResource: in.RequestSubResource,
			DryRun: in.DryRun != nil && *in.DryRun,
		},
		Object: in.Object.Raw, OldObject: in.OldObject.Raw, Options: in.Options.Raw,
	}
	if k := in.RequestKind; k != nil && *k != (metav1.GroupVersionKind{}) {
		r.RequestKind = *k
	}
	if k := in.RequestResource; k != nil && *k != (metav1.GroupVersionResource{}) {
		r.RequestResource = *k
	}
	if r.RequestSubResource == "" {
		r.RequestSubResource = r.SubResource
	}
	return r
}
