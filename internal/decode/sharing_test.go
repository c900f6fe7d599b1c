// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/decode/decodetest"
)

// TestDecodedMemoryIsNotShared checks that a handler may write to every part of a decoded value and append to its lists. No
// memory of the value may belong to another value, to another place in the same value, or to the document.
func TestDecodedMemoryIsNotShared(t *testing.T) {
	for seed := range int64(1000) {
		c := decodetest.NewCase(seed)
		var spans []span
		var values []reflect.Value // kept, so that their memory is not used again
		for _, name := range []string{"first", "second"} {
			v := reflect.New(c.Type)
			if decode.Unmarshal(c.Doc, v.Interface()) == nil {
				values, spans = append(values, v), appendSpans(spans, v, name)
			}
		}
		spans = append(spans, spanOf(reflect.ValueOf(c.Doc), cap(c.Doc), "document"))
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		for i := 1; i < len(spans); i++ {
			if a, b := spans[i-1], spans[i]; b.from < a.to {
				t.Fatalf("seed %d, %s: %s and %s share memory: %.1000q", seed, c.Type, a.place, b.place, c.Doc)
			}
		}
		runtime.KeepAlive(values)
	}
}

// A span is a piece of memory that a value refers to and may write to.
type span struct {
	from, to uintptr
	place    string
}

func spanOf(list reflect.Value, length int, place string) span {
	from := list.Pointer()
	return span{from, from + uintptr(length)*list.Type().Elem().Size(), place}
}

// appendSpans adds the memory that v refers to. For a list, this includes the memory up to its capacity.
func appendSpans(spans []span, v reflect.Value, place string) []span {
	if len(place) > 300 {
		place = place[:300] + "…" // deep documents have long paths
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Type() == reflect.TypeFor[*time.Location]() || v.Type().Elem().Size() == 0 {
			return spans
		}
		spans = append(spans, spanOf(v, 1, place))
		return appendSpans(spans, v.Elem(), place)
	case reflect.Interface:
		if v.IsNil() {
			return spans
		}
		return appendSpans(spans, v.Elem(), place)
	case reflect.Slice:
		if v.Cap() > 0 && v.Type().Elem().Size() > 0 {
			spans = append(spans, spanOf(v, v.Cap(), place+"[]"))
		}
		for i := range v.Len() {
			spans = appendSpans(spans, v.Index(i), fmt.Sprintf("%s[%d]", place, i))
		}
	case reflect.Array:
		for i := range v.Len() {
			spans = appendSpans(spans, v.Index(i), fmt.Sprintf("%s[%d]", place, i))
		}
	case reflect.Struct:
		if v.Type().PkgPath() == "net/netip" {
			return spans // a netip.Addr shares only memory that never changes
		}
		for i := range v.NumField() {
			spans = appendSpans(spans, v.Field(i), place+"."+v.Type().Field(i).Name)
		}
	case reflect.Map:
		if v.IsNil() {
			return spans
		}
		spans = append(spans, span{v.Pointer(), v.Pointer() + 1, place})
		for it := v.MapRange(); it.Next(); {
			spans = appendSpans(spans, it.Value(), fmt.Sprintf("%s[%v]", place, it.Key()))
		}
	}
	return spans
}

// TestDecodedValuesDoNotChangeLater requires that values stay the same while the same buffer and decoder handle many
// more documents, including invalid ones.
func TestDecodedValuesDoNotChangeLater(t *testing.T) {
	type kept struct {
		seed       int64
		value      any
		then, text []byte
	}
	var all []kept
	buffer := make([]byte, 0, 64<<10)
	for seed := range int64(1000) {
		c := decodetest.NewCase(seed)
		buffer = append(buffer[:0], c.Doc...)
		v := reflect.New(c.Type).Interface()
		if decode.Unmarshal(buffer, v) != nil {
			continue
		}
		if text, err := json.Marshal(v); err == nil {
			all = append(all, kept{seed, v, text, c.Doc})
		}
	}
	for _, k := range all {
		if now, err := json.Marshal(k.value); err != nil || !bytes.Equal(now, k.then) {
			t.Fatalf("seed %d: %T was %s, is %s, error %v", k.seed, k.value, k.then, now, err)
		}
	}
}

// TestListsOfAnyLength decodes lists of many lengths, because the decoder collects their elements in reused memory. The
// results must equal those of sigs.k8s.io/json.
func TestListsOfAnyLength(t *testing.T) {
	for _, elem := range []string{`{}`, `{"name":"a"}`, `null`, `{"name":"b","env":[{"name":"x"},{"name":"y"}]}`} {
		for _, length := range []int{0, 1, 2, 7, 8, 9, 100, 5000, 3, 0, 8} {
			list := bytes.Repeat([]byte(","+elem), length)
			doc := slices.Concat([]byte(`{"containers":[`), bytes.TrimPrefix(list, []byte(",")), []byte(`]}`))
			for _, typ := range []reflect.Type{reflect.TypeFor[corev1.PodSpec](), reflect.TypeFor[any](), reflect.TypeFor[map[string][]any]()} {
				if err := decodetest.Compare(decode.Unmarshal, typ, doc); err != nil {
					t.Errorf("%d of %s into %s: %v", length, elem, typ, err)
				}
			}
		}
	}
}

// A keeper is a type whose UnmarshalJSON keeps its input. A type in a handler may do so, although it should not.
type keeper struct{ raw []byte }

func (k *keeper) UnmarshalJSON(raw []byte) error { k.raw = raw; return nil }

// TestTypesMayKeepTheirInput decodes documents that contain a keeper in every way that the decoder has, and then
// overwrites the documents. The bytes that the keeper kept must not change.
func TestTypesMayKeepTheirInput(t *testing.T) {
	type holder struct {
		K    keeper            `json:"k"`
		List []*keeper         `json:"list"`
		Map  map[string]keeper `json:"map"`
		Name string            `json:"name"`
		Int  int               `json:"int,string"`
	}
	for reason, row := range map[string]struct {
		doc  string
		kept func(holder) []byte
	}{
		"a member":       {`{"k":{"a":1}}`, func(h holder) []byte { return h.K.raw }},
		"an element":     {`{"list":[{"a":1}]}`, func(h holder) []byte { return h.List[0].raw }},
		"a map entry":    {`{"map":{"x":{"a":1}}}`, func(h holder) []byte { return h.Map["x"].raw }},
		"a name twice":   {`{"k":{"a":1},"name":"x","name":"y"}`, func(h holder) []byte { return h.K.raw }},
		"an option used": {`{"int":"3","k":{"a":1}}`, func(h holder) []byte { return h.K.raw }},
	} {
		doc := []byte(row.doc)
		var h holder
		if err := decode.Unmarshal(doc, &h); err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		for i := range doc {
			doc[i] = '#'
		}
		if got := string(row.kept(h)); got != `{"a":1}` {
			t.Errorf("%s: the bytes that the type kept became %q", reason, got)
		}
	}
	var plain struct {
		K    keeper `json:"k"`
		Name string `json:"name"`
	}
	doc := []byte(`{"k":{"a":1},"name":"x","name":"y"}`)
	if err := decode.Unmarshal(doc, &plain); err != nil {
		t.Fatal(err)
	}
	clear(doc)
	if got := string(plain.K.raw); got != `{"a":1}` {
		t.Errorf("a name twice in a plain type: the bytes that the type kept became %q", got)
	}
}
