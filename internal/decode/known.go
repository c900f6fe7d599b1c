// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/shape"
)

// known decodes the types of apimachinery that have their own decoder, if that decoder does not keep its input. If the
// decoder of a type is slow, known decodes the usual values itself.
func (d *decoder) known(v reflect.Value, kind shape.Kind) error {
	start := d.c.Offset()
	raw, err := d.c.Value()
	if err != nil {
		return err
	}
	text, isText := plainText(raw)
	switch kind {
	case shape.Time:
		if t, err := time.Parse(time.RFC3339, string(text)); isText && err == nil {
			v.Addr().Interface().(*metav1.Time).Time = t.Local()
			return nil
		}
	case shape.IntOrString:
		is := v.Addr().Interface().(*intstr.IntOrString)
		if isText {
			is.Type, is.StrVal = intstr.String, d.texts.Text(text)
			return nil
		}
		if c := jsonraw.At(raw, 0, 0); c.Kind() == jsonraw.Number {
			if n, ok := parseInt(raw); ok && n == int64(int32(n)) {
				is.Type, is.IntVal = intstr.Int, int32(n)
				return nil
			}
		}
	}
	if err := v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw); err != nil {
		return invalid(start, v.Type())
	}
	return nil
}

func invalid(start int, t reflect.Type) error {
	return &Error{Offset: start, Err: fmt.Errorf("not a valid %s", t)}
}

// plainText returns the text of a checked string without escapes.
func plainText(raw []byte) ([]byte, bool) {
	if raw[0] != '"' {
		return nil, false
	}
	text := raw[1 : len(raw)-1]
	for _, b := range text {
		if b == '\\' || b >= 0x80 {
			return nil, false
		}
	}
	return text, true
}
