// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"encoding/base64"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// text compares a string value.
func (w *walker) text(want string) error {
	p := w.part()
	switch {
	case p.Kind != jsonraw.String && !(p.Kind == jsonraw.Null && want == ""):
		return w.replace(reflect.ValueOf(want))
	case p.Kind == jsonraw.Null || string(w.textOf(p)) == want:
		w.skip()
		return nil
	case !utf8.ValidString(want): // JSON cannot represent it
		return w.text(string([]rune(want))) // each invalid byte becomes U+FFFD, as in encoding/json
	}
	w.skip()
	return w.op(Replace, jsonraw.AppendString(nil, want))
}

// scalar compares a boolean or a number value.
func (w *walker) scalar(v reflect.Value, s *shapes.Shape) error {
	raw := w.bytes(w.part())
	w.skip()
	if jsonraw.IsNull(raw) && v.IsZero() || sameScalar(raw, v, s.Kind) {
		return nil
	}
	return w.set(Replace, v)
}

func sameScalar(raw []byte, v reflect.Value, kind shapes.Kind) bool {
	switch kind {
	case shapes.Bool:
		return raw[0] == 't' && v.Bool() || raw[0] == 'f' && !v.Bool()
	case shapes.Int:
		n, ok := integer(raw)
		return ok && n == v.Int()
	case shapes.Uint:
		n, err := strconv.ParseUint(string(raw), 10, 64)
		return err == nil && n == v.Uint()
	case shapes.Float:
		n, err := strconv.ParseFloat(string(raw), v.Type().Bits())
		return err == nil && sameFloat(n, v.Float())
	}
	return false
}

// sameFloat distinguishes 0 from -0, as encoding/json does.
func sameFloat(x, y float64) bool { return x == y && math.Signbit(x) == math.Signbit(y) }

// known compares byte slices and the types that encode themselves. Values that are not obviously equal are
// compared by their encodings.
func (w *walker) known(v reflect.Value, s *shapes.Shape) error {
	if s.Kind == shapes.Bytes && w.kind() == jsonraw.String && sameBytes(w.textOf(w.part()), v.Bytes()) {
		w.skip()
		return nil
	}
	if v.CanAddr() && sameKnown(w.bytes(w.part()), v.Addr().Interface()) {
		w.skip()
		return nil
	}
	return w.documents(v, s, "")
}

// sameBytes returns true only if text is encoding/json's encoding of data, and data is not nil.
func sameBytes(text, data []byte) bool {
	const chunk = 96 // bytes; base64 encodes them without padding
	if data == nil || len(text) != base64.StdEncoding.EncodedLen(len(data)) {
		return false
	}
	var room [chunk / 3 * 4]byte
	for len(data) > 0 {
		part := data[:min(chunk, len(data))]
		letters := room[:base64.StdEncoding.EncodedLen(len(part))]
		base64.StdEncoding.Encode(letters, part)
		if !bytes.Equal(letters, text[:len(letters)]) {
			return false
		}
		data, text = data[len(part):], text[len(letters):]
	}
	return true
}

// sameKnown returns true only if raw decodes to the value that v points to.
func sameKnown(raw []byte, v any) bool {
	switch v := v.(type) {
	case *resource.Quantity:
		return sameQuantity(raw, v)
	case *metav1.Time:
		return sameTime(raw, v)
	case *intstr.IntOrString:
		if v.Type == intstr.String {
			return samePlainText(raw, v.StrVal)
		}
		var room [12]byte
		return bytes.Equal(raw, strconv.AppendInt(room[:0], int64(v.IntVal), 10))
	case *runtime.RawExtension:
		return v.Object == nil && bytes.Equal(raw, v.Raw)
	case *metav1.FieldsV1:
		return bytes.Equal(raw, v.GetRawBytes())
	}
	return false
}

// sameQuantity returns true only if raw is a quantity equal to q in the usual form: an integer and a suffix.
func sameQuantity(raw []byte, q *resource.Quantity) bool {
	if raw[0] != '"' {
		return false
	}
	text := raw[1 : len(raw)-1]
	digits := 0
	for digits < len(text) && '0' <= text[digits] && text[digits] <= '9' {
		digits++
	}
	if digits == 0 || digits > 15 { // more could overflow when multiplied
		return false
	}
	var n int64
	for _, b := range text[:digits] {
		n = 10*n + int64(b-'0')
	}
	if string(text[digits:]) == "m" {
		return q.Cmp(*resource.NewMilliQuantity(n, resource.DecimalSI)) == 0
	}
	factor, usual := factors[string(text[digits:])]
	return usual && n <= math.MaxInt64/factor && q.Cmp(*resource.NewQuantity(n*factor, resource.DecimalSI)) == 0
}

// factors maps the suffixes of quantities to the integers that they multiply by.
var factors = map[string]int64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}

// sameTime reports whether raw is the encoding of t, as metav1.Time encodes itself.
func sameTime(raw []byte, t *metav1.Time) bool {
	if t.IsZero() {
		return jsonraw.IsNull(raw)
	}
	var room [48]byte
	return raw[0] == '"' && bytes.Equal(raw[1:len(raw)-1], t.UTC().AppendFormat(room[:0], time.RFC3339))
}

// samePlainText returns true only if raw is a string without escapes that equals text.
func samePlainText(raw []byte, text string) bool {
	if raw[0] != '"' || string(raw[1:len(raw)-1]) != text {
		return false
	}
	return bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw)
}

var (
	looseValue = shapes.Of(reflect.TypeFor[any]())
	looseList  = shapes.Of(reflect.TypeFor[[]any]())
)
