// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestStartup: help and completion are quick as long as packages do no work before main. What others do
// cannot be helped; ours allocate little. docs/dependencies.md has the time that it takes.
func TestStartup(t *testing.T) {
	c := exec.Command("admitkit", "--help") // testscript.Main has it on PATH
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	c.Stderr = &trace
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	const most = 64 << 10
	known := map[string]int{ // tables that are wanted at once by nearly every command that needs the package
		"pkg/idempotence":  1 << 20,
		"internal/builtin": 512 << 10,
		"pkg/chain":        128 << 10,
	}
	seen := 0
	for line := range strings.Lines(trace.String()) {
		name, rest, ours := strings.Cut(strings.TrimPrefix(line, "init github.com/admitkit/admitkit/"), " ")
		if !ours || !strings.HasPrefix(line, "init github.com/admitkit/admitkit/") {
			continue
		}
		seen++
		bytes := 0
		fields := strings.Fields(rest)
		for i, f := range fields {
			if f == "bytes," {
				for _, c := range fields[i-1] {
					bytes = bytes*10 + int(c-'0')
				}
			}
		}
		if bytes > max(most, known[name]) {
			t.Errorf("%s allocates %d bytes before main: move that into a sync.OnceValue", name, bytes)
		}
	}
	if seen == 0 {
		t.Errorf("nothing of ours in the trace:\n%.500s", &trace)
	}
}
