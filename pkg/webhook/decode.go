// SPDX-License-Identifier: Apache-2.0

package webhook

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

// decodeObject decodes with the JSON semantics of the API server. An Unstructured is filled
// directly, because its own decoder insists on a kind.
func decodeObject[T any](raw []byte, member string) (*T, error) {
	if raw == nil {
		return nil, nil
	}
	v := new(T)
	if err := decode.Unmarshal(raw, content(v)); err != nil {
		return nil, undecodable(err, content(v), member)
	}
	return v, nil
}

// decodeInto overwrites the value that into points to.
func decodeInto(raw []byte, into any, member string) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("cannot decode %s into a %T: want a pointer that is not nil", member, into)
	}
	fresh := reflect.New(v.Type().Elem())
	if err := decode.Unmarshal(raw, fresh.Interface()); err != nil {
		return undecodable(err, into, member)
	}
	v.Elem().Set(fresh.Elem())
	return nil
}

// content returns the value to decode into: v itself, or the map inside an Unstructured.
func content(v any) any {
	if u, ok := v.(*unstructured.Unstructured); ok {
		return &u.Object
	}
	return v
}

// mostUnknown is the largest number of unknown fields in a list.
const mostUnknown = 100

func unknownFields[T any](raw []byte) []string {
	if raw == nil {
		return nil
	}
	pointers := decode.Unknown(raw, reflect.TypeOf(content(new(T))).Elem(), mostUnknown)
	for i, p := range pointers {
		pointers[i] = patch.Pointer(p).FieldPath()
	}
	return pointers
}

// undecodable is the failure of a document that does not fit the type of into.
func undecodable(err error, into any, member string) error {
	t, at, reason := reflect.TypeOf(into).Elem(), "", err.Error()
	var fault *decode.Error
	var place *patch.Error
	switch {
	case errors.As(err, &place):
		at, reason = place.Pointer.FieldPath(), place.Err.Error()
	case errors.As(err, &fault):
		at = patch.Pointer(decode.Pointer(fault.Path)).FieldPath()
	}
	text := fmt.Sprintf("cannot decode %s as %s: ", member, t)
	if at != "" {
		text += at + ": "
	}
	return reply.New(http.StatusBadRequest, text+reason, metav1.StatusCause{
		Type: metav1.CauseTypeFieldValueInvalid, Field: reply.Clip(at), Message: reply.Clip(reason),
	})
}
