// SPDX-License-Identifier: Apache-2.0

package vet_test

import (
	"fmt"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/admitkit/admitkit/pkg/vet"
)

// The analyzer reports the lines that testdata marks, and no others, and its fixes give the golden file.
func TestAnalyzer(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), vet.Analyzer, "hooks")
}

func Example() {
	// A separate command can run the analyzer: singlechecker.Main(vet.Analyzer)
	fmt.Println(vet.Analyzer.Name)
	// Output: denial
}
