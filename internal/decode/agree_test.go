// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"testing"

	"github.com/admitkit/admitkit/internal/decode/decodetest"
)

// TestUnmarshalAgreesWithKubernetesJSON compares Unmarshal with sigs.k8s.io/json on random documents, most of them
// damaged. The types are built-in types, odd types and generated types. ADMITKIT_DECODE_CASES sets the number of cases,
// ADMITKIT_DECODE_SEED the first seed.
func TestUnmarshalAgreesWithKubernetesJSON(t *testing.T) { decodetest.Run(t, unmarshal) }

// TestOddSpellingsAgree decodes unusual spellings of numbers, strings and names into many small types, and compares the
// results with those of sigs.k8s.io/json.
func TestOddSpellingsAgree(t *testing.T) {
	documents := 0
	for typ, doc := range decodetest.Edges() {
		documents++
		if err := decodetest.Compare(unmarshal, typ, doc); err != nil {
			t.Errorf("%s from %q: %v", typ, doc, err)
		}
	}
	t.Logf("%d documents", documents)
}
