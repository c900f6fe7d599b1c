// SPDX-License-Identifier: Apache-2.0

package vet_test

import (
	"fmt"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/admitkit/admitkit/pkg/vet"
)

// The analyzer must report exactly the lines with a "want" comment in testdata. Its suggested fixes must turn each file
// into the golden file beside it.
func TestAnalyzer(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), vet.Analyzer, "hooks")
}

func Example() {
	// A separate command can run the analyzer: singlechecker.Main(vet.Analyzer)
	fmt.Println(vet.Analyzer.Name)
	// Output: denial
}
