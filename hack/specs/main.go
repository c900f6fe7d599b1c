// SPDX-License-Identifier: Apache-2.0

// Command specs lists the specs in a Ginkgo JSON report, one per line. It fails unless every spec
// ran and passed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: specs REPORT.json")
		os.Exit(2)
	}
	report, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = list(report, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "specs:", err)
		os.Exit(1)
	}
}

// suite has the fields of Ginkgo's types.Report that the list needs.
type suite struct {
	SpecReports []spec
}

type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 time.Duration
	Failure                 struct{ Message string }
}

// list prints the specs of a report, and the setup nodes that did not pass.
func list(report []byte, out io.Writer) error {
	var suites []suite
	if err := json.Unmarshal(report, &suites); err != nil {
		return err
	}
	counts := map[string]int{}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			if spec.LeafNodeType != "It" && spec.State == "passed" {
				continue
			}
			counts[spec.State]++
			fmt.Fprintf(out, "%-8s %6.1fs  %s\n", spec.State, spec.RunTime.Seconds(), spec.name())
			if message, _, _ := strings.Cut(strings.TrimSpace(spec.Failure.Message), "\n"); message != "" {
				fmt.Fprintf(out, "%18s%s\n", "", message)
			}
		}
	}
	skipped := counts["skipped"] + counts["pending"]
	failed := -counts["passed"] - skipped
	for _, n := range counts {
		failed += n
	}
	fmt.Fprintf(out, "specs: %d passed, %d failed, %d skipped\n", counts["passed"], failed, skipped)
	if failed+skipped > 0 || counts["passed"] == 0 {
		return errors.New("not every spec passed")
	}
	return nil
}

func (s *spec) name() string {
	name := strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
	if s.LeafNodeType != "It" {
		name = strings.TrimSpace("[" + s.LeafNodeType + "] " + name)
	}
	return name
}
