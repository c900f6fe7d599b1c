// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	notes := noteValues(sent)
	return t.omitted(problem, sent, result) || !slices.ContainsFunc(paths, func(pointer string) bool {
		p := pathOf(result, pointer)
		value, _ := tree.Get(result, p)
		text, isText := value.(string)
		return !(isText && notes[text] || exceedsZero(problem, sent, p))
	})
}

// noteValues returns the values of all annotations in a document. Annotations can have any text. A webhook that copies
// one into another field leaves it to the API server to check the text.
func noteValues(doc any) map[string]bool {
	values := map[string]bool{}
	tree.Leaves(doc, func(p tree.Path, value any) {
		if text, ok := value.(string); ok && len(p) > 1 && p[len(p)-2].Name == "annotations" {
			values[text] = true
		}
	})
	return values
}

var limitOfZero = regexp.MustCompile(`must be less than or equal to (\S+) limit of 0$`)

// exceedsZero reports whether a problem is that requests, at p, exceed a limit of 0 in the object that was sent. Nobody
// wants such a limit.
func exceedsZero(problem string, sent any, p tree.Path) bool {
	exceeded := limitOfZero.FindStringSubmatch(problem)
	if exceeded == nil || p.Last() != "requests" {
		return false
	}
	limit, ok := tree.Get(sent, p[:len(p)-1].Member("limits").Member(exceeded[1]))
	q, err := resource.ParseQuantity(fmt.Sprint(limit))
	return ok && err == nil && q.IsZero()
}

// omitted reports whether the object of a request lacked a required field that the samples have. An author who leaves
// out all of a struct, such as a Pod in a template, gets this error because the webhook writes the rest of the struct.
// The error names what to add. A field of an element that the webhook has added is not omitted.
func (t *Trial) omitted(problem string, sent, result any) bool {
	paths := objects.ProblemPaths(problem)
	if !strings.Contains(problem, ": Required value") || len(paths) == 0 {
		return false
	}
	return !slices.ContainsFunc(paths, func(pointer string) bool {
		p := pathOf(result, pointer)
		element := p
		for len(element) > 0 && !element[len(element)-1].Element {
			element = element[:len(element)-1]
		}
		return !t.Inputs.GivenIn(p) || tree.Has(sent, p) || !tree.Has(sent, element)
	})
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
