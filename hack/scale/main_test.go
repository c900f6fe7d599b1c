// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/hack/scale/model"
)

var update = flag.Bool("update", false, "write the tables into docs/operations.md")

// TestDocs compares the tables in the docs with those of the simulation.
func TestDocs(t *testing.T) {
	const page = "../../docs/operations.md"
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var tables bytes.Buffer
	s := settings{Cluster: model.Cluster{Nodes: 5000, Pods: 150_000, PodLifetime: 24 * time.Hour, PodStarts: 100}, servers: 3, replicas: 20}
	s.write(&tables)
	before, rest, found := strings.Cut(string(old), "<!-- scale -->\n")
	_, after, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !ended {
		t.Fatal(page + " has no place for the tables")
	}
	text := before + "<!-- scale -->\n" + tables.String() + "<!-- end -->" + after
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if text != string(old) {
		t.Errorf("%s has other tables; run go test ./hack/scale -update. They are now:\n%s", page, &tables)
	}
}
