// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"testing"

	"github.com/admitkit/admitkit/internal/decode/decodetest"
)

// TestUnmarshalAgreesWithKubernetesJSON decodes random documents, most of them damaged, into
// built-in types, odd types and types made up. ADMITKIT_DECODE_CASES and ADMITKIT_DECODE_SEED
// set how many and which.
func TestUnmarshalAgreesWithKubernetesJSON(t *testing.T) { decodetest.Run(t, unmarshal) }

// TestOddSpellingsAgree goes through all odd numbers, strings and names, in all small types.
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
