// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// A view is the data for the template: a Page within the limits of text.go. The template escapes and clips its texts.
type view struct {
	*Page
	StatusText, Mark string
	Tables           []table
	Findings         []finding
	Filters          []filter
	// Nothing lists the pairs of filter options that match no finding.
	Nothing []nothing
	// MoreNotes are added to those of the page.
	MoreNotes []string
}

type (
	finding struct {
		*Finding
		Anchor       int
		Classes      []string
		Tone, Badge  string
		About, Rules []Fact
		Changes      *changes
		Steps        []Step
		Open         bool
		Left         string // number of steps not shown, in words
	}
	changes struct {
		*Changes
		List []Change
		Left string
	}
	table struct {
		Table
		ID      int
		Columns []Column
		Rows    [][]cell
		Left    string
	}
	cell struct {
		Cell
		Column Column
		Anchor int // number of the linked finding, from 1; 0 without a link
	}
	filter struct {
		ID, Title string
		Options   []option
	}
	option struct {
		Number int
		Text   string
		Count  int
	}
	nothing struct {
		Law      int
		Webhooks []int
	}
)

var (
	statuses = []struct{ text, mark string }{{"passed", "good"}, {"findings", "bad"}, {"undecided", "doubtful"}}
	badges   = []struct{ text, tone string }{{"error", "bad"}, {"warning", "doubtful"}, {"advice", "faint"}}
)

func newView(p *Page) *view {
	v := &view{Page: p, StatusText: statuses[p.Status].text, Mark: statuses[p.Status].mark}
	shown, left := most(p.Findings)
	if left != "" {
		v.MoreNotes = append(v.MoreNotes, left)
	}
	anchors := map[string]int{}
	for i := range shown {
		if id := shown[i].ID; id != "" {
			anchors[id] = i + 1
		}
	}
	for i, t := range p.Tables {
		v.Tables = append(v.Tables, tableOf(i+1, t, anchors))
	}
	laws := filterBy("law", cmp.Or(p.LawName, "Law"), shown, func(f *Finding) []string { return []string{f.Law} })
	webhooks := filterBy("hook", "Webhook", shown, func(f *Finding) []string { return f.Webhooks })
	texts := mostOfTexts
	for i := range shown {
		f := findingOf(&shown[i], &texts)
		f.Anchor = i + 1
		f.Open = len(shown) <= 5
		f.Classes = append(laws.classes(i), webhooks.classes(i)...)
		v.Findings = append(v.Findings, f)
	}
	for _, by := range []*findingFilter{laws, webhooks} {
		if len(by.filter.Options) > 1 {
			v.Filters = append(v.Filters, by.filter)
		}
	}
	if len(v.Filters) == 2 {
		v.Nothing = pairsWithout(laws, webhooks, len(shown))
	}
	return v
}

// most returns the findings to show. If there are too many, it keeps the most severe in their order.
func most(all []Finding) ([]Finding, string) {
	if len(all) <= mostFindings {
		return all, ""
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(all[a].Severity) - int(all[b].Severity) })
	order = order[:mostFindings]
	slices.Sort(order)
	shown := make([]Finding, 0, mostFindings)
	for _, i := range order {
		shown = append(shown, all[i])
	}
	return shown, fmt.Sprintf("This page shows the %d worst of %d findings; the JSON output has all of them.", mostFindings, len(all))
}

func tableOf(id int, t Table, anchors map[string]int) table {
	shown := table{Table: t, ID: id}
	empty := func(i int) bool {
		return !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return i < len(row) && row[i].Text != "" })
	}
	for i, column := range t.Columns {
		if !empty(i) {
			shown.Columns = append(shown.Columns, column)
		}
	}
	var rows [][]Cell
	rows, shown.Left = limited(t.Rows, mostRows, "rows")
	for _, row := range rows {
		var cells []cell
		for i, c := range row[:min(len(row), len(t.Columns))] {
			if !empty(i) {
				cells = append(cells, cell{c, t.Columns[i], anchors[c.To]})
			}
		}
		shown.Rows = append(shown.Rows, cells)
	}
	return shown
}

// limited returns the beginning of a list, and a sentence about the rest if there is one.
func limited[T any](list []T, most int, what string) (shown []T, left string) {
	if len(list) <= most {
		return list, ""
	}
	return list[:most], fmt.Sprintf("%d more %s are left out.", len(list)-most, what)
}

// findingOf converts a finding to data for the template. texts is how many bytes of text the steps may still add to the
// page. findingOf reduces it, and omits the steps that exceed it.
func findingOf(f *Finding, texts *int) finding {
	shown := finding{Finding: f, Badge: cmp.Or(f.Badge, badges[f.Severity].text), Tone: badges[f.Severity].tone}
	shown.About = []Fact{{"Kind", f.Kind}}
	for _, w := range f.Webhooks {
		shown.About = append(shown.About, Fact{"Webhook", w})
	}
	shown.Rules = []Fact{{"Found", f.Summary}, {"Cause", f.Cause}, {"Fix", f.Fix}}
	if f.Changes != nil {
		shown.Changes = &changes{Changes: f.Changes}
		shown.Changes.List, shown.Changes.Left = limited(f.Changes.List, mostRows, "changes")
	}
	shown.Steps, shown.Left = limited(f.Steps, mostSteps, "steps")
	for i := range shown.Steps {
		if *texts -= weight(&shown.Steps[i]); *texts < 0 {
			shown.Steps = shown.Steps[:i]
			shown.Left = "The next steps are left out, to keep this page small; the JSON output has them."
			break
		}
	}
	return shown
}

// weight estimates the bytes that a step adds to the page.
func weight(s *Step) int {
	n := len(s.Text)
	for _, op := range s.Patch {
		n += min(len(op.Text), longestValue)
	}
	if s.Diff != nil {
		n += len(s.Diff.Before) + len(s.Diff.After)
	}
	return n
}

// A findingFilter is a filter of the page, with the numbers of the options that select each finding.
type findingFilter struct {
	filter  filter
	numbers [][]int
}

// filterBy returns a filter with an option for each name of findings, in order of appearance. If there are more than
// mostFilters names, the last option stands for the rest. The template adds option 0, which selects all findings.
func filterBy(id, title string, findings []Finding, names func(*Finding) []string) *findingFilter {
	by := &findingFilter{filter: filter{ID: id, Title: title}, numbers: make([][]int, len(findings))}
	known := map[string]int{}
	for i := range findings {
		for _, name := range names(&findings[i]) {
			if name == "" {
				continue
			}
			number, there := known[name]
			if !there {
				if number = len(by.filter.Options) + 1; number > mostFilters {
					number = mostFilters
					by.filter.Options[number-1].Text = "others"
				} else {
					by.filter.Options = append(by.filter.Options, option{Number: number, Text: name})
				}
				known[name] = number
			}
			if !slices.Contains(by.numbers[i], number) {
				by.numbers[i] = append(by.numbers[i], number)
				by.filter.Options[number-1].Count++
			}
		}
	}
	return by
}

func (by *findingFilter) classes(i int) (classes []string) {
	for _, n := range by.numbers[i] {
		classes = append(classes, by.filter.ID+"-"+strconv.Itoa(n))
	}
	return classes
}

// pairsWithout returns, for each law, the webhooks that share no finding with the law. Both are option numbers. It
// omits laws that share a finding with every webhook.
func pairsWithout(laws, webhooks *findingFilter, findings int) (pairs []nothing) {
	there := map[[2]int]bool{}
	for i := range findings {
		for _, l := range laws.numbers[i] {
			for _, w := range webhooks.numbers[i] {
				there[[2]int{l, w}] = true
			}
		}
	}
	for _, l := range laws.filter.Options {
		without := nothing{Law: l.Number}
		for _, w := range webhooks.filter.Options {
			if !there[[2]int{l.Number, w.Number}] {
				without.Webhooks = append(without.Webhooks, w.Number)
			}
		}
		if len(without.Webhooks) > 0 {
			pairs = append(pairs, without)
		}
	}
	return pairs
}
