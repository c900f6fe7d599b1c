// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestListReportsEverySpec(t *testing.T) {
	const setup = `{"LeafNodeType":"BeforeSuite","State":"passed","RunTime":5000000000}`
	const one = `{"ContainerHierarchyTexts":["hooks","with v1"],"LeafNodeType":"It","LeafNodeText":"see a create","State":"passed","RunTime":1250000000}`
	rows := []struct {
		reason  string
		specs   string
		want    string
		wantErr bool
	}{
		{"what passed is listed, setup is not", setup + "," + one,
			"passed      1.2s  hooks with v1 see a create\nspecs: 1 passed, 0 failed, 0 skipped\n", false},
		{"a failure shows its first line", `{"LeafNodeType":"It","LeafNodeText":"breaks","State":"failed","RunTime":0,"Failure":{"Message":"Expected\n 1"}},` + one,
			"failed      0.0s  breaks\n                  Expected\npassed      1.2s  hooks with v1 see a create\nspecs: 1 passed, 1 failed, 0 skipped\n", true},
		{"a panic is a failure", `{"LeafNodeType":"It","LeafNodeText":"breaks","State":"panicked"}`,
			"panicked    0.0s  breaks\nspecs: 0 passed, 1 failed, 0 skipped\n", true},
		{"a failed setup shows", `{"LeafNodeType":"BeforeSuite","State":"failed"},` + one,
			"failed      0.0s  [BeforeSuite]\npassed      1.2s  hooks with v1 see a create\nspecs: 1 passed, 1 failed, 0 skipped\n", true},
		{"skipped is not passed", one + `,{"LeafNodeType":"It","LeafNodeText":"later","State":"skipped"},{"LeafNodeType":"It","LeafNodeText":"some day","State":"pending"}`,
			"passed      1.2s  hooks with v1 see a create\nskipped     0.0s  later\npending     0.0s  some day\nspecs: 1 passed, 0 failed, 2 skipped\n", true},
		{"nothing ran", setup, "specs: 0 passed, 0 failed, 0 skipped\n", true},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			var out strings.Builder
			err := list([]byte(`[{"SpecReports":[`+row.specs+`]}]`), &out)
			if (err != nil) != row.wantErr {
				t.Errorf("got error %v, want an error: %v", err, row.wantErr)
			}
			if out.String() != row.want {
				t.Errorf("got\n%swant\n%s", out.String(), row.want)
			}
		})
	}
}

func TestListRejectsInvalidReports(t *testing.T) {
	if err := list([]byte("{"), &strings.Builder{}); err == nil {
		t.Error("got no error")
	}
}
