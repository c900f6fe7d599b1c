// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

// A run of the suite without a filter prints a list of all specs at its end. Every spec must run and pass.
var _ = ReportAfterSuite("all specs ran and passed", func(report Report) {
	c := report.SuiteConfig
	if filters := slices.Concat(c.FocusStrings, c.SkipStrings, c.FocusFiles, c.SkipFiles); len(filters) == 0 && c.LabelFilter == "" {
		Expect(listSpecs(report.SpecReports, os.Stdout)).To(Succeed())
	}
})

// listSpecs prints the specs of a report, and the setup nodes that did not pass. It fails unless every spec ran and
// passed.
func listSpecs(specs types.SpecReports, out io.Writer) error {
	counts := map[types.SpecState]int{}
	for _, spec := range specs {
		if spec.LeafNodeType != types.NodeTypeIt && spec.State == types.SpecStatePassed {
			continue
		}
		counts[spec.State]++
		name := spec.FullText()
		if spec.LeafNodeType != types.NodeTypeIt {
			name = strings.TrimSpace("[" + spec.LeafNodeType.String() + "] " + name)
		}
		fmt.Fprintf(out, "%-8s %6.1fs  %s\n", spec.State, spec.RunTime.Seconds(), name)
		if message, _, _ := strings.Cut(strings.TrimSpace(spec.Failure.Message), "\n"); message != "" {
			fmt.Fprintf(out, "%18s%s\n", "", message)
		}
	}
	passed, skipped := counts[types.SpecStatePassed], counts[types.SpecStateSkipped]+counts[types.SpecStatePending]
	failed := -passed - skipped
	for _, n := range counts {
		failed += n
	}
	fmt.Fprintf(out, "specs: %d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed+skipped > 0 || passed == 0 {
		return errors.New("not every spec passed")
	}
	return nil
}

func TestListReportsEverySpec(t *testing.T) {
	setup := types.SpecReport{LeafNodeType: types.NodeTypeBeforeSuite, State: types.SpecStatePassed, RunTime: 5 * time.Second}
	one := types.SpecReport{
		ContainerHierarchyTexts: []string{"hooks", "with v1"}, LeafNodeType: types.NodeTypeIt, LeafNodeText: "see a create",
		State: types.SpecStatePassed, RunTime: 1250 * time.Millisecond,
	}
	it := func(text string, state types.SpecState, message string) types.SpecReport {
		return types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: text, State: state, Failure: types.Failure{Message: message}}
	}
	rows := []struct {
		reason  string
		specs   types.SpecReports
		want    string
		wantErr bool
	}{
		{"what passed is listed, setup is not", types.SpecReports{setup, one},
			"passed      1.2s  hooks with v1 see a create\nspecs: 1 passed, 0 failed, 0 skipped\n", false},
		{"a failure shows its first line", types.SpecReports{it("breaks", types.SpecStateFailed, "Expected\n 1"), one},
			"failed      0.0s  breaks\n                  Expected\npassed      1.2s  hooks with v1 see a create\nspecs: 1 passed, 1 failed, 0 skipped\n", true},
		{"a panic is a failure", types.SpecReports{it("breaks", types.SpecStatePanicked, "")},
			"panicked    0.0s  breaks\nspecs: 0 passed, 1 failed, 0 skipped\n", true},
		{"a failed setup shows", types.SpecReports{{LeafNodeType: types.NodeTypeBeforeSuite, State: types.SpecStateFailed}, one},
			"failed      0.0s  [BeforeSuite]\npassed      1.2s  hooks with v1 see a create\nspecs: 1 passed, 1 failed, 0 skipped\n", true},
		{"skipped is not passed", types.SpecReports{one, it("later", types.SpecStateSkipped, ""), it("some day", types.SpecStatePending, "")},
			"passed      1.2s  hooks with v1 see a create\nskipped     0.0s  later\npending     0.0s  some day\nspecs: 1 passed, 0 failed, 2 skipped\n", true},
		{"nothing ran", types.SpecReports{setup}, "specs: 0 passed, 0 failed, 0 skipped\n", true},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			var out strings.Builder
			if err := listSpecs(row.specs, &out); (err != nil) != row.wantErr {
				t.Errorf("got error %v, want an error: %v", err, row.wantErr)
			}
			if out.String() != row.want {
				t.Errorf("got\n%swant\n%s", out.String(), row.want)
			}
		})
	}
}
