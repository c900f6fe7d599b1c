// SPDX-License-Identifier: Apache-2.0

// Package page writes results as one HTML file that can be attached to a ticket and read anywhere:
// it needs no script, no network and no other file.
//
// A command turns its results into a [Page]. All text in a Page is plain text and is escaped, because it may come
// from objects and webhooks. The same Page always gives the same bytes.
package page

// A Page has the results of one command.
type Page struct {
	// Title names the subject of the page. It is the heading and the title of the browser tab.
	Title  string
	Status Status
	// Summary gives the result in one or two sentences.
	Summary string
	// Facts are details shown beside the result, such as times and counts.
	Facts []Fact
	// Tables come before the findings. Their cells can link to findings.
	Tables   []Table
	Findings []Finding
	// Notes report choices and limits of the run.
	Notes []string
	// LawName is the label of the filter by Finding.Law. Empty means "Law".
	LawName string
}

// A Status is the overall result. It corresponds to the exit code of the command.
type Status int

// The values of Status.
const (
	Passed Status = iota
	Failed
	Undecided
)

// A Fact is a detail with a name.
type Fact struct{ Name, Value string }

// A Finding is a problem that the command found.
type Finding struct {
	// ID is the target of links (Cell.To) and unique on the page. It is not shown. A Finding without
	// links needs no ID.
	ID string
	// Law is the short name of the failed law or rule, such as "late additions (L4b)" or "no-op-patch". The page filters
	// findings by it.
	Law string
	// Webhooks are the webhooks concerned. The page filters findings by them.
	Webhooks []string
	// Kind is the kind of the object concerned, or empty.
	Kind     string
	Severity Severity
	// Badge replaces the word for the severity, for example with "fails".
	Badge string
	// Title is a short heading. Summary says what happened, Cause gives the likely cause, Fix says what
	// to change. Empty fields are not shown.
	Title, Summary, Cause, Fix string
	// Changes are the differences between two objects that should be equal.
	Changes *Changes
	// Steps are the calls, requests or events that led to the finding.
	Steps []Step
	// Again is a command that reproduces the finding.
	Again string
}

// A Severity ranks findings.
type Severity int

// The severities.
const (
	Error Severity = iota
	Warning
	Advice
)

// A Step is one call, request or event of a Finding.
type Step struct {
	// Title names the action, Who the webhook or user that took it, Outcome its result.
	Title, Who, Outcome string
	// Facts are further details, such as a time or an audit ID.
	Facts []Fact
	// Text is an object as YAML.
	Text string
	// Patch has the patch operations of the step.
	Patch []Operation
	// Diff shows the changes of the step.
	Diff *Diff
}

// An Operation is one operation of a patch.
type Operation struct {
	Text string
	// Offending marks an operation that caused the finding.
	Offending bool
}

// A Diff shows two texts side by side.
type Diff struct{ Before, After string }

// Changes are the differences between two objects, field by field.
type Changes struct {
	// From and To describe the two objects.
	From, To string
	List     []Change
}

// A Change is a field that differs. Old or New is empty if the object lacks the field.
type Change struct{ Path, Old, New string }

// A Table is a table with a heading.
type Table struct {
	Title string
	// Text is a sentence below the heading.
	Text    string
	Columns []Column
	Rows    [][]Cell
}

// A Column is the head of a column. Numbers are aligned right.
type Column struct {
	Name   string
	Number bool
}

// A Cell is a cell of a table. To makes it a link to the finding with that ID. Tone sets its colour, which must
// not carry information that Text lacks.
type Cell struct {
	Text string
	To   string
	Tone Tone
}

// A Tone selects the colour of a cell. It is a class of the style sheet.
type Tone string

// The values of Tone.
const (
	Plain    Tone = ""
	Good     Tone = "good"
	Bad      Tone = "bad"
	Doubtful Tone = "doubtful"
	Faint    Tone = "faint"
)
