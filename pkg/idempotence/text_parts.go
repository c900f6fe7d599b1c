// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// difference writes each change with its field path and its values in the two objects.
func (p *printer) difference(d *Difference) {
	if d == nil {
		return
	}
	p.printf("\n  difference\n")
	p.printf("    %s\n", p.paint(red, "--- "+d.From))
	p.printf("    %s\n", p.paint(green, "+++ "+d.To))
	for i, c := range d.Changes {
		if i == mostChanges {
			p.printf("    and %s more\n", textutil.Count(len(d.Changes)-i, "change"))
			break
		}
		if c.Kind == string(tree.Moved) {
			p.order(c)
			continue
		}
		p.side(red, "-", c.Path, c.Old)
		p.side(green, "+", c.Path, c.New)
	}
}

// mostChanges is the number of changes that are written. mostLines is the number of lines that one value takes.
const mostChanges, mostLines = 12, 16

// order writes a change of the order of a list: the keys of its elements in the two objects.
func (p *printer) order(c Change) {
	path := tree.Path{}
	for _, name := range strings.Split(c.Path, ".") {
		path = path.Member(name)
	}
	names := func(raw []byte) string {
		var all []string
		value, err := tree.Decode(raw)
		list, ok := value.([]any)
		if err != nil || !ok {
			return string(raw)
		}
		for _, element := range list {
			all = append(all, textutil.Clip(tree.Identity(path, element), longestValue))
		}
		return strings.Join(all, ", ")
	}
	p.printf("    %s\n", p.paint(red, "- "+c.Path+": "+names(c.Old)))
	p.printf("    %s\n", p.paint(green, "+ "+c.Path+": "+names(c.New)))
}

// longValue is the length up to which a value is written on one line with its path.
const longValue = 70

// side writes the value that one of the two objects has at a path. It writes a long value field by field.
func (p *printer) side(colour, sign, path string, raw []byte) {
	if raw == nil {
		return
	}
	value, err := tree.Decode(raw)
	if line := compact(raw); err != nil || len(line) <= longValue {
		p.printf("    %s\n", p.paint(colour, sign+" "+path+": "+line))
		return
	}
	p.printf("    %s\n", p.paint(colour, sign+" "+path+":"))
	lines := 0
	tree.Leaves(value, func(at tree.Path, leaf any) {
		if lines++; lines <= mostLines {
			p.printf("    %s\n", p.paint(colour, sign+"   "+at.String()+": "+textutil.Clip(string(tree.Encode(leaf)), longestValue)))
		}
	})
	if lines > mostLines {
		p.printf("    %s\n", p.paint(colour, sign+"   and "+textutil.Count(lines-mostLines, "value")+" more"))
	}
}

// marks has the words and colours for the verdicts in the table of laws.
var marks = map[Verdict]struct{ text, colour string }{
	Passes:        {"passes", green},
	Fails:         {"fails", red},
	Impure:        {"impure", red},
	Inconclusive:  {"inconclusive", yellow},
	NotApplicable: {"not applicable", ""},
	Advice:        {"advice", yellow},
}

// verdictOrder is the order of the verdicts in the table.
var verdictOrder = []Verdict{Fails, Impure, Inconclusive, Passes, NotApplicable}

// laws writes the verdicts for each kind. Laws with the same verdict and reason share a line.
func (p *printer) laws(r *Report) {
	for _, kind := range r.Kinds {
		p.printf("%s\n", p.paint(bold, kind))
		for _, verdict := range verdictOrder {
			for _, line := range r.linesOf(kind, verdict) {
				mark := marks[verdict]
				head := "  " + p.paint(mark.colour, mark.text+strings.Repeat(" ", len("not applicable")-len(mark.text))) + " "
				p.hanging(head, line)
			}
		}
	}
}

// linesOf returns the lines that name the laws of a kind with the verdict. Laws with the same reason share a line.
func (r *Report) linesOf(kind string, verdict Verdict) (lines []string) {
	var reasons []string
	laws := map[string]string{}
	for _, l := range r.Laws {
		if l.Kind != kind || l.Verdict != verdict {
			continue
		}
		reason := r.reasonText(l.Reason)
		if verdict == Passes && reason == "" && r.advises(kind, l.Law) {
			reason = "with advice, see above"
		}
		if _, known := laws[reason]; !known {
			reasons = append(reasons, reason)
		}
		laws[reason] += ", " + l.Law.Title()
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return min(len(a), 1) - min(len(b), 1) }) // laws without a reason first
	for _, reason := range reasons {
		line := laws[reason][2:]
		if reason != "" {
			line += ": " + reason
		}
		lines = append(lines, line)
	}
	return lines
}

// advises reports whether the report has advice about a law for a kind.
func (r *Report) advises(kind string, law Law) bool {
	return slices.ContainsFunc(r.Findings, func(v *Violation) bool { return v.Kind == kind && v.Law == law && v.Verdict == Advice })
}

// count writes the number of objects, checks and calls, and the numbers of kinds of patches, denials and
// warnings.
func (p *printer) count(r *Report) {
	seen := ""
	if r.Patches > 0 {
		seen += "; " + kindsOfAnswers(r.Patches, "patch")
	}
	if r.Denials > 0 {
		seen += "; " + kindsOfAnswers(r.Denials, "denial")
	}
	if r.Warnings > 0 {
		seen += "; " + kindsOfAnswers(r.Warnings, "warning")
	}
	p.printf("%s: %s, %d allowed, %d changed%s; %s, %s; seed %d\n", textutil.Visible(strings.Join(r.Webhooks, ", ")),
		textutil.Count(r.Objects, "object"), r.Allowed, r.Changed, seen, textutil.Count(r.Checks, "check"), textutil.Count(r.Calls, "call"), r.Seed)
}

func kindsOfAnswers(n int, of string) string {
	if n == 1 {
		return "1 kind of " + of
	}
	return strconv.Itoa(n) + " kinds of " + of
}

// replays writes the results of the stored cases.
func (p *printer) replays(r *Report) {
	for _, c := range r.Replayed {
		switch c.Verdict {
		case Passes:
			passes := " passes now; each run checks it again until you remove it"
			if c.Reason != nil {
				passes = " can no longer be checked: " + r.Text(*c.Reason) + "; remove it"
			}
			p.hanging(p.paint(green, "mended: "), c.File+", "+c.Law.Title()+","+passes)
		case Inconclusive:
			p.hanging(p.paint(yellow, "not replayed: "), c.File+": "+r.reasonText(c.Reason))
		}
	}
}

// A priority is an entry of priorities. Failures of its law should be fixed before those of later entries.
type priority struct {
	law  Law
	mode FailureMode // empty means any
	why  string
}

// priorities lists the laws in the order in which to fix them: first those about missing, varying and unusable
// responses, then L1, then the rest.
var priorities = func() []priority {
	all := []priority{
		{L2, FailureServerError, "without a response, the other laws cannot be checked"},
		{L3, "", "while results vary, most other laws cannot be checked"},
		{L8, "", "while a response cannot be read, the other laws fail too"},
		{L10, "", "the other laws are about the patched object"},
		{L1, "", "the other laws are about more than a second call"},
	}
	for _, law := range Laws {
		all = append(all, priority{law, "", "the other laws demand more"})
	}
	return all
}()

// whereToBegin says which finding to fix first, because one mistake often fails several laws.
func (p *printer) whereToBegin(r *Report) {
	broken := map[Law]bool{}
	for _, v := range r.Findings {
		broken[v.Law] = broken[v.Law] || v.Verdict != Advice
	}
	maps.DeleteFunc(broken, func(_ Law, is bool) bool { return !is })
	if len(broken) < 2 {
		return
	}
	for _, b := range priorities {
		if slices.ContainsFunc(r.Findings, func(v *Violation) bool {
			return v.Law == b.law && (b.mode == "" || v.FailureMode == b.mode) && v.Verdict != Advice
		}) {
			p.hanging("", "One mistake often fails several laws: start with "+b.law.Title()+" ("+b.why+"), and run again.")
			p.printf("\n")
			return
		}
	}
}

// passes writes that all laws pass, and lists the laws that were not tried, or only in part. It writes nothing if a law
// fails or the run is incomplete.
func (p *printer) passes(r *Report) {
	if !r.OK() || len(r.Incomplete) > 0 || r.ReplayOf != "" {
		return
	}
	n, excluded := 0, false
	var partial, untried []string
	for _, law := range Laws {
		kept, partly, tooLittle := false, false, false
		for _, l := range r.Laws {
			if l.Law != law {
				continue
			}
			kept = kept || l.Verdict == Passes
			partly = partly || l.Verdict == Passes && l.Reason != nil
			tooLittle = tooLittle || l.Verdict == Inconclusive
			excluded = excluded || l.Reason != nil && l.Reason.Code == ReasonLawExcluded
		}
		switch {
		case kept && (partly || tooLittle):
			partial = append(partial, law.Title())
		case tooLittle:
			untried = append(untried, law.Title())
		}
		if kept {
			n++
		}
	}
	text := strconv.Itoa(n) + " laws pass"
	switch all := len(untried) == 0 && len(partial) == 0 && !excluded; {
	case n == 0:
		return
	case n == 1 && all:
		text = "the one law that applies passes"
	case n == 1:
		text = "1 law passes"
	case all:
		text = "all " + strconv.Itoa(n) + " laws that apply pass"
	}
	switch {
	case len(partial) == 0:
	case n == 1:
		text += " in part: " + partial[0]
	default:
		text += ", " + strconv.Itoa(len(partial)) + " of them in part: " + strings.Join(partial, ", ")
	}
	if len(untried) > 0 {
		text += "; not tried: " + strings.Join(untried, ", ")
	}
	if excluded {
		text += "; other laws were excluded"
	}
	p.hanging(p.paint(green, "passes: "), text)
	if len(r.Untried) > 0 {
		p.hanging(p.paint(yellow, "not seen: "), r.Texts(r.Untried))
	}
}
