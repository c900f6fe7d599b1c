// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/cli/traffic"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
)

// A TrafficReport is the output of the command for recordings. Its JSON encoding is stable.
type TrafficReport struct {
	// Kubernetes and Source are those of [Report].
	Kubernetes string `json:"kubernetes"`
	Source     string `json:"source"`
	// Against is "recording" if the webhooks that were called are those in the recording, or "files".
	Against string         `json:"against"`
	Files   []traffic.File `json:"files"`
	// Calls is the number of recorded calls that were compared. A request that was recorded for two webhooks has two.
	Calls    int               `json:"calls"`
	Webhooks []*TrafficWebhook `json:"webhooks"`
	Changes  []*TrafficChange  `json:"changes"`
	Notes    []string          `json:"notes,omitempty"`
}

// A TrafficWebhook counts the recorded calls by what changes for one webhook.
type TrafficWebhook struct {
	Type          string `json:"type"` // "mutating" or "validating"
	Configuration string `json:"configuration"`
	Name          string `json:"name"`
	// Recorded is the number of calls that the webhook received.
	Recorded int `json:"recorded"`
	// Kept are called before and now, Lost only before, and Gained only now.
	Kept   int `json:"kept"`
	Lost   int `json:"lost"`
	Gained int `json:"gained"`
	// Rejected are rejected now, because of a condition that cannot be evaluated or a dry run. They were not before.
	Rejected int `json:"rejected"`
	Unknown  int `json:"unknown"`
}

// A TrafficChange are the calls for which the same changes for the same cause.
type TrafficChange struct {
	Type          string `json:"type"`
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	// Change is "lost", "gained", "rejected" or "unknown".
	Change string `json:"change"`
	Cause  string `json:"cause"`
	Calls  int    `json:"calls"`
	// Example is the first of the calls.
	Example Example `json:"example"`

	order int
	key   changeKey
}

// An Example is a recorded call.
type Example struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Request *Request `json:"request"`
	// Why has the properties of the object on which the cause depends. It may be empty.
	Why string `json:"why,omitempty"`
}

// changeOrder are the kinds of changes, in the order of the report.
var changeOrder = []string{"lost", "gained", "rejected", "unknown"}

// finish builds the report.
func (c *comparison) finish() {
	r := c.report
	r.Webhooks, r.Changes = []*TrafficWebhook{}, []*TrafficChange{}
	for _, w := range c.webhooks {
		if w.Recorded == 0 {
			w.Kept += w.repeated
		}
		if c.only == "" || w.Name == c.only {
			r.Webhooks = append(r.Webhooks, w.TrafficWebhook)
		}
	}
	silent := map[string]bool{}
	for _, g := range c.groups {
		w := g.key.webhook
		if w.Recorded > 0 && g.key.repeated {
			silent[w.Name] = c.before == nil
			continue
		}
		w.count(g)
		r.Changes = append(r.Changes, g)
	}
	slices.SortFunc(r.Changes, func(a, b *TrafficChange) int {
		return cmp.Or(a.key.webhook.index-b.key.webhook.index, slices.Index(changeOrder, a.Change)-slices.Index(changeOrder, b.Change), b.Calls-a.Calls, a.order-b.order)
	})
	maps.DeleteFunc(silent, func(_ string, is bool) bool { return !is })
	r.Notes = append(c.notes(slices.Sorted(maps.Keys(silent))), c.absent()...)
}

// absent returns a note if webhooks gain calls because the recording has none of theirs.
func (c *comparison) absent() []string {
	var names []string
	for _, w := range c.webhooks {
		if c.before == nil && w.Recorded == 0 && w.Gained > 0 {
			names = append(names, w.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the recording has no call of %s, so all calls for it count as gained, even if it received them: "+
		"give the configurations of that time with --against", or(names))}
}

// count adds the calls of a change to those of the webhook.
func (w *TrafficWebhook) count(g *TrafficChange) {
	switch g.Change {
	case "lost":
		w.Lost += g.Calls
	case "gained":
		w.Gained += g.Calls
	case "rejected":
		w.Rejected += g.Calls
	case "unknown":
		w.Unknown += g.Calls
	}
}

// notes returns what the report does not show. The argument silent has webhooks whose gained calls are not known.
func (c *comparison) notes(silent []string) (notes []string) {
	add := func(n int, format string, args ...any) {
		if n > 0 {
			notes = append(notes, textutil.Count(n, "call")+fmt.Sprintf(format, args...))
		}
	}
	what := "has the name or path of no webhook in the configurations"
	if c.foreign > 1 {
		what = "have the names or paths of no webhook in the configurations"
	}
	add(c.foreign, " %s", what)
	add(c.ambiguous, " with a path that several webhooks have: the report cannot say which webhook received them")
	add(c.contradicted, " that the configurations of --against would not send to the webhook that received them: were other ones applied then?")
	if len(silent) > 0 {
		notes = append(notes, fmt.Sprintf("what %s would gain is not known, because the recording does not show which requests reached several webhooks: "+
			"give the configurations of that time with --against", or(silent)))
	}
	return notes
}

// JSON writes the report as JSON.
func (r *TrafficReport) JSON(w io.Writer) error { return writeJSON(w, r) }

// Text writes the report as text.
func (r *TrafficReport) Text(w io.Writer, p screen.Painter) error {
	t := &text{w: w, Painter: p}
	with := "the webhooks that were called in the recording"
	if r.Against == "files" {
		with = "the configurations of --against"
	}
	t.wrap("", fmt.Sprintf("%s of %s, compared with %s", textutil.Count(r.Calls, "recorded call"), textutil.Count(len(r.Files), "file"), with))
	for _, webhook := range r.Webhooks {
		t.line("")
		t.line("%s %s %s", webhook.Type, t.Bold(shownLine(webhook.Name)), t.Faint("in "+shownLine(webhook.Configuration)))
		t.wrap("  ", webhook.String())
		for _, g := range r.Changes {
			if g.key.webhook.TrafficWebhook == webhook {
				t.change(g)
			}
		}
	}
	if len(r.Notes) > 0 {
		t.line("")
	}
	for _, note := range r.Notes {
		t.wrap("note: ", note)
	}
	return t.err
}

// String counts the calls of a webhook, such as "received 5 calls: 3 as before, 2 lost".
func (w *TrafficWebhook) String() string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(w.Kept, "as before")
	add(w.Lost, "lost")
	add(w.Gained, "gained")
	add(w.Rejected, "rejected")
	add(w.Unknown, "unknown")
	if len(parts) == 0 {
		parts = []string{"no change"}
	}
	return fmt.Sprintf("%s recorded: %s", textutil.Count(w.Recorded, "call"), strings.Join(parts, ", "))
}

func (t *text) change(g *TrafficChange) {
	paint := map[string]func(string) string{"lost": t.Red, "gained": t.Green, "rejected": t.Red, "unknown": t.Yellow}[g.Change]
	t.wrap(fmt.Sprintf("  %s %-6d ", paint(fmt.Sprintf("%-8s", g.Change)), g.Calls), g.Cause)
	indent := strings.Repeat(" ", 18)
	q := g.Example.Request
	name := q.Name
	if q.Namespace != "" && q.Resource.Resource != "namespaces" {
		name = q.Namespace + "/" + name
	}
	t.wrap(indent, fmt.Sprintf("%s:%d: %s %s, by %s", g.Example.File, g.Example.Line, q.what(), name, q.User))
	t.wrap(indent, g.Example.Why)
}

// Verdict returns the error that sets the exit code: if it is unknown for a call whether a webhook is called,
// problem.ErrFound if anything changes, or if nothing changes and a part of the recordings could not be read.
func (r *TrafficReport) Verdict() error {
	damaged := slices.ContainsFunc(r.Files, func(f traffic.File) bool { return f.Skipped > 0 || f.Ended != "" })
	switch unknown := r.unknown(); {
	case unknown != nil:
		return unknown
	case len(r.Changes) > 0:
		return problem.ErrFound
	case damaged:
		return problem.New("the result is incomplete: nothing changes, but parts of the recordings could not be read")
	}
	return nil
}

// unknown returns an error if it is unknown for a call whether a webhook is called.
func (r *TrafficReport) unknown() error {
	var names []string
	calls, namespaces := 0, false
	for _, w := range r.Webhooks {
		if calls += w.Unknown; w.Unknown > 0 {
			names = append(names, w.Name)
		}
	}
	if calls == 0 {
		return nil
	}
	for _, g := range r.Changes {
		namespaces = namespaces || g.Change == "unknown" && strings.Contains(g.Cause, "namespaceSelector")
	}
	err := problem.New("it is unknown whether %s is called for %s", or(names), textutil.Count(calls, "recorded call"))
	if namespaces {
		err = err.Hint("kubectl get namespaces -o yaml > namespaces.yaml, and -f namespaces.yaml, for the labels of namespaces")
	}
	return err
}
