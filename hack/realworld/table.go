// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/admitkit/admitkit/pkg/idempotence"
)

// The judgements of a finding, each from reading the project's code.
const (
	defect   = "defect"   // worth a ticket of the project
	harmless = "harmless" // true, without a consequence
	intended = "intended" // true, and the project means it
	wrong    = "false"    // it does not happen in a cluster
	unjudged = "UNJUDGED"
)

// A judgement is our verdict on findings that have one cause.
type judgement struct {
	Webhook string `json:"webhook"`
	// Laws are those that the cause breaks. Each of them must have a finding.
	Laws []idempotence.Law `json:"laws"`
	// About is a part of the summaries of the findings.
	About     string `json:"about"`
	Judgement string `json:"judgement"`
	Reason    string `json:"reason"`
	// Sometimes means that not every run has the findings, because the webhook answers at random.
	Sometimes bool `json:"sometimes,omitempty"`

	found map[idempotence.Law]bool
}

// A row is the result for one webhook.
type row struct {
	project  *project
	webhook  string
	report   *idempotence.Report
	findings []finding
}

// A finding is one violation, with the judgement of it.
type finding struct {
	*idempotence.Violation
	judgement *judgement
}

// judge assigns each violation of the report to a judgement. Advice needs none.
func (r *row) judge(all []*judgement) {
	for _, v := range r.report.Findings {
		if v.Verdict == idempotence.Advice {
			continue
		}
		f := finding{v, &judgement{Laws: []idempotence.Law{v.Law}, About: v.Summary, Judgement: unjudged, Reason: v.Cause}}
		for _, j := range all {
			if j.Webhook == r.webhook && slices.Contains(j.Laws, v.Law) && strings.Contains(v.Summary, j.About) {
				f.judgement = j
				if j.found == nil {
					j.found = map[idempotence.Law]bool{}
				}
				j.found[v.Law] = true
				break
			}
		}
		r.findings = append(r.findings, f)
	}
}

// show prints the table and the counts. It returns an error for each finding without judgement and each judgement
// without finding.
func show(out io.Writer, projects []*project, rows []*row) error {
	var errs []error
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROJECT\tVERSION\tWEBHOOK\tCALLS\tVERDICT\tCAUSES\tLAWS")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%d\t%s\n",
			r.project.Module, r.project.version, r.webhook, r.report.Calls, r.verdict(), len(r.causes()), r.laws())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	counts, causes := map[string]int{}, map[string]int{}
	for _, r := range rows {
		for _, f := range r.findings {
			counts[f.judgement.Judgement]++
			if f.judgement.Judgement == unjudged {
				errs = append(errs, fmt.Errorf("%s: %s: %s: UNJUDGED: %s", r.project.name, r.webhook, f.Law, f.Summary))
			}
		}
		for _, j := range r.causes() {
			causes[j.Judgement]++
			fmt.Fprintf(out, "\n%s %s, %s: %s\n  %s: %s\n  %s\n", r.project.Module, r.project.version, r.webhook, lawsText(j.Laws),
				j.Judgement, short(j.About), j.Reason)
		}
	}
	fmt.Fprintf(out, "\n%s\n%s\n", precision("violations", counts), precision("causes", causes))
	for _, p := range projects {
		for _, j := range p.judgements {
			for _, law := range j.Laws {
				if !j.found[law] && !j.Sometimes {
					errs = append(errs, fmt.Errorf("%s: %s: no finding of %s is about %q: remove the judgement", p.name, j.Webhook, law, j.About))
				}
			}
		}
		if p.Before != "" {
			errs = append(errs, mended(out, projects, p))
		}
	}
	return errors.Join(errs...)
}

// mended prints the defects of the older version that the newer one does not have. It returns an error if there are none.
func mended(out io.Writer, projects []*project, after *project) error {
	i := slices.IndexFunc(projects, func(p *project) bool { return p.name == after.Before })
	if i < 0 {
		return nil // only some projects were tested
	}
	before, n := projects[i], 0
	for _, j := range before.judgements {
		if j.Judgement == defect && !slices.ContainsFunc(after.judgements, func(k *judgement) bool { return k.Webhook == j.Webhook && k.About == j.About }) {
			fmt.Fprintf(out, "mended: %s, %s: %s is flagged, %s is not: %s\n", after.Module, j.Webhook, before.version, after.version, short(j.About))
			n++
		}
	}
	if n == 0 {
		return fmt.Errorf("%s: it has every defect of %s", after.name, after.Before)
	}
	return nil
}

func (r *row) verdict() string {
	switch {
	case !r.report.OK():
		return "fails"
	case len(r.report.Incomplete) > 0:
		return "incomplete"
	}
	return "passes"
}

// causes returns the judgements of the row, each once.
func (r *row) causes() (all []*judgement) {
	for _, f := range r.findings {
		if !slices.Contains(all, f.judgement) {
			all = append(all, f.judgement)
		}
	}
	return all
}

// laws returns the laws that fail.
func (r *row) laws() string {
	var all []idempotence.Law
	for _, f := range r.findings {
		if !slices.Contains(all, f.Law) {
			all = append(all, f.Law)
		}
	}
	return lawsText(all)
}

func lawsText(laws []idempotence.Law) string {
	var all []string
	for _, law := range laws {
		all = append(all, string(law))
	}
	return strings.Join(all, " ")
}

// short returns the first part of a long text.
func short(text string) string {
	if len(text) > 160 {
		return strings.ToValidUTF8(text[:160], "") + "…"
	}
	return text
}

// precision returns a line with the number of each judgement, and the share of defects.
func precision(of string, counts map[string]int) string {
	total := 0
	for _, n := range counts {
		total += n
	}
	percent := 100
	if total > 0 {
		percent = 100 * counts[defect] / total
	}
	return fmt.Sprintf("%s: %d: %d defects, %d harmless, %d intended, %d false, %d not judged; precision %d %%",
		of, total, counts[defect], counts[harmless], counts[intended], counts[wrong], counts[unjudged], percent)
}
