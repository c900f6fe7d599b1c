// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
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

func TestOutputOfGoVet(t *testing.T) {
	const said = `go: downloading example.com/a v1.0.0
# example.com/a
{}
# example.com/b
{
	"example.com/b": {
		"denial": [
			{
				"posn": "/src/b.go:18:10",
				"message": "this error does not deny the request"
			}
		]
	}
}
# example.com/b [example.com/b.test]
{
	"example.com/b [example.com/b.test]": {
		"denial": [
			{
				"posn": "/src/b.go:18:10",
				"message": "this error does not deny the request"
			}
		]
	}
}
# example.com/c
{
	"example.com/c": {
		"denial": {
			"error": "the analyzer failed"
		}
	}
}
# example.com/d
d.go:2:12: undefined: x
`
	findings, failures, rest := parseVet([]byte(said))
	if want := (vetFindings{{"/src/b.go:18:10", "this error does not deny the request"}}); !slices.Equal(findings, want) {
		t.Errorf("got %v", findings)
	}
	if want := []string{"example.com/c: the analyzer failed"}; !slices.Equal(failures, want) {
		t.Errorf("got %q", failures)
	}
	if want := "go: downloading example.com/a v1.0.0\nd.go:2:12: undefined: x\n"; rest != want {
		t.Errorf("got %q", rest)
	}
}
