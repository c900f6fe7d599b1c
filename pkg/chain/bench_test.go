// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"net/http"
	"testing"

	"github.com/admitkit/admitkit/pkg/chain"
)

func BenchmarkAdmit(b *testing.B) {
	for name, w := range map[string]chain.Webhooks{
		"none": {},
		"one": {
			Mutating: mutating(mutatingHook("label.example.com")),
			Handlers: map[string]http.Handler{"label.example.com": patching(addLabel("seen", "yes"))},
		},
		"three": {
			Mutating:   mutating(mutatingHook("a.example.com"), mutatingHook("b.example.com")),
			Validating: validating(validatingHook("c.example.com")),
			Handlers: map[string]http.Handler{
				"a.example.com": patching(addLabel("a", "yes")), "b.example.com": patching(addLabel("b", "yes")), "c.example.com": allowing(),
			},
		},
	} {
		b.Run(name, func(b *testing.B) {
			c := newChain(b, w)
			req := createPod("web")
			admit(b, c, req)
			b.ReportAllocs()
			for b.Loop() {
				admit(b, c, req)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	w := chain.Webhooks{
		Mutating: mutating(mutatingHook("label.example.com")),
		Handlers: map[string]http.Handler{"label.example.com": allowing()},
	}
	b.ReportAllocs()
	for b.Loop() {
		newChain(b, w)
	}
}
