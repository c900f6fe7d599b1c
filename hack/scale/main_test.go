// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/hack/scale/model"
)

var update = flag.Bool("update", false, "write the tables into docs/operations.md")

// TestDocs compares the first row of the first table in the docs with the simulation, and the rates of the others. The other
// results take minutes: -update writes them.
func TestDocs(t *testing.T) {
	const page = "../../docs/operations.md"
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	s := settings{Cluster: model.Cluster{Nodes: 5000, Pods: 150_000, PodLifetime: 24 * time.Hour, PodStarts: 100}, servers: 3, replicas: 20}
	if *update {
		before, rest, found := strings.Cut(string(old), "<!-- scale -->\n")
		_, after, ended := strings.Cut(rest, "<!-- end -->")
		if !found || !ended {
			t.Fatal(page + " has no place for the tables")
		}
		var tables bytes.Buffer
		s.write(&tables)
		if err := os.WriteFile(page, []byte(before+"<!-- scale -->\n"+tables.String()+"<!-- end -->"+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	var first strings.Builder
	s.writeHook(&first, hooks[0])
	want := []string{first.String()}
	for _, h := range hooks {
		mean, peak := s.rates(h)
		want = append(want, fmt.Sprintf("| %s | %.0f | %.0f | %.2f |", h.name, mean, peak, peak*cpu.Seconds()))
	}
	for _, row := range want {
		if !strings.Contains(string(old), row) {
			t.Errorf("%s lacks %q; run go test ./hack/scale -update", page, row)
		}
	}
}
