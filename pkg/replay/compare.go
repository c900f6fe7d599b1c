// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// A Class says what differs between two answers.
type Class string

// The classes, in the order of the report.
const (
	// Failure: one version decides, and the other one fails or gives an invalid answer.
	Failure Class = "failure"
	// Decision: one version allows what the other one denies.
	Decision Class = "decision"
	// Denial: both versions deny, with different codes, reasons or messages.
	Denial Class = "denial"
	// Patch: both versions allow, and the patched objects differ. The order of operations does not matter.
	Patch Class = "patch"
	// Notes: the versions differ only in warnings or audit annotations. Such a difference is not a change.
	Notes Class = "notes"
)

var classes = []Class{Failure, Decision, Denial, Patch, Notes}

// A difference is what differs for one call. The cause is the same for calls that differ in the same way.
type difference struct {
	class         Class
	cause         string
	before, after string
}

// skipped is the reason why a call was not compared, or "".
type skipped string

// compare returns the difference between two answers to a request, or nil. It applies their patches to the object of the
// request.
func compare(req *review.Request, before, after *answer) (*difference, skipped) {
	name := func(text string) string {
		return textutil.Clip(textutil.WithoutName(afterKind(req, text), req.Name), 300)
	}
	d := &difference{before: before.String(), after: after.String()}
	switch {
	case before.failure != "" && after.failure != "":
		return nil, "both versions failed"
	case before.failure != "":
		d.class, d.cause = Failure, "failed before, decides now: "+name(before.failure)
		return d, ""
	case after.failure != "":
		d.class, d.cause = Failure, "fails now: "+name(after.failure)
		return d, ""
	case before.allowed && !after.allowed:
		d.class, d.cause = Decision, "allowed before, denied now: "+name(after.message())
		return d, ""
	case !before.allowed && after.allowed:
		d.class, d.cause = Decision, "denied before, allowed now: "+name(before.message())
		return d, ""
	case !before.allowed:
		if !sameStatus(before, after) {
			d.class, d.cause = Denial, fmt.Sprintf("denied before: %s; and now: %s", name(before.denial()), name(after.denial()))
			return d, ""
		}
	default:
		if found, skip := comparePatches(before, after); found != nil || skip != "" {
			return found, skip
		}
	}
	if !before.sameNotes(after) {
		d.class, d.cause = Notes, "other warnings or audit annotations"
		d.before, d.after = before.notes(), after.notes()
		return d, ""
	}
	return nil, ""
}

// afterKind replaces the name of the object by "…" where it follows the kind, as in "Pod web". Elsewhere, a short name may be
// another word.
func afterKind(req *review.Request, text string) string {
	if req.Name == "" || !strings.Contains(text, req.Name) {
		return text
	}
	after := regexp.MustCompile(`(?i)\b(` + regexp.QuoteMeta(req.Kind.Kind) + `s?[ /])` + regexp.QuoteMeta(req.Name) + `(\.?(?:$|[^a-z0-9.-]))`)
	return after.ReplaceAllString(text, "${1}…${2}")
}

// sameStatus reports whether two denials are equal. A hook that does not enforce records only the message of a denial.
func sameStatus(a, b *answer) bool {
	if b.redacted != nil && b.redacted.message() != b.message() {
		b.hides = true
		return true // the message has a secret
	}
	if a.withheld || b.withheld {
		return sameText(a.message(), b.message())
	}
	return a.denial() == b.denial()
}

// sameText compares messages. One that ends in an ellipsis may have been cut off: an audit annotation is short.
func sameText(a, b string) bool {
	begins := func(text, with string) bool {
		start, cut := strings.CutSuffix(with, "…")
		return cut && strings.HasPrefix(text, start)
	}
	return a == b || begins(a, b) || begins(b, a)
}

// comparePatches compares the objects to which the patches lead.
func comparePatches(before, after *answer) (*difference, skipped) {
	if before.changes != "" || after.changes != "" {
		if before.changes == after.changes {
			return nil, ""
		}
		return nil, "a hook in the mode Shadow withheld its patch, so there is no object to compare"
	}
	if bytes.Equal(before.patch, after.patch) {
		return nil, ""
	}
	return compareObjects(before, after)
}

// compareObjects returns the difference of two patched objects. As in the API server, a null member is absent. Secrets are
// not compared if the recording has pseudonyms with another key.
func compareObjects(before, after *answer) (*difference, skipped) {
	was, err := decode(before.object)
	if err != nil {
		return nil, skipped(err.Error())
	}
	is, err := decode(after.object)
	if err != nil {
		return nil, skipped(err.Error())
	}
	if after.redacted != nil && after.redacted.object != nil {
		if other, err := decode(after.redacted.object); err == nil {
			was, is = withoutSecrets(was, is, other)
			after.hides = hides(is)
		}
	}
	ops, err := patch.Values(was, is)
	if err != nil {
		return nil, skipped(err.Error())
	}
	if len(ops) == 0 {
		return nil, ""
	}
	d := &difference{class: Patch, cause: "the patched object differs in " + fieldsOf(ops)}
	d.before, d.after = valuesOf(was, ops)
	return d, ""
}

func decode(document []byte) (any, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	err := d.Decode(&v)
	return withoutNulls(v), err
}

// withoutNulls removes members that are null. A null element of a list stays.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			} else {
				v[name] = withoutNulls(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

// maxFields is the maximum number of fields in a cause.
const maxFields = 4

// fieldsOf returns the fields that a patch changes, without indices of lists.
func fieldsOf(ops patch.Patch) string {
	var fields []string
	for _, op := range ops {
		if field := fieldOf(op.Path); !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	if more := len(fields) - maxFields; more > 0 {
		fields = append(fields[:maxFields], textutil.Count(more, "more field"))
	}
	return textutil.Join(fields, "and")
}

func fieldOf(at patch.Pointer) string {
	var path strings.Builder
	for i, name := range tokens(at) {
		_, err := strconv.Atoi(name)
		switch {
		case err == nil && i > 0, name == "-":
			path.WriteString("[*]")
		case strings.ContainsAny(name, "./[]"):
			path.WriteString("[" + name + "]")
		case path.Len() > 0:
			path.WriteString("." + name)
		default:
			path.WriteString(name)
		}
	}
	if path.Len() == 0 {
		return "the whole object"
	}
	return path.String()
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// tokens returns the unescaped names in a pointer.
func tokens(at patch.Pointer) (names []string) {
	if at == "" {
		return nil
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(string(at), "/"), "/") {
		names = append(names, unescaped.Replace(name))
	}
	return names
}

// An example shows at most maxShown fields, and at most maxCharacters characters of each.
const (
	maxShown      = 5
	maxCharacters = 200
)

// valuesOf returns the first fields that a patch changes, with their values before and after the patch. An index in a pointer
// refers to the list that results from the operations before it.
func valuesOf(object any, ops patch.Patch) (before, after string) {
	var a, b []string
	for i, op := range ops {
		if i == maxShown {
			more := textutil.Count(len(ops)-i, "more field")
			a, b = append(a, more), append(b, more)
			break
		}
		old, found := valueAt(object, tokens(op.Path))
		if op.Op == patch.Add && !found || op.Op == patch.Add && isElement(op.Path) {
			old = nil
		}
		a = append(a, shown(op.Path, old))
		object = resultOf(object, op)
		switch op.Op {
		case patch.Remove:
			b = append(b, shown(op.Path, nil))
		case patch.Add, patch.Replace:
			b = append(b, shown(op.Path, op.Value))
		default:
			b = append(b, fmt.Sprintf("%s: %s of %s", op.Path, op.Op, op.From))
		}
	}
	return strings.Join(a, "\n"), strings.Join(b, "\n")
}

// resultOf returns a document after an operation. If the operation fails, it returns the document itself.
func resultOf(document any, op patch.Operation) any {
	data, err := json.Marshal(document)
	if err != nil {
		return document
	}
	if data, err = patch.Apply(data, patch.Patch{op}); err != nil {
		return document
	}
	changed, err := decode(data)
	if err != nil {
		return document
	}
	return changed
}

// isElement reports whether a pointer is that of an element. To add one does not replace the present one.
func isElement(at patch.Pointer) bool {
	all := tokens(at)
	_, err := strconv.Atoi(all[len(all)-1])
	return err == nil
}

func valueAt(v any, names []string) (any, bool) {
	for _, name := range names {
		switch holder := v.(type) {
		case map[string]any:
			member, found := holder[name]
			if !found {
				return nil, false
			}
			v = member
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(holder) {
				return nil, false
			}
			v = holder[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// shown returns a line with a field and its value, where nil means that the field is absent.
func shown(at patch.Pointer, value any) string {
	text := "(absent)"
	if value != nil {
		data, err := json.Marshal(value)
		text = string(data)
		if err != nil {
			text = err.Error()
		}
	}
	return string(at) + ": " + textutil.Clip(text, maxCharacters)
}
