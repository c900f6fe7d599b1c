// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/admitkit/admitkit/internal/textutil"
)

// A view is the data of the template: a Page with all limits applied.
type view struct {
	Title, Status, Mark, Summary string
	Facts                        []fact
	Tables                       []table
	Findings                     []finding
	Filters                      []filter
	// Nothing lists the pairs of filter options that no finding has.
	Nothing []nothing
	Notes   []string
}

type (
	fact struct {
		Name  string
		Value value
	}
	finding struct {
		Anchor      int
		Classes     []string
		Tone, Badge string
		Title       string
		About       []fact
		Rules       []fact
		Changes     *changes
		Steps       []step
		Open        bool
		Left        string // number of rows not shown, in words
		Again       string
	}
	changes struct {
		From, To string
		List     []change
		Left     string
	}
	change struct{ Path, Old, New value }
	step   struct {
		Title, Who string
		Outcome    value
		Facts      []fact
		TextTitle  string
		Text       []string
		Patch      []operation
		Diff       *diff
	}
	operation struct {
		Text      value
		Offending bool
	}
	diff struct {
		Before, After string
		Left, Right   []line
		None          bool
	}
	table struct {
		ID          int
		Title, Text string
		Columns     []Column
		Rows        [][]cell
		Left        string
	}
	cell struct {
		Column string // name of the column, which a narrow screen shows in front of the text
		Text   value
		Anchor int // number of the linked finding, from 1; 0 without a link
		Tone   string
		Number bool
	}
	filter struct {
		ID, Name, Title string
		Options         []option
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
	statuses = []struct{ text, mark string }{{"passed", "good"}, {"findings", "bad"}, {"could not tell", "doubtful"}}
	badges   = []struct{ text, tone string }{{"error", "bad"}, {"warning", "doubtful"}, {"advice", "faint"}}
	tones    = []string{"", "good", "bad", "doubtful", "faint"}
)

func newView(p *Page) *view {
	v := &view{Title: textutil.Visible(p.Title), Summary: clip(textutil.Visible(p.Summary), longestValue)}
	v.Status, v.Mark = statuses[p.Status].text, statuses[p.Status].mark
	v.Facts = factsOf(p.Facts)
	for _, note := range p.Notes {
		v.Notes = append(v.Notes, clip(textutil.Visible(note), longestValue))
	}
	shown, left := most(p.Findings)
	if left != "" {
		v.Notes = append(v.Notes, left)
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
	lawName := p.LawName
	if lawName == "" {
		lawName = "Law"
	}
	laws := filterBy("law", lawName, shown, func(f *Finding) []string { return []string{f.Law} })
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
	return shown, fmt.Sprintf("This page shows %d of %d findings, the worst; the output as JSON has all.", mostFindings, len(all))
}

func factsOf(list []Fact) (facts []fact) {
	for _, f := range list {
		if f.Value != "" {
			facts = append(facts, fact{textutil.Visible(f.Name), valueOf(f.Value)})
		}
	}
	return facts
}

func tableOf(id int, t Table, anchors map[string]int) table {
	shown := table{ID: id, Title: textutil.Visible(t.Title), Text: textutil.Visible(t.Text)}
	empty := func(i int) bool {
		return !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return i < len(row) && row[i].Text != "" })
	}
	for i, column := range t.Columns {
		if !empty(i) {
			shown.Columns = append(shown.Columns, column)
		}
	}
	rows := t.Rows
	if len(rows) > mostRows {
		shown.Left = fmt.Sprintf("%d more rows are left out.", len(rows)-mostRows)
		rows = rows[:mostRows]
	}
	for _, row := range rows {
		var cells []cell
		for i, c := range row[:min(len(row), len(t.Columns))] {
			if empty(i) {
				continue
			}
			cells = append(cells, cell{
				Column: t.Columns[i].Name, Text: valueOf(c.Text), Anchor: anchors[c.To], Tone: tones[c.Tone], Number: t.Columns[i].Number,
			})
		}
		shown.Rows = append(shown.Rows, cells)
	}
	return shown
}

// findingOf converts a finding. The texts of its steps count against the limit of the page.
func findingOf(f *Finding, texts *int) finding {
	shown := finding{Title: clip(textutil.Visible(f.Title), longLine), Again: clip(textutil.Visible(f.Again), longestValue)}
	shown.Badge, shown.Tone = badges[f.Severity].text, badges[f.Severity].tone
	if f.Badge != "" {
		shown.Badge = textutil.Visible(f.Badge)
	}
	about := []Fact{{"Kind", f.Kind}}
	for _, w := range f.Webhooks {
		about = append(about, Fact{"Webhook", w})
	}
	shown.About = factsOf(about)
	for _, r := range []Fact{{"Statement", f.LawText}, {"Found", f.Summary}, {"Cause", f.Cause}, {"Fix", f.Fix}} {
		if r.Value != "" {
			shown.Rules = append(shown.Rules, fact{r.Name, value{Text: clip(textutil.Visible(r.Value), longestValue)}})
		}
	}
	shown.Changes = changesOf(f.Changes)
	for i := range f.Steps {
		if i == mostSteps {
			shown.Left = fmt.Sprintf("%d more steps are left out.", len(f.Steps)-i)
			break
		}
		if *texts -= weight(&f.Steps[i]); *texts < 0 {
			shown.Left = "The steps from here on are left out, to keep this page small; the output as JSON has them."
			break
		}
		shown.Steps = append(shown.Steps, stepOf(&f.Steps[i]))
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

func changesOf(c *Changes) *changes {
	if c == nil {
		return nil
	}
	shown := &changes{From: textutil.Visible(c.From), To: textutil.Visible(c.To)}
	for i, one := range c.List {
		if i == mostRows {
			shown.Left = fmt.Sprintf("%d more changes are left out.", len(c.List)-i)
			break
		}
		shown.List = append(shown.List, change{valueOf(one.Path), valueOf(one.Old), valueOf(one.New)})
	}
	return shown
}

func stepOf(s *Step) step {
	shown := step{
		Title: clip(textutil.Visible(s.Title), longLine), Who: clip(textutil.Visible(s.Who), longLine), Outcome: valueOf(s.Outcome),
		Facts: factsOf(s.Facts), TextTitle: textutil.Visible(s.TextTitle), Text: linesOf(s.Text),
	}
	for _, op := range s.Patch {
		shown.Patch = append(shown.Patch, operation{valueOf(op.Text), op.Offending})
	}
	if d := s.Diff; d != nil {
		shown.Diff = &diff{Before: "before", After: "after", None: d.Before == d.After}
		if d.BeforeTitle != "" {
			shown.Diff.Before = textutil.Visible(d.BeforeTitle)
		}
		if d.AfterTitle != "" {
			shown.Diff.After = textutil.Visible(d.AfterTitle)
		}
		if !shown.Diff.None {
			shown.Diff.Left, shown.Diff.Right = sideBySide(linesOf(d.Before), linesOf(d.After))
		}
	}
	return shown
}

// A findingFilter is a filter and the option number of each finding.
type findingFilter struct {
	filter  filter
	numbers [][]int
}

// filterBy numbers the names of findings in order of appearance. Option 0 selects all findings.
func filterBy(id, title string, findings []Finding, names func(*Finding) []string) *findingFilter {
	by := &findingFilter{filter: filter{ID: id, Name: id, Title: textutil.Visible(title)}, numbers: make([][]int, len(findings))}
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
					by.filter.Options = append(by.filter.Options, option{Number: number, Text: clip(textutil.Visible(name), longLine)})
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

// pairsWithout returns the pairs of options that no finding has.
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
