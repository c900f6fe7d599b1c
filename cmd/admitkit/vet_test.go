// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestCallsOfGoVet checks that only the arguments of "go vet -vettool" make the program an analyzer.
func TestCallsOfGoVet(t *testing.T) {
	for args, want := range map[string]bool{
		"-V=full": true, "-flags": true, "vet.cfg": true, "-denial -json vet.cfg": true,
		"": false, "vet": false, "lint a.cfg": false, "--color=never lint -f a.cfg": false, "vet ./...": false, "lint -flags": false,
	} {
		if got := calledByGoVet(strings.Fields(args)); got != want {
			t.Errorf("%q: got %t", args, got)
		}
	}
}
