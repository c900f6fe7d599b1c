// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// refresh replaces the tables of the measured parts in a Markdown file. A table is between the marks
// <!-- bench: NAME --> and <!-- end -->.
func (r *Report) refresh(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for name, tables := range r.parts() {
		var out bytes.Buffer
		for _, t := range tables {
			t.markdown(&out)
		}
		head, rest, found := bytes.Cut(text, []byte("<!-- bench: "+name+" -->\n"))
		_, tail, ends := bytes.Cut(rest, []byte("<!-- end -->"))
		if !found || !ends {
			return fmt.Errorf("%s has no mark <!-- bench: %s --> that is followed by <!-- end -->", file, name)
		}
		text = fmt.Appendf(nil, "%s<!-- bench: %s -->\n%s\n<!-- end -->%s", head, name, strings.TrimSuffix(out.String(), "\n"), tail)
	}
	return os.WriteFile(file, text, 0o644)
}

// parts returns the tables by the name in their mark.
func (r *Report) parts() map[string][]*table {
	parts := map[string][]*table{}
	if len(r.Admissions) > 0 {
		ratios := r.ratios()
		ratios.title = "Measured with " + r.subjects() + ".\n\n" + ratios.title
		parts["ratios"] = []*table{ratios, r.netRatios()}
		parts["times"] = []*table{r.times(), r.cpu()}
		parts["allocations"] = []*table{r.budgets(), r.allocations()}
	}
	if len(r.Wire) > 0 {
		parts["wire"] = []*table{endToEnd(r.over(1)), endToEnd(r.over(8))}
		parts["costs"] = []*table{costs(r.over(8))}
	}
	if len(r.Patches) > 0 {
		parts["patches"] = []*table{sums(r.Patches), patches(r.Patches, false), patches(r.Patches, true)}
	}
	return parts
}
