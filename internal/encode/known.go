// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/admitkit/admitkit/internal/shape"
)

// known encodes the types of apimachinery that have a MarshalJSON method. It encodes usual values itself and
// calls the method for the others. It copies the value first, because Quantity.String writes to its receiver.
func known(out []byte, v reflect.Value, kind shape.Kind) ([]byte, error) {
	switch kind {
	case shape.Time:
		t, _ := reflect.TypeAssert[metav1.Time](v)
		return appendTime(out, t.Time), nil
	case shape.Quantity:
		q, _ := reflect.TypeAssert[resource.Quantity](v)
		return appendQuantity(out, q), nil
	case shape.IntOrString:
		is, _ := reflect.TypeAssert[intstr.IntOrString](v)
		switch {
		case is.Type == intstr.Int:
			return strconv.AppendInt(out, int64(is.IntVal), 10), nil
		case is.Type == intstr.String && !strings.ContainsAny(is.StrVal, "<>&"): // encoding/json escapes these
			return appendText(out, is.StrVal), nil
		}
	case shape.RawExtension:
		raw, _ := reflect.TypeAssert[runtime.RawExtension](v)
		switch {
		case raw.Raw != nil:
			return appendCompact(out, raw.Raw)
		case raw.Object == nil:
			return appendNull(out), nil
		}
	case shape.FieldsV1:
		fields, _ := reflect.TypeAssert[metav1.FieldsV1](v)
		raw := fields.GetRawBytes()
		if len(raw) == 0 {
			return appendNull(out), nil
		}
		return appendCompact(out, raw)
	}
	return marshal(out, v)
}

func appendTime(out []byte, t time.Time) []byte {
	if t.IsZero() {
		return appendNull(out)
	}
	out = append(out, '"')
	out = t.UTC().AppendFormat(out, time.RFC3339)
	return append(out, '"')
}

func appendQuantity(out []byte, q resource.Quantity) []byte {
	out = append(out, '"')
	out = append(out, q.String()...) // digits, points, signs and letters
	return append(out, '"')
}

// appendCompact appends the result of a MarshalJSON method as encoding/json does. It fails if the result is not
// JSON but, for example, CBOR. Then encoding/json encodes the whole value.
func appendCompact(out, raw []byte) ([]byte, error) {
	b := bytes.NewBuffer(out)
	err := json.Compact(b, raw)
	return b.Bytes(), err
}

// marshal appends encoding/json's encoding of v. If v is addressable, encoding/json also calls methods with a pointer
// receiver. If the encoding fails, marshal returns dst unchanged.
func marshal(dst []byte, v reflect.Value) ([]byte, error) {
	switch {
	case v.CanAddr():
		v = v.Addr()
	case v.Kind() == reflect.Interface: // v.Interface would return the value inside the interface
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		v = p
	}
	w := writers.Get().(*writer)
	w.out = dst
	if err := w.json.Encode(v.Interface()); err != nil {
		return dst, err // the writer is dropped, because it keeps the error
	}
	out := w.out[:len(w.out)-1] // without the newline
	w.out = nil
	writers.Put(w)
	return out, nil
}

// A writer collects the output of its json.Encoder.
type writer struct {
	out  []byte
	json *json.Encoder
}

var writers = sync.Pool{New: func() any {
	w := new(writer)
	w.json = json.NewEncoder(w)
	w.json.SetEscapeHTML(false)
	return w
}}

func (w *writer) Write(p []byte) (int, error) {
	w.out = append(w.out, p...)
	return len(p), nil
}
