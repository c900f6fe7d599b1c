// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/redact"
	"github.com/admitkit/admitkit/internal/redact/planted"
)

// TestPlanted requires that no secret of random calls survives, call by call.
func TestPlanted(t *testing.T) {
	r, err := redact.New(redact.NewKey(), []string{planted.SecretPath})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		p := planted.New(seed)
		calls := p.Calls(strconv.FormatUint(seed, 10))
		var out strings.Builder
		for _, call := range calls {
			request, answer, err := r.Call(call.Request, call.Answer)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(request)
			out.Write(answer)
		}
		for _, found := range p.Surviving(out.String()) {
			t.Errorf("seed %d: a secret survives: %s", seed, found)
		}
	}
}
