// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/decode/decodetest"
	"github.com/admitkit/admitkit/internal/jsonraw"
)

// TestErrorsPointAtTheFault checks that an error's path and offset name the same value, and that removing the value removes
// the fault.
func TestErrorsPointAtTheFault(t *testing.T) {
	faults := 0
	for seed := range int64(2500) {
		c := decodetest.NewCase(seed)
		err := decode.Unmarshal(c.Doc, reflect.New(c.Type).Interface())
		var syntax *jsonraw.SyntaxError
		var fault *decode.Error
		switch {
		case err == nil:
			continue
		case errors.As(err, &syntax):
			if syntax.Offset < 0 || syntax.Offset > len(c.Doc) {
				t.Errorf("seed %d: offset %d of %d bytes: %v", seed, syntax.Offset, len(c.Doc), err)
			}
			continue
		case !errors.As(err, &fault):
			t.Errorf("seed %d: %T: %v", seed, err, err)
			continue
		}
		faults++
		value := jsonraw.At(c.Doc, fault.Offset, 0)
		raw, notJSON := value.Value()
		if notJSON != nil || !slices.Contains(offsetsOf(c.Doc, fault.Path), fault.Offset) {
			t.Errorf("seed %d, %s: offset %d is not that of %s in %.500q: %v", seed, c.Type, fault.Offset, decode.Pointer(fault.Path), c.Doc, err)
			continue
		}
		null := slices.Concat(c.Doc[:value.Offset()-len(raw)], []byte("null"), c.Doc[value.Offset():])
		var again *decode.Error
		if errors.As(decode.Unmarshal(null, reflect.New(c.Type).Interface()), &again) && again.Offset == fault.Offset && !refusesNull(again) {
			t.Errorf("seed %d, %s: %v at %s remains without %.100q: %v", seed, c.Type, err, decode.Pointer(fault.Path), raw, again)
		}
	}
	t.Logf("%d faults", faults)
}

// refusesNull reports whether the error comes from metav1.Duration or Unstructured, which reject null. It recognizes
// these errors by their messages.
func refusesNull(err error) bool {
	return strings.Contains(err.Error(), "Duration") || strings.Contains(err.Error(), "duration") || strings.Contains(err.Error(), "'Kind' is missing")
}

// TestErrorsDoNotBlameValidValues decodes documents with an unusual but valid value before the fault. The path of the
// error must lead to the fault, not to the valid value.
func TestErrorsDoNotBlameValidValues(t *testing.T) {
	type unusual struct {
		Bytes  []byte          `json:"bytes"`
		Array  [2]int          `json:"array"`
		Number map[int]int     `json:"number"`
		Text   string          `json:"text"`
		Wrong  map[string]bool `json:"wrong"`
	}
	const fault = `"wrong":{"x":"true"}}`
	for _, row := range []struct{ before, path string }{
		{`{`, "/wrong/x"},
		{`{"bytes":[1,2],`, "/wrong/x"},
		{`{"bytes":"aGk\n=",`, "/wrong/x"},
		{`{"array":[1,2,3],"number":{"1":2},"text":null,`, "/wrong/x"},
		{`{"text":"a","text":"b",`, ""}, // sigs.k8s.io/json handles duplicate names, and reports the fault too
	} {
		var fit *decode.Error
		doc := row.before + fault
		if err := decode.Unmarshal([]byte(doc), new(unusual)); !errors.As(err, &fit) || decode.Pointer(fit.Path) != row.path {
			t.Errorf("%s: got %v at %q, want an error at %q", doc, err, decode.Pointer(fit.Path), row.path)
		}
	}
	var fit *decode.Error
	err := decode.Unmarshal([]byte(`{"limits": {"cpu": "x"}}`), new(corev1.ResourceRequirements))
	if !errors.As(err, &fit) || decode.Pointer(fit.Path) != "/limits/cpu" || fit.Offset != 19 {
		t.Errorf("got %v: %+v, want an error at 19, which is /limits/cpu", err, fit)
	}
}

// offsetsOf returns the offsets of all values at a path. There are several if a name is duplicated.
func offsetsOf(doc []byte, path []decode.Step) (offsets []int) {
	var visit func(c *jsonraw.Cursor, path []decode.Step) error
	visit = func(c *jsonraw.Cursor, path []decode.Step) error {
		switch kind := c.Kind(); {
		case len(path) == 0:
			offsets = append(offsets, c.Offset())
		case kind == jsonraw.Object && !path[0].IsIndex:
			return c.Members(func(name string) error {
				if name != path[0].Name {
					return c.Skip()
				}
				return visit(c, path[1:])
			})
		case kind == jsonraw.Array && path[0].IsIndex:
			return c.Elements(func(i int) error {
				if i != path[0].Index {
					return c.Skip()
				}
				return visit(c, path[1:])
			})
		}
		return c.Skip()
	}
	_ = visit(jsonraw.NewCursor(doc), path)
	return offsets
}

// TestUnknownAgreesWithKubernetesJSON compares the unknown members with those that the strict mode of sigs.k8s.io/json
// reports.
func TestUnknownAgreesWithKubernetesJSON(t *testing.T) {
	const limit = 100 // the limit of sigs.k8s.io/json
	plain := strings.NewReplacer("[", "", "]", "", ".", "", "/", "", "~1", "/", "~0", "~")
	found := 0
	for seed := range int64(2000) {
		c := decodetest.NewCase(seed)
		strict, err := kjson.UnmarshalStrict(c.Doc, reflect.New(c.Type).Interface(), kjson.DisallowUnknownFields)
		if err != nil {
			continue
		}
		var want []string
		for _, e := range strict {
			var field kjson.FieldError
			if errors.As(e, &field) {
				want = append(want, plain.Replace(strings.ReplaceAll(field.FieldPath(), "/", "")))
			}
		}
		got := decode.Unknown(c.Doc, c.Type, limit)
		shown := slices.Clone(got)
		for i := range got {
			got[i] = strings.ReplaceAll(plain.Replace(got[i]), "/", "")
		}
		slices.Sort(want)
		slices.Sort(got)
		found += len(want)
		if want, got = slices.Compact(want), slices.Compact(got); len(want) < limit && !slices.Equal(want, got) {
			t.Errorf("seed %d, %s: got %q, want %q: %.1000q", seed, c.Type, shown, strict, c.Doc)
		}
	}
	t.Logf("%d unknown members", found)
}
