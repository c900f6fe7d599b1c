// SPDX-License-Identifier: Apache-2.0

package encode_test

import (
	"bytes"
	"reflect"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/internal/encode"
	"github.com/admitkit/admitkit/internal/shape"
)

// FuzzText looks for a string that Append and encoding/json encode differently, as a value or as a name.
func FuzzText(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x := struct {
			Text  string
			Names map[string]string
			Loose map[string]any
		}{text, map[string]string{text: "v", "n": text}, map[string]any{text: text}}
		if err := compare(reflect.ValueOf(&x).Elem()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAppendWritesNothingToTheValue encodes one value in many goroutines at once, so that the race detector reports a
// write to the value. A call of Quantity.String would be such a write, because it caches its text in the quantity.
func TestAppendWritesNothingToTheValue(t *testing.T) {
	q := resource.NewMilliQuantity(1500, resource.DecimalSI)
	x := struct {
		Ref  *resource.Quantity
		List []resource.Quantity
		Map  map[string]*resource.Quantity
	}{q, []resource.Quantity{*q}, map[string]*resource.Quantity{"q": q}}
	v := reflect.ValueOf(&x).Elem()
	want := *q
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			text, err := encode.Append(nil, v, shape.Of(v.Type()))
			if want := `{"Ref":"1500m","List":["1500m"],"Map":{"q":"1500m"}}`; err != nil || string(text) != want {
				t.Errorf("got %s (%v), want %s", text, err, want)
			}
		})
	}
	wg.Wait()
	if !reflect.DeepEqual(*q, want) || !reflect.DeepEqual(x.List[0], want) {
		t.Errorf("the quantity became %#v", *q)
	}
}

// TestAppendKeepsItsBuffer checks that Append uses the buffer's capacity and keeps its content.
func TestAppendKeepsItsBuffer(t *testing.T) {
	v := reflect.ValueOf(&smallSidecar).Elem()
	s := shape.Of(v.Type())
	room := make([]byte, 3, 4096)
	copy(room, "abc")
	got, err := encode.Append(room, v, s)
	if err != nil || &got[0] != &room[0] || !bytes.HasPrefix(got, []byte("abc{")) {
		t.Fatalf("%.40s, %v", got, err)
	}
	again, err := encode.Append(got, reflect.ValueOf(&corev1.Container{Name: "<\u2028>"}).Elem(), s)
	if want := string(got) + `{"name":"<\u2028>","resources":{}}`; err != nil || string(again) != want {
		t.Errorf("got %s, want %s", again, want)
	}
}
