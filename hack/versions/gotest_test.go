// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	const out = `{"Action":"start","Package":"p"}
{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA/inner"}
{"Action":"pass","Test":"TestA"}
{"Action":"output","Test":"TestB","Output":"b_test.go:1: it is 2\n"}
{"Action":"fail","Test":"TestB"}
{"Action":"output","Test":"TestC","Output":"c_test.go:1: no server\n"}
{"Action":"skip","Test":"TestC"}
{"Action":"output","Test":"TestSpecs","Output":"\u001b[32mSUCCESS!\u001b[0m -- \u001b[32m827 Passed\u001b[0m | \u001b[31m0 Failed\u001b[0m | \u001b[33m1 Pending\u001b[0m | \u001b[36m2 Skipped\u001b[0m\n"}
{"Action":"pass","Test":"TestSpecs"}
{"Action":"output","Output":"FAIL p\n"}
{"Action":"fail","Package":"p"}
`
	var failures bytes.Buffer
	got, err := read(strings.NewReader(out), &failures)
	if err != nil {
		t.Fatal(err)
	}
	want := &result{passed: 828, failed: []string{"TestB"}, skipped: []string{"TestC", "pending spec", "skipped spec", "skipped spec"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
	if want := "b_test.go:1: it is 2\nFAIL p\n"; failures.String() != want {
		t.Errorf("printed %q, want %q", failures.String(), want)
	}
	if _, err := read(strings.NewReader("no JSON"), &failures); err == nil {
		t.Error("a line that is not JSON is accepted")
	}
}

func TestTable(t *testing.T) {
	results := &table{versions: []string{"v1.36.3", "v1.37.2"}}
	results.add(0, &result{passed: 3})
	results.add(0, &result{passed: 2, failed: []string{"TestB"}, skipped: []string{"TestC"}})
	text := results.text([]suite{{title: "specs"}})
	if want := "| Tests | v1.36.3 | v1.37.2 |\n|---|---|---|\n| specs | 3 | 2 |\n"; text != want {
		t.Errorf("table:\n%s\nwant:\n%s", text, want)
	}
	if diff := cmp.Diff([]string{"v1.37.2 TestB", "v1.37.2 TestC"}, results.failures()); diff != "" {
		t.Error(diff)
	}
	declared[[2]string{"", "TestC"}] = "for this test"
	t.Cleanup(func() { clear(declared) })
	if diff := cmp.Diff([]string{"v1.37.2 TestB"}, results.failures()); diff != "" {
		t.Error(diff)
	}
}
