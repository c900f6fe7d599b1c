// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/internal/shape"
)

// TestEncoderIsResetAfterUse checks that a used encoder has level 0 and keeps no names and entries. Another level would
// send the next value to encoding/json too early, and a remaining name would keep its memory alive.
func TestEncoderIsResetAfterUse(t *testing.T) {
	loose := map[string]any{"a": []any{map[string]any{"b": map[string]string{"c": "d"}, "e": []any{}}}, "f": map[corev1.ResourceName]any{"g": loose{}}}
	for range 20 { // many, so that the lists of names and entries grow while they are in use
		loose = map[string]any{"in": loose, "list": []any{1, 2}, "named": map[corev1.ResourceName]any{"x": loose["in"], "y": &struct{}{}}}
	}
	for _, x := range []any{
		&loose, &[]*int{new(int), nil}, &map[string]map[string][]byte{"a": {"b": nil}}, &corev1.ResourceList{"cpu": resource.MustParse("1")},
	} {
		e := new(encoder)
		v := reflect.ValueOf(x).Elem()
		if _, err := e.value(nil, v, shape.Of(v.Type())); err != nil {
			t.Fatal(err)
		}
		if e.level != 0 || len(e.names) != 0 || len(e.entries) != 0 {
			t.Errorf("%T: level %d, names %q, %d entries", x, e.level, e.names, len(e.entries))
		}
		for i, name := range e.names[:cap(e.names)] {
			if name != "" {
				t.Errorf("%T: name %d is still %q", x, i, name)
			}
		}
		for i, entry := range e.entries[:cap(e.entries)] {
			if entry.name != "" || entry.value.IsValid() {
				t.Errorf("%T: entry %d is still %q: %v", x, i, entry.name, entry.value)
			}
		}
	}
}

type loose struct{}

// TestOnlyNestingCountsAsDepth encodes more pointers, lists and maps side by side than may be nested, and then as many
// nested lists as are allowed. Both must work. One more level must fail.
func TestOnlyNestingCountsAsDepth(t *testing.T) {
	wide := []any{[]any{}, []int{}, new(int), map[string]any{}, map[string]int{}}
	for range 10 {
		wide = append(wide, wide...)
	}
	deep := any(1)
	for range mostLevels - 1 {
		deep = []any{deep}
	}
	for _, x := range []any{wide, []any{deep}} {
		v := reflect.ValueOf(x)
		if _, err := new(encoder).value(nil, v, shape.Of(v.Type())); err != nil {
			t.Error(err)
		}
	}
	if _, err := new(encoder).loose(nil, []any{[]any{deep}}); err == nil {
		t.Error("one level more is not too deep")
	}
}
