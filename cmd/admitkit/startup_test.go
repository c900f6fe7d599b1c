// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestStartup limits the memory that the initialization of each package of this module allocates, so that help and
// completion start quickly.
func TestStartup(t *testing.T) {
	c := exec.Command("admitkit", "--help") // testscript.Main has it on PATH
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	c.Stderr = &trace
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	const limit = 64 << 10
	higher := map[string]int{ // packages with tables that nearly every command needs
		"pkg/idempotence":        1 << 20,
		"internal/k8svalidation": 512 << 10,
		"pkg/chain":              128 << 10,
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
		if bytes > max(limit, higher[name]) {
			t.Errorf("%s allocates %d bytes before main: use sync.OnceValue", name, bytes)
		}
	}
	if seen == 0 {
		t.Errorf("the trace has no package of this module:\n%.500s", &trace)
	}
}
