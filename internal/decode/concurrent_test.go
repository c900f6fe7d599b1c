// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/decode/decodetest"
)

// ring, left and right contain one another, so whoever meets one first has to learn of all.
// Each type T makes them anew.
type (
	ring[T any] struct {
		Name  string              `json:"name,omitempty"`
		Next  *ring[T]            `json:"next,omitempty"`
		Left  *left[T]            `json:"left,omitempty"`
		Right map[string]right[T] `json:"right,omitempty"`
		Own   T                   `json:"own,omitzero"`
	}
	left[T any] struct {
		Rings  []ring[T]    `json:"rings,omitempty"`
		Rights [][]right[T] `json:"rights,omitempty"`
		Spec   *corev1.PodSpec
	}
	right[T any] struct {
		ring[T]
		Left []*left[T] `json:"lefts,omitempty"`
		metav1.TypeMeta
	}
)

const ringDocument = `{"name":"a","next":{"next":{"own":null}},"left":{"rings":[{"name":"b"},{}],"rights":[[{"name":"c","lefts":[{}]}]],` +
	`"Spec":{"containers":[{"name":"d"}]}},"right":{"x":{"name":"e","kind":"f","lefts":[null,{"rings":[{"name":"h"}]}]}}}`

// freshTypes are types that no other test decodes into.
func freshTypes() []reflect.Type {
	type a struct{ A int }
	type b struct{ B *b }
	type c []c
	types := []reflect.Type{
		reflect.TypeFor[ring[a]](), reflect.TypeFor[left[a]](), reflect.TypeFor[right[a]](),
		reflect.TypeFor[*right[b]](), reflect.TypeFor[[]left[b]](), reflect.TypeFor[map[string]ring[b]](),
		reflect.TypeFor[right[c]](), reflect.TypeFor[ring[c]](), reflect.TypeFor[left[c]](),
		reflect.TypeFor[left[[3]b]](), reflect.TypeFor[ring[[3]b]](), reflect.TypeFor[[]ring[[3]b]](),
	}
	named := len(types)
	for i := range 128 - named {
		types = append(types, reflect.StructOf([]reflect.StructField{
			{Name: "Name", Type: reflect.TypeFor[string](), Tag: `json:"name"`},
			{Name: "Left", Type: types[i%named], Tag: reflect.StructTag(fmt.Sprintf(`json:"left" fresh:"%d"`, i))},
			{Name: "Next", Type: reflect.PointerTo(types[(i+1)%named]), Tag: `json:"next,omitempty"`},
		}))
	}
	return types
}

// TestManyMeetTypesForTheFirstTime has many goroutines decode into the same new types, each
// in another order, and hold what they get against sigs.k8s.io/json.
func TestManyMeetTypesForTheFirstTime(t *testing.T) {
	types := freshTypes()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 24 {
		wg.Go(func() {
			<-start
			for i := range types {
				typ := types[(i*(2*g+1)+g*7)%len(types)] // each once, as there are 128
				if err := decodetest.Compare(decode.Unmarshal, typ, []byte(ringDocument)); err != nil {
					t.Errorf("%s: %v", typ, err)
				}
			}
		})
	}
	close(start)
	wg.Wait()
}

// TestManyDecodeAtOnce has goroutines share types and documents; what each got must still be
// there when all are done.
func TestManyDecodeAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for g := range int64(16) {
		wg.Go(func() {
			var values []any
			var texts [][]byte
			for seed := range int64(120) {
				c := decodetest.NewCase((seed + g*10) % 240)
				v := reflect.New(c.Type).Interface()
				if decode.Unmarshal(c.Doc, v) != nil {
					continue
				}
				clear(c.Doc)
				if text, err := json.Marshal(v); err == nil {
					values, texts = append(values, v), append(texts, text)
				}
			}
			for i, v := range values {
				if now, err := json.Marshal(v); err != nil || !bytes.Equal(now, texts[i]) {
					t.Errorf("%T was %s, is %s, error %v", v, texts[i], now, err)
				}
			}
		})
	}
	wg.Wait()
}
