// SPDX-License-Identifier: Apache-2.0

// Package object decodes the objects of a review into Go values, and computes the patch of a handler.
package object

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// Decode decodes raw with the JSON semantics of the API server. It returns nil if raw is nil. Its errors say where raw
// is: member is the field of the review that holds the object, and at is the path in that object.
func Decode[T any](raw []byte, member string, at patch.Pointer) (*T, error) {
	if raw == nil {
		return nil, nil
	}
	v := new(T)
	if err := decode.Unmarshal(raw, Content(v)); err != nil {
		return nil, DecodeFailure(err, Content(v), member, at)
	}
	return v, nil
}

// DecodeInto decodes raw into the value that into points to. After an error that value is unchanged.
func DecodeInto(raw []byte, into any, member string) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("cannot decode %s into a %T: want a pointer that is not nil", member, into)
	}
	fresh := reflect.New(v.Type().Elem())
	if err := decode.Unmarshal(raw, fresh.Interface()); err != nil {
		return DecodeFailure(err, into, member, "")
	}
	v.Elem().Set(fresh.Elem())
	return nil
}

// Content returns the value to decode into: v itself, or the map inside an Unstructured, whose own
// decoder insists on a kind.
func Content(v any) any {
	if u, ok := v.(*unstructured.Unstructured); ok {
		return &u.Object
	}
	return v
}

// MaxUnknownFields is the largest number of fields that UnknownFields returns.
const MaxUnknownFields = 100

// UnknownFields returns the paths of the fields of raw for which T has no field. at is the path of raw in an object,
// and the results are paths in that object.
func UnknownFields[T any](raw []byte, at patch.Pointer) []string {
	if raw == nil {
		return nil
	}
	pointers := decode.Unknown(raw, reflect.TypeOf(Content(new(T))).Elem(), MaxUnknownFields)
	for i, p := range pointers {
		pointers[i] = (at + patch.Pointer(p)).FieldPath()
	}
	return pointers
}

// DecodeFailure returns the failure of a call for a value that does not fit the type of into. member is the field of
// the review that holds the object, and in is the path of the value in that object.
func DecodeFailure(err error, into any, member string, in patch.Pointer) error {
	t, at, reason := reflect.TypeOf(into).Elem(), in.FieldPath(), err.Error()
	var fault *decode.Error
	var place *patch.Error
	switch {
	case errors.As(err, &place):
		at, reason = (in + place.Pointer).FieldPath(), place.Err.Error()
	case errors.As(err, &fault):
		at = (in + patch.Pointer(decode.Pointer(fault.Path))).FieldPath()
	}
	text := fmt.Sprintf("cannot decode %s as %s: ", member, t)
	if at != "" {
		text += at + ": "
	}
	return reply.New(http.StatusBadRequest, text+reason, metav1.StatusCause{
		Type: metav1.CauseTypeFieldValueInvalid, Field: reply.Clip(at), Message: reply.Clip(reason),
	})
}
