// SPDX-License-Identifier: Apache-2.0

package encode_test

import (
	"math"
	"math/rand"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A filler fills values with data that is hard to encode, even data that no document decodes to. After a fixed number of
// values it leaves the rest nil or zero.
type filler struct {
	*rand.Rand
	left int
	// bad allows values that cannot be encoded. A value that contains one tests only errors.
	bad bool
}

func (f *filler) chance(in int) bool { return f.Intn(in) == 0 }

func pick[T any](f *filler, list ...T) T { return list[f.Intn(len(list))] }

func (f *filler) fill(v reflect.Value) {
	if f.left--; f.left < 0 || !v.CanSet() || f.known(v) {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.chance(2))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.Uint64()) >> f.Intn(64))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(f.Uint64() >> f.Intn(64))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(f.float())
	case reflect.String:
		v.SetString(f.text())
	case reflect.Struct:
		for i := range v.NumField() {
			if f.chance(2) || v.NumField() < 4 {
				f.fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !f.chance(4) {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.Slice:
		if !f.chance(5) {
			v.Set(reflect.MakeSlice(v.Type(), f.Intn(4), 4))
		}
		f.elems(v)
	case reflect.Array:
		f.elems(v)
	case reflect.Map:
		f.fillMap(v)
	case reflect.Interface:
		f.fillInterface(v)
	case reflect.Chan:
		if f.bad {
			v.Set(reflect.MakeChan(v.Type(), 0))
		}
	}
}

func (f *filler) elems(v reflect.Value) {
	for i := range v.Len() {
		f.fill(v.Index(i))
	}
}

func (f *filler) fillMap(v reflect.Value) {
	if f.chance(6) {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	for range f.Intn(5) {
		key.SetZero()
		elem.SetZero()
		f.fill(key)
		f.fill(elem)
		if key.Comparable() {
			v.SetMapIndex(key, elem)
		}
	}
}

// fillInterface stores a value of a random type in an interface. If the type does not fit, the interface stays nil.
func (f *filler) fillInterface(v reflect.Value) {
	t := pick(f, insides...)
	if !t.AssignableTo(v.Type()) {
		return
	}
	inside := reflect.New(t).Elem()
	f.fill(inside)
	v.Set(inside)
}

func (f *filler) known(v reflect.Value) bool {
	switch x := v.Addr().Interface().(type) {
	case *metav1.Time:
		x.Time = f.time()
	case *metav1.MicroTime:
		x.Time = f.time()
	case *time.Time:
		*x = f.time()
	case *resource.Quantity:
		*x = f.quantity()
	case *intstr.IntOrString:
		*x = intstr.IntOrString{Type: intstr.Type(f.Intn(2)), IntVal: int32(f.Uint32()), StrVal: f.text()}
		if f.bad && f.chance(9) {
			x.Type = 7
		}
	case *runtime.RawExtension:
		*x = runtime.RawExtension{Raw: f.document()}
		if f.chance(6) {
			*x = runtime.RawExtension{Object: &corev1.ConfigMap{Data: map[string]string{f.text(): f.text()}}}
		}
	case *metav1.FieldsV1:
		x.SetRawBytes(f.document())
	default:
		return false
	}
	return true
}

func (f *filler) float() float64 {
	x := pick(f, floats...)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		if !f.bad {
			return 1.5
		}
	}
	if f.chance(3) {
		return -x
	}
	return x
}

var floats = []float64{
	0, math.Copysign(0, -1), 1, 0.1, 1.5, 100, 1e20, 1e21, 1.0000001e21, 999999999999999900000, 1e-6, 9.999e-7, 1e-7, 1e-9, 1e-10, 1e-11, 1e100, 1e-100,
	math.MaxFloat32, math.MaxFloat64, math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat64, 2.2250738585072011e-308, float64(float32(1e-6)),
	float64(float32(1e21)), math.Nextafter(1e21, 0), math.Nextafter(1e-6, 0), 1 << 53, 16777217, math.NaN(), math.Inf(1), math.Inf(-1),
}

// texts are strings that need an escape, or almost need one.
var texts = []string{
	"", "a", "name", "app.kubernetes.io/name", "<b>&amp;</b>", `"quoted"`, `back\slash`, "tab\tnew\nline\r\f\b\v", "\x00\x1f\x7f", "é", "日本語", "😀",
	"\u2028", "x\u2029y", "\u2027\u202a", "\xff", "a\xc3", "\xed\xa0\x80", "\xe2\x80", "\xe2\x80\xa8\xe2", "\ufffd", "\xf0\x9f\x98", "\xf4\x90\x80\x80",
	"\u0080", "1234567", "12345678", "1234567\"", "12345678\\", "!!!!!!!!", "\"\"\"\"\"\"\"\"", "#\"#\"]\\]\\", "1234567é", "        \x1f       ",
	"123456789012345678901234567890<", "ordinary text that is longer than two words of eight bytes",
}

func (f *filler) text() string {
	switch f.Intn(4) {
	case 0:
		return pick(f, texts...) + pick(f, texts...)
	case 1:
		b := make([]byte, f.Intn(24))
		for i := range b {
			b[i] = byte(f.Intn(256))
		}
		return string(b)
	default:
		return pick(f, texts...)
	}
}

func (f *filler) time() time.Time {
	t := time.Unix(int64(f.Uint32()), f.Int63n(1e9)).In(pick(f, time.UTC, time.Local, time.FixedZone("", -12600)))
	switch {
	case f.chance(5):
		return time.Time{}
	case f.bad && f.chance(9):
		return t.AddDate(9000, 0, 0) // only metav1.Time encodes such a year
	}
	return t
}

// quantity returns a random quantity, with or without a cached text.
func (f *filler) quantity() resource.Quantity {
	q := resource.MustParse(pick(f, "0", "1", "-1", "100m", "1.5Gi", "64Mi", "1000m", "12e6", "1E3", "+5", "007", ".5", "0.00000000001",
		"12345678901234567890", "999999999999999999999999Ei", "1e-3", "0Gi", "-0", "1u"))
	switch f.Intn(4) {
	case 0:
		q.Neg()
	case 1:
		q.Add(*resource.NewMilliQuantity(f.Int63()>>f.Intn(60), resource.DecimalSI))
	case 2:
		q.Format = pick(f, resource.BinarySI, resource.DecimalSI, resource.DecimalExponent, "")
	}
	return q
}

// document returns random JSON. If f.bad is set, the JSON is sometimes invalid.
func (f *filler) document() []byte {
	if f.bad && f.chance(3) {
		return []byte(pick(f, "", " ", "{", "{}}", `{"a":1,}`, "nul", "\xd9\xd9\xf7\xa1\x61a\x01", "\xa1\x61a\x01", "\xf6", `"`+"\n"+`"`, "[1 2]", "\ufeff{}"))
	}
	return pick(f, nil, []byte("null"), []byte("{}"), []byte(" {\n\t\"a\" : [ 1 , -0, 1.50 ,{ } ] ,\r\n \"<&>\": \"a b\\u003c\u2028\" } "),
		[]byte(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`), []byte("\"\xff\u2029 \""), []byte("\n[]"), []byte("1E+2"))
}
