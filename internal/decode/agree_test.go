// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"testing"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/decode/decodetest"
)

// TestUnmarshalAgreesWithKubernetesJSON decodes random documents, most of them damaged, into
// built-in types, odd types and types made up. ADMITKIT_DECODE_CASES and ADMITKIT_DECODE_SEED
// set how many and which.
func TestUnmarshalAgreesWithKubernetesJSON(t *testing.T) { decodetest.Run(t, decode.Unmarshal) }
