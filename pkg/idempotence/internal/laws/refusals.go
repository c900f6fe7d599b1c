// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// problems returns the API server's reasons to reject a result, except those that exceptions cover.
func (t *Trial) problems(law Law, result *objects.Object) []string {
	return t.unexpected(law, result, t.Kind.Problems(result))
}

// updateProblems returns the API server's reasons to reject the result of an update, except those that exceptions
// cover.
func (t *Trial) updateProblems(law Law, result, old *objects.Object) []string {
	return t.unexpected(law, result, t.Kind.UpdateProblems(result, old))
}

// unfilled returns the problems without those about fields that users may leave out, because the webhook fills them in
// other objects.
func (t *Trial) unfilled(problems []string) []string {
	if t.Session == nil {
		return problems
	}
	return t.Unfilled(problems)
}

// unexpected returns the problems without those that exceptions cover.
func (t *Trial) unexpected(law Law, result *objects.Object, problems []string) []string {
	return slices.DeleteFunc(slices.Clone(t.unfilled(problems)), func(problem string) bool {
		if strings.Contains(problem, ".hostPort: Duplicate value") {
			return true // two containers with the same host port: no webhook can correct that
		}
		paths := objects.ProblemPaths(problem)
		return len(paths) > 0 && t.needing(func() bool {
			return !slices.ContainsFunc(paths, func(p string) bool { return !t.excepted(law, pathOf(result.Doc, p)) })
		})
	})
}

// refused returns a finding about a result that the API server rejects.
func (t *Trial) refused(c *Case, when string, problems []string, outcomes ...*session.Outcome) *Finding {
	v := t.Finding(c, Invalid, when+"the API server rejects the result: "+strings.Join(problems, "; "), outcomes...)
	for _, p := range problems {
		v.Refusals = append(v.Refusals, session.FieldOf(p))
	}
	if !slices.ContainsFunc(problems, func(p string) bool { return !strings.Contains(p, "windows pod") }) {
		v.Mode, v.Advice = InvalidOnWindows, true // few clusters have Windows nodes
	}
	last := outcomes[len(outcomes)-1]
	if len(last.Calls) == 0 {
		return v
	}
	sent, err := tree.Decode(last.Calls[0].Exchange.Object)
	if err == nil && !slices.ContainsFunc(problems, func(p string) bool { return !t.isOfUser(p, sent, last.After.Doc) }) {
		v.Advice = true
	}
	return v
}

// isOfUser reports whether the author of the object that was sent caused a problem of the result, and sees that in the
// API server's error.
func (t *Trial) isOfUser(problem string, sent, result any) bool {
	paths := objects.ProblemPaths(problem)
	if len(paths) == 0 {
		return false
	}
	return t.omitted(problem, sent, result) || isBound(problem, sent) || !slices.ContainsFunc(paths, func(pointer string) bool {
		p := pathOf(result, pointer)
		value, ok := tree.Get(result, p)
		isTaken := strings.Contains(problem, "Duplicate value") || strings.Contains(problem, "must be unique") // by what the webhook adds
		isNote := !isTaken && !isComposite(value) && t.isFromNote(problem, sent, value, ok)
		return !isNote && !exceedsZero(problem, sent, p) && !isAtLimit(problem, sent, p, value) && !t.isInOtherList(problem, sent, result, p, value) &&
			!isOtherVolume(problem, sent, p) && !t.isTwiceWithoutTexts(problem, sent, pointer)
	})
}

func isComposite(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// limitOfZero is compiled at its first use, so that programs that link the harness start quickly.
var limitOfZero = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`must be less than or equal to (\S+) limit of 0$`)
})

// exceedsZero reports whether a problem is that requests, at p, exceed a limit of 0 in the object that was sent. Such a
// limit is a mistake of the author.
func exceedsZero(problem string, sent any, p tree.Path) bool {
	exceeded := limitOfZero().FindStringSubmatch(problem)
	if exceeded == nil || p.Last() != "requests" {
		return false
	}
	limit, ok := tree.Get(sent, p[:len(p)-1].Member("limits").Member(exceeded[1]))
	q, err := resource.ParseQuantity(fmt.Sprint(limit))
	return ok && err == nil && q.IsZero()
}

// fewCharacters is the greatest number of characters by which a webhook may extend a value of almost the greatest
// length, so that the value becomes too long. Authors do not write such long values.
const fewCharacters = 16

// isAtLimit reports whether a problem is that the webhook made a value at p too long that the author wrote with almost
// the greatest length.
func isAtLimit(problem string, sent any, p tree.Path, value any) bool {
	was, _ := tree.Get(sent, p)
	text, isText := was.(string)
	extended, also := value.(string)
	return isText && also && text != "" && strings.Contains(problem, ": Too long") && strings.Contains(extended, text) &&
		len(extended)-len(text) <= fewCharacters
}

// isInOtherList reports whether a problem is that two lists have a container of one name, and the object that was sent
// has it in one of them only. The author has written another version of the webhook's container, or has chosen a name
// that is taken. But a container in initContainers that always restarts is a sidecar. If the webhook leaves such a
// container to the author in its own list, it must recognize the sidecar, too.
func (t *Trial) isInOtherList(problem string, sent, result any, p tree.Path, value any) bool {
	if !strings.Contains(problem, ".name: Duplicate value") || len(p) < 3 || !strings.HasSuffix(strings.ToLower(p[len(p)-3].Name), "containers") {
		return false
	}
	spec, before := p[:len(p)-3], 0
	for _, list := range containerLists {
		before += named(sent, spec.Member(list), value)
		if named(result, spec.Member(list), value) > 1 {
			return false
		}
	}
	sidecar := spec.Member("initContainers").Element(fmt.Sprint("name=", value), 0)
	if policy, _ := tree.Get(sent, sidecar.Member("restartPolicy")); before == 1 && policy == "Always" {
		return t.namesProject(value) || !t.leavesToAuthor(sent, sidecar)
	}
	return before == 1
}

// leavesToAuthor reports whether the webhook leaves a container as it is if the author has it in containers in place of
// initContainers, at the path sidecar.
func (t *Trial) leavesToAuthor(sent any, sidecar tree.Path) bool {
	if t.Session == nil {
		return false
	}
	element, _ := tree.Get(sent, sidecar)
	fields, _ := element.(map[string]any)
	container := maps.Clone(fields)
	delete(container, "restartPolicy")
	list := sidecar[:len(sidecar)-2].Member("containers")
	value, _ := tree.Get(sent, list)
	containers, _ := value.([]any)
	doc, removed := tree.Remove(sent, sidecar)
	doc, put := tree.Put(doc, list, append(slices.Clone(containers), any(container)))
	x, valid := t.Valid(doc)
	if !removed || !put || !valid {
		return false
	}
	out := t.F(t.Fresh(), session.Query{Object: x})
	if !out.OK() {
		return false
	}
	moved := list.Element(sidecar[len(sidecar)-1].Key, 0)
	was, _ := tree.Get(x.Doc, moved)
	is, _ := tree.Get(out.After.Doc, moved)
	return tree.Equal(was, is) && named(out.After.Doc, list, container["name"]) == 1
}

// namesProject reports whether a name contains the second label of a webhook's domain, as daprd does for dapr.io. No
// author gives such a name to another container by accident.
func (t *Trial) namesProject(name any) bool {
	text, _ := name.(string)
	return t.Session != nil && slices.ContainsFunc(t.Webhooks, func(w *session.Webhook) bool {
		project, _, _ := strings.Cut(domain(w.Name), ".")
		return len(project) > 2 && strings.Contains(text, project)
	})
}

// named returns the number of elements with a name in a list.
func named(doc any, list tree.Path, name any) (n int) {
	value, _ := tree.Get(doc, list)
	elements, _ := value.([]any)
	for _, element := range elements {
		if fields, ok := element.(map[string]any); ok && fields["name"] == name {
			n++
		}
	}
	return n
}

// isOtherVolume reports whether a problem is that the webhook completes a volume of the user with its own source, because
// both have one name.
func isOtherVolume(problem string, sent any, p tree.Path) bool {
	if !strings.HasSuffix(problem, "may not specify more than 1 volume type") {
		return false
	}
	for i, step := range p {
		if step.Element && p[i-1].Name == "volumes" {
			return tree.Has(sent, p[:i+1])
		}
	}
	return false
}

// isTwiceWithoutTexts reports whether a problem is that a list has an element twice, and the object that was sent has it
// twice, too, once its empty texts are left out. Go's encoder leaves them out, and a default may take their place.
func (t *Trial) isTwiceWithoutTexts(problem string, sent any, pointer string) bool {
	if !strings.Contains(problem, ": Duplicate value") {
		return false
	}
	p := pathOf(sent, pointer)
	for i := len(p) - 1; i > 0; i-- {
		if !p[i].Element {
			continue
		}
		value, _ := tree.Get(sent, p[:i])
		list, _ := value.([]any)
		plain := withoutTexts(list)
		if tree.Equal(list, plain) {
			return false
		}
		doc, ok := tree.Put(sent, p[:i], plain)
		_, valid := t.Valid(doc)
		return ok && !valid
	}
	return false
}

// withoutTexts returns a copy of a list of objects without their members that are an empty text.
func withoutTexts(list []any) []any {
	plain := slices.Clone(list)
	for i, element := range plain {
		if fields, isObject := element.(map[string]any); isObject {
			fields = maps.Clone(fields)
			maps.DeleteFunc(fields, func(_ string, value any) bool { return value == "" })
			plain[i] = fields
		}
	}
	return plain
}

// isBound reports whether a problem is that the webhook adds a scheduling gate to a Pod that the author has bound to a
// node. Such a Pod is never scheduled, so it needs no gate, and the error says so.
func isBound(problem string, sent any) bool {
	return strings.HasPrefix(problem, "spec.nodeName: Forbidden") && tree.Has(sent, tree.Path{{Name: "spec"}, {Name: "nodeName"}})
}

// omitted reports whether the object of a request lacked a required field, or a map that must not be empty, and the
// samples have it, or it is in an empty map. An author who leaves out all of a struct, such as a Pod in a template, gets this error because the webhook
// writes the rest of the struct. The error names what to add. A field of an element that the webhook has added is not
// omitted.
func (t *Trial) omitted(problem string, sent, result any) bool {
	paths := objects.ProblemPaths(problem)
	if !strings.Contains(problem, ": Required value") && !strings.Contains(problem, " should have at least 1 ") || len(paths) == 0 {
		return false
	}
	return !slices.ContainsFunc(paths, func(pointer string) bool {
		p := pathOf(result, pointer)
		element := p
		for len(element) > 0 && !element[len(element)-1].Element {
			element = element[:len(element)-1]
		}
		return !t.Inputs.GivenIn(p) && !isInEmpty(sent, p) || tree.Has(sent, p) || !tree.Has(sent, element)
	})
}

// isInEmpty reports whether a document has an empty map on the way to p.
func isInEmpty(doc any, p tree.Path) bool {
	for i := 2; i < len(p); i++ {
		value, _ := tree.Get(doc, p[:i])
		if fields, isMap := value.(map[string]any); isMap && len(fields) == 0 {
			return true
		}
	}
	return false
}

// pathOf returns the path of a JSON pointer in a document.
func pathOf(doc any, pointer string) (p tree.Path) {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch value := doc.(type) {
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(value) {
				p, doc = p.Element(name, 0), nil
				continue
			}
			p, doc = p.Element(tree.Identity(p, value[i]), 0), value[i]
		case map[string]any:
			p, doc = p.Member(name), value[name]
		default:
			p, doc = p.Member(name), nil
		}
	}
	return p
}
