// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"reflect"
	"testing"

	"github.com/admitkit/admitkit/internal/decode/decodetest"
)

// FuzzUnmarshal looks for a document and a type, chosen by number, on which the decoder and sigs.k8s.io/json
// differ.
func FuzzUnmarshal(f *testing.F) {
	selectors := map[reflect.Type]uint16{}
	for i := range uint16(1000) {
		selectors[decodetest.TypeFor(i)] = i
	}
	for seed := range int64(1200) {
		if c := decodetest.NewCase(seed); len(c.Doc) < 4<<10 {
			f.Add(selectors[c.Type], c.Doc)
		}
	}
	f.Fuzz(func(t *testing.T, selector uint16, doc []byte) {
		c := decodetest.Case{Type: decodetest.TypeFor(selector), Doc: doc}
		if err := decodetest.Compare(unmarshal, c.Type, c.Doc); err != nil {
			t.Fatalf("%s from %q: %v", c.Type, doc, err)
		}
	})
}
