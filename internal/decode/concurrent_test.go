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

// ring, left and right contain each other, so the first use of one of them compiles the shapes of all three. Each type
// argument T makes three new types, whose shapes are not compiled yet.
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

// freshFamilies returns types that no other test decodes into. The types of a family contain one another, or
// the same other types.
func freshFamilies() (families [][]reflect.Type) {
	type a struct{ A int }
	type b struct{ B *b }
	type c []c
	families = [][]reflect.Type{
		family[a](), family[b](), family[c](), family[*a](), family[*b](), family[*c](), family[[]a](), family[[]b](),
		family[[1]a](), family[[2]a](), family[[3]a](), family[[1]b](), family[[2]b](), family[[3]b](), family[map[string]c](),
	}
	for i := range 60 {
		tag := func(name string) reflect.StructTag {
			return reflect.StructTag(fmt.Sprintf(`json:"%s" fresh:"%d"`, name, i))
		}
		spec := reflect.StructOf([]reflect.StructField{
			{Name: "Containers", Type: reflect.TypeFor[[]corev1.Container](), Tag: tag("containers")},
			{Name: "Nodes", Type: reflect.TypeFor[map[string]string](), Tag: tag("nodes")},
			{Name: "Rights", Type: reflect.TypeFor[any](), Tag: tag("rights")},
		})
		inner := reflect.StructOf([]reflect.StructField{
			{Name: "Name", Type: reflect.TypeFor[string](), Tag: tag("name")},
			{Name: "Spec", Type: reflect.PointerTo(spec), Tag: tag("Spec")},
			{Name: "Rights", Type: reflect.SliceOf(reflect.SliceOf(spec)), Tag: tag("rights")},
		})
		families = append(families, []reflect.Type{
			inner, reflect.MapOf(reflect.TypeFor[string](), inner), spec,
			reflect.StructOf([]reflect.StructField{{Name: "Left", Type: inner, Tag: tag("left")}}),
			reflect.StructOf([]reflect.StructField{{Name: "Left", Type: reflect.PointerTo(inner), Tag: tag("left")}}),
		})
	}
	return families
}

func family[T any]() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[ring[T]](), reflect.TypeFor[left[T]](), reflect.TypeFor[right[T]](),
		reflect.TypeFor[*right[T]](), reflect.TypeFor[[]left[T]](), reflect.TypeFor[map[string]ring[T]](),
	}
}

// TestConcurrentFirstUseOfTypes decodes into the types of a new family from many goroutines at once and
// compares the results with sigs.k8s.io/json.
func TestConcurrentFirstUseOfTypes(t *testing.T) {
	for _, types := range freshFamilies() {
		start := make(chan struct{})
		var wg sync.WaitGroup
		for g := range 12 {
			wg.Go(func() {
				<-start
				typ := types[g%len(types)]
				if err := decodetest.Compare(decode.Unmarshal, typ, []byte(ringDocument)); err != nil {
					t.Errorf("%s: %v", typ, err)
				}
			})
		}
		close(start)
		wg.Wait()
	}
}

// TestConcurrentDecoding decodes the same documents into the same types from many goroutines. Every result
// must still be intact at the end.
func TestConcurrentDecoding(t *testing.T) {
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
