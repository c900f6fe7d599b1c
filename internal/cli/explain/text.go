// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/chain"
)

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error { return writeJSON(w, r) }

// writeJSON writes a report as JSON, with invisible characters escaped.
func writeJSON(w io.Writer, report any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(report); err != nil {
		return err
	}
	_, err := io.WriteString(w, escaped(text.String()))
	return err
}

// columns is the width at which text is wrapped.
const columns = 80

// Text writes the report as text: all webhooks, or those of one name with all of their predicates.
func (r *Report) Text(w io.Writer, p screen.Painter, webhook string) error {
	t := &text{w: w, Painter: p, policiesKnown: r.PoliciesKnown}
	for i := range r.Objects {
		if i > 0 {
			t.line("")
		}
		t.object(&r.Objects[i], webhook)
	}
	return t.err
}

type text struct {
	screen.Painter
	w             io.Writer
	err           error
	policiesKnown bool
}

func (t *text) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

// wrap writes a sentence after first, in lines of at most columns characters.
func (t *text) wrap(first, sentence string) {
	if t.err == nil && strings.TrimSpace(sentence) != "" {
		_, t.err = io.WriteString(t.w, textutil.Wrap(first, sentence, columns))
	}
}

func (t *text) object(o *Object, webhook string) {
	where := shownLine(o.File)
	if where == "-" {
		where = "standard input"
	}
	if where != "" {
		where = fmt.Sprintf("%s:%d: ", where, o.Line)
	}
	t.line("%s%s", where, t.Bold(shownLine(o.Object)))
	if o.Error != "" {
		t.wrap(t.Yellow("cannot explain")+": ", o.Error)
		for _, hint := range o.Hints {
			t.line("%s %s", t.Bold("hint:"), shownLine(hint))
		}
		return
	}
	t.wrap("", o.Request.String())
	if webhook != "" {
		for i := range o.Webhooks {
			if o.Webhooks[i].Name == webhook {
				t.detail(&o.Webhooks[i])
			}
		}
		return
	}
	t.webhooks(o)
	t.summary(o)
}

// what describes the resource and the operation: "CREATE of v1 pods".
func (r *Request) what() string {
	what := r.Resource.Resource
	if r.SubResource != "" {
		what += "/" + r.SubResource
	}
	return fmt.Sprintf("%s of %s %s", r.Operation, version(r.Resource.Group, r.Resource.Version), what)
}

// String describes the request: "CREATE of v1 pods in namespace shop, by admin".
func (r *Request) String() string {
	s := r.what()
	if r.Namespace != "" {
		s += " in namespace " + r.Namespace
	}
	s += ", by " + r.User
	if r.DryRun {
		s += ", as a dry run"
	}
	return s
}

func version(group, version string) string { return strings.TrimPrefix(group+"/"+version, "/") }

func kindOf(k *metav1.GroupVersionKind) string { return version(k.Group, k.Version) + " " + k.Kind }

func (t *text) webhooks(o *Object) {
	headings := map[string]string{"mutating": "mutating webhooks, one after the other:", "validating": "validating webhooks, all at the same time:"}
	last := ""
	t.policies(o, "mutating")
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		if w.Type != last {
			if w.Type == "validating" {
				t.policies(o, w.Type)
			}
			t.line("")
			t.line("%s", headings[w.Type])
			last = w.Type
		}
		t.webhook(w)
	}
	if last != "validating" {
		t.policies(o, "validating")
	}
	if len(o.Webhooks) == 0 {
		t.line("")
		t.line("there are no webhooks")
	}
}

// policies writes the policies of one type.
func (t *text) policies(o *Object, of string) {
	first := true
	for i := range o.Policies {
		p := &o.Policies[i]
		if p.Type != of {
			continue
		}
		if first {
			t.line("")
			t.line("%s admission policies, in no fixed order:", of)
			first = false
		}
		applied := map[Called]string{Yes: t.Green("evaluated "), No: t.Faint("no effect "), Unknown: t.Yellow("unknown   ")}[p.Applies]
		if p.rejects() && len(p.DependsOn) == 0 {
			applied = t.Red("rejects   ")
		}
		with := ""
		if p.Binding != "" {
			with = "with the binding " + shownLine(p.Binding)
		}
		t.line("      %s %s %s", applied, t.Bold(shownLine(p.Name)), t.Faint(with))
		for _, sentence := range p.sentences() {
			t.wrap(strings.Repeat(" ", width), sentence)
		}
	}
}

// width is the width of the columns before the sentences about a webhook.
const width = 17

func (t *text) webhook(w *Webhook) {
	in := "in " + shownLine(w.Configuration)
	if w.Static {
		in += ", a static manifest"
	}
	t.line("%4d  %s %s %s", w.Order, t.called(w, 10), t.Bold(shownLine(w.Name)), t.Faint(in))
	indent := strings.Repeat(" ", width)
	t.wrap(indent, w.because())
	if w.Called == No {
		return
	}
	if w.Converted {
		t.wrap(indent, "sent as "+kindOf(w.SentAs))
	}
	t.wrap(indent, w.WhenDown)
	if again := w.Reinvocation.String(); again != "" {
		t.wrap(indent, again)
	}
	if w.Times > 1 {
		t.wrap(indent, fmt.Sprintf("called %d times", w.Times))
	}
}

// String describes the changes that cause another call, or is empty if there are none.
func (r *Reinvocation) String() string {
	switch {
	case r == nil || len(r.By)+len(r.ByAgain) == 0:
		return ""
	case len(r.ByAgain) == 0:
		return "called again if " + or(r.By) + " changes the object"
	case len(r.By) == 0:
		return "called again if " + or(r.ByAgain) + " changes the object in its second call"
	}
	return "called again if " + or(r.By) + " changes the object, or " + or(r.ByAgain) + " does in its second call"
}

func (t *text) called(w *Webhook, width int) string {
	pad := func(s string) string { return fmt.Sprintf("%-*s", width, s) }
	switch {
	case w.Rejects:
		return t.Red(pad("rejects"))
	case w.Called == Yes:
		return t.Green(pad("called"))
	case w.Called == Unknown:
		return t.Yellow(pad("unknown"))
	}
	return t.Faint(pad("not called"))
}

// because returns the reason for the decision.
func (w *Webhook) because() string {
	switch w.Decision {
	case chain.ByNamespaceSelector:
		return "namespaceSelector " + w.Why
	case chain.ByObjectSelector:
		return "objectSelector " + w.Why
	}
	return cmp.Or(w.Summary, w.Why)
}

// or joins names for a sentence, as in "a, b or c". It shortens long lists.
func or(names []string) string { return list(names, "or") }

func list(names []string, word string) string {
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n > 4:
		return fmt.Sprintf("%s %s one of %d more", strings.Join(names[:3], ", "), word, n-3)
	default:
		return strings.Join(names[:n-1], ", ") + " " + word + " " + names[n-1]
	}
}

// summary writes the facts that concern several webhooks.
func (t *text) summary(o *Object) {
	if o.Rejection != nil || len(o.Notes) > 0 || o.WorstCase != nil && o.WorstCase.Total > 0 {
		t.line("")
	}
	if r := o.Rejection; r != nil {
		by := "the API server"
		if r.By != "" {
			by = r.By
		}
		t.wrap(t.Red("rejected")+" ", fmt.Sprintf("before %s, because of %s, with %d: %s", r.Before, by, r.Code, r.Message))
	}
	if depends := o.depend(); len(depends) > 0 {
		beside := "."
		if !t.policiesKnown {
			beside = "; admission policies are not considered."
		}
		t.wrap("", fmt.Sprintf("This applies to the object as it is%s %s may change it, which may change whether %s is called.",
			beside, or(o.Changing), or(depends)))
	}
	if by, policies := o.policiesDepend(); len(policies) > 0 {
		t.wrap("", fmt.Sprintf("The results of %s are for the object before webhooks change it. %s may change it.", list(policies, "and"), or(by)))
	}
	if c := o.WorstCase; c != nil && c.Total > 0 {
		t.wrap("", c.String())
	}
	for _, note := range o.Notes {
		t.wrap("note: ", note)
	}
}

// depend returns the webhooks whose decision may change after a patch.
func (o *Object) depend() []string {
	var names []string
	for _, w := range o.Webhooks {
		if len(w.DependsOn) > 0 {
			names = append(names, w.Name)
		}
	}
	return names
}

// policiesDepend returns the validating policies whose results may change after a patch, and the webhooks that may send
// one.
func (o *Object) policiesDepend() (by, policies []string) {
	for i := range o.Policies {
		if p := &o.Policies[i]; len(p.DependsOn) > 0 {
			by, policies = p.DependsOn, append(policies, p.kind()+" "+p.Name)
		}
	}
	return by, policies
}

// String describes the longest time that the webhooks can take, as "worst case 25 s: ...".
func (c *Time) String() string {
	var parts []string
	add := func(seconds int32, what string) {
		if seconds > 0 {
			parts = append(parts, fmt.Sprintf("%d s for %s", seconds, what))
		}
	}
	add(c.Mutating, "mutating webhooks")
	add(c.Again, "calling them again")
	add(c.Validating, "validating webhooks")
	text := fmt.Sprintf("worst case: %d s, if each takes all of its time: %s", c.Total, strings.Join(parts, ", "))
	if c.Capped {
		text += fmt.Sprintf("; the API server gives up after %d s, with 504, whatever the failurePolicy", c.Total)
	}
	return text
}

// detail writes everything about one webhook.
func (t *text) detail(w *Webhook) {
	t.line("")
	t.line("%s %s: %s", t.Bold(shownLine(w.Name)), t.Faint("in "+shownLine(w.Configuration)), t.called(w, 0))
	t.wrap("  ", fmt.Sprintf("number %d, %s, failurePolicy %s, timeout %d s", w.Order, w.Type, w.FailurePolicy, w.TimeoutSeconds))
	for _, p := range w.Predicates {
		t.predicate(&p)
	}
	t.wrap("  ", "so: "+w.because())
	if w.Called == No {
		return
	}
	if w.SentAs != nil {
		t.wrap("  ", "sent as "+kindOf(w.SentAs))
	}
	t.wrap("  ", w.WhenDown)
	if r := w.Reinvocation; r != nil {
		t.wrap("  ", strings.TrimSuffix("reinvocationPolicy "+r.Policy+": "+r.String(), ": "))
	}
	if len(w.DependsOn) > 0 {
		t.wrap("  ", "called with the object as changed by "+list(w.DependsOn, "and"))
	}
}

func (t *text) predicate(p *Predicate) {
	answer := fmt.Sprintf("%-8s", shownLine(strings.ToLower(string(p.Answer))))
	switch p.Answer {
	case chain.Holds:
		answer = t.Green(answer)
	case chain.Fails:
		answer = t.Faint(answer)
	case chain.Errs:
		answer = t.Red(answer)
	default:
		answer = t.Yellow(answer)
	}
	names := map[chain.Reason]string{chain.ByResource: "resource", chain.ByNamespaceSelector: "namespaceSelector", chain.ByObjectSelector: "objectSelector", chain.ByRules: "rules"}
	if p.Condition == "" {
		t.wrap(fmt.Sprintf("  %s %-18s", answer, names[p.Predicate]), p.Detail)
		return
	}
	t.wrap(fmt.Sprintf("  %s ", answer), fmt.Sprintf("condition %q: %s", p.Condition, p.Detail))
	t.wrap(strings.Repeat(" ", 11), p.Expression)
}
