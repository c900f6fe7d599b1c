// SPDX-License-Identifier: Apache-2.0

// Package page writes results as one HTML file that can be attached to a ticket and read anywhere:
// it needs no script, no network and no other file.
//
// A command maps what it found to a [Page]; all text in it is plain text and may come from
// strangers. The same page is always the same bytes.
package page

// A Page is what was found out.
type Page struct {
	// Title is the heading: what was looked at. It is the title of the browser's tab, too.
	Title   string
	Verdict Verdict
	// Summary is the verdict in a sentence or two.
	Summary string
	// Facts are shown beside the verdict: when, how much, with what.
	Facts []Fact
	// Tables come before the findings. A table of laws or of webhooks links to the findings.
	Tables   []Table
	Findings []Finding
	// Notes are what the reader should know of how it was found out.
	Notes []string
	// LawName is what a Finding's Law is called in the filter, "Law" if it is empty.
	LawName string
}

// A Verdict is what all of it comes to, as in the exit codes.
type Verdict int

// The verdicts.
const (
	Holds Verdict = iota
	Found
	CouldNotTell
)

// A Fact is a name with a value.
type Fact struct{ Name, Value string }

// A Finding is one thing that was found.
type Finding struct {
	// ID is what links go to (Cell.To), unique on the page. It is not shown. Findings that nothing
	// links to need none.
	ID string
	// Law is the short name of what is broken, such as "L4b" or "no-op-patch": findings are filtered by
	// it. LawText says what it demands.
	Law, LawText string
	// Webhooks are those that it is about; findings are filtered by them.
	Webhooks []string
	// Kind is the kind of object, if it is about one.
	Kind     string
	Severity Severity
	// Badge is the word for the severity, if it is to be another one ("fails").
	Badge string
	// Title is the heading, short; Summary says what happened, Cause what is likely behind it, Fix what
	// helps. What is empty is left out.
	Title, Summary, Cause, Fix string
	// Changes are what differs between two objects that should be the same.
	Changes *Changes
	// Steps tell how it came about: calls, requests, events.
	Steps []Step
	// Again is a command that shows it again.
	Again string
}

// A Severity says how bad a finding is.
type Severity int

// The severities.
const (
	Error Severity = iota
	Warning
	Advice
)

// A Step is one step of a story: a call, an event.
type Step struct {
	// Title says what is done, Who by whom (a webhook, a user), Outcome what came of it.
	Title, Who, Outcome string
	// Facts are further details: a time, an audit ID.
	Facts []Fact
	// Text is an object or another text, shown as it is under TextTitle.
	TextTitle, Text string
	// Patch are the operations that the step made.
	Patch []Operation
	// Diff is what the step changed.
	Diff *Diff
}

// An Operation is one operation of a patch.
type Operation struct {
	Text string
	// Offending marks those that the finding is about.
	Offending bool
}

// A Diff is two texts, shown side by side. The titles are "before" and "after" if they are empty.
type Diff struct {
	BeforeTitle, AfterTitle string
	Before, After           string
}

// Changes are the differences between two objects, field by field.
type Changes struct {
	// From and To say what the two are.
	From, To string
	List     []Change
}

// A Change is a field that differs. Old or New is empty where the object has no such field.
type Change struct{ Path, Old, New string }

// A Table is a table with a heading.
type Table struct {
	Title string
	// Text is a sentence below the heading.
	Text    string
	Columns []Column
	Rows    [][]Cell
}

// A Column is the head of a column; numbers are set flush right.
type Column struct {
	Name   string
	Number bool
}

// A Cell is a cell of a table. With To it is a link to the finding that has this ID. Tone gives it a
// colour; the text has to say the same.
type Cell struct {
	Text string
	To   string
	Tone Tone
}

// A Tone is a colour.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Good
	Bad
	Doubtful
	Faint
)
