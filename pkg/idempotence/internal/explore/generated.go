// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A drawnValue is a single value that differs between the results of two equal requests.
type drawnValue struct {
	path tree.Path // pattern of the path: the key of an element is "*" in lists of containers, or if the keys differ
	at   []any     // names of members and indexes of elements
}

// drawnValues returns the values that differ between two documents. Elements of lists are compared by their position.
// It returns false if the documents differ in anything but single values.
func drawnValues(a, b any) (values []drawnValue, ok bool) {
	var walk func(v drawnValue, a, b any) bool
	walk = func(v drawnValue, a, b any) bool {
		if tree.Equal(a, b) {
			return true
		}
		if x, y := asObject(a), asObject(b); x != nil && y != nil {
			for _, name := range slices.Sorted(maps.Keys(x)) {
				other, has := y[name]
				if !has || !walk(drawnValue{v.path.Member(name), append(slices.Clip(v.at), name)}, x[name], other) {
					return false
				}
			}
			return len(x) == len(y)
		}
		x, isList := a.([]any)
		y, areLists := b.([]any)
		if isList && areLists {
			for i := range x {
				if len(x) != len(y) || !walk(drawnValue{v.path.Element(keyOf(v.path, x[i], y[i]), 0), append(slices.Clip(v.at), i)}, x[i], y[i]) {
					return false
				}
			}
			return len(x) == len(y)
		}
		values = append(values, v)
		return plain(a) != "" && plain(b) != ""
	}
	ok = walk(drawnValue{}, a, b)
	return values, ok
}

// keyOf returns the key of two elements of a list, or "*" if they differ, or if it is a list of containers.
func keyOf(list tree.Path, a, b any) string {
	key := tree.Identity(list, a)
	if key != tree.Identity(list, b) || strings.ContainsAny(key, "{}[]*\"") || strings.HasSuffix(strings.ToLower(list.Last()), "containers") {
		return "*"
	}
	return key
}

// patternsOf returns patterns for exceptions that cover the values.
func patternsOf(values []drawnValue) (patterns []string) {
	for _, v := range values {
		if text := v.path.String(); !slices.Contains(patterns, text) {
			patterns = append(patterns, text)
		}
	}
	return patterns
}

// plain returns a text or a number as text. For other values and for zero values it returns "".
func plain(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case int64, float64:
		if text := fmt.Sprint(value); text != "0" {
			return text
		}
	}
	return ""
}

// valueAt returns the value at a list of names and indexes.
func valueAt(doc any, at []any) (any, bool) {
	for _, step := range at {
		switch step := step.(type) {
		case string:
			value, ok := asObject(doc)[step]
			if !ok {
				return nil, false
			}
			doc = value
		case int:
			list, _ := doc.([]any)
			if step >= len(list) {
				return nil, false
			}
			doc = list[step]
		}
	}
	return doc, true
}

// draws is the number of requests in which a generated value must be different each time. A webhook that selects one of
// a few values, or whose result depends on the order of a map, repeats one of them.
const draws = 8

// laterDraws is the number of seconds in which a generated time must be different each time.
const laterDraws = 3

// generates reports whether the webhook generates the values that differ in a finding about L3, such as an ID or a
// time: they are absent in x, and different in each of several calls of one instance and of fresh ones. So a counter in
// the memory of the program does not count, because two replicas have the same numbers. The API server generates
// the name of an object, and the name of an added element must not depend on chance, because other parts refer to it.
// If hasTime is set, one of the values may be a time. Then the calls are made in different seconds.
func (r *Run) generates(f *laws.Finding, x *objects.Object, values []drawnValue, hasTime bool) bool {
	if slices.ContainsFunc(values, func(v drawnValue) bool { return !isAbsent(x.Doc, v) }) {
		return false
	}
	number, later := draws, false
	switch f.Case.Variant {
	case "", laws.Few:
		if hasTime && r.followsTime(x, values) {
			number, later = laterDraws, true
		}
	case laws.NextSecond, laws.AnotherTime:
		number, later = laterDraws, true
	default:
		return false
	}
	instances := r.NewInstances()
	seen, letters := make([]map[any]bool, len(values)), map[string]bool{}
	for n := range number {
		if later && n > 0 && !r.waitForNextSecond() {
			return false
		}
		in := instances
		if n%2 == 1 {
			in = r.NewInstances()
		}
		out := r.Request(in, session.Query{Object: x})
		if !out.OK() {
			return false
		}
		all := ""
		for i, v := range values {
			value, _ := valueAt(out.After.Doc, v.at)
			text := plain(value)
			if text == "" || seen[i][text] {
				return false
			}
			if seen[i] == nil {
				seen[i] = map[any]bool{}
			}
			seen[i][text] = true
			all += text
		}
		sorted := []byte(all)
		slices.Sort(sorted)
		letters[string(sorted)] = true
	}
	return len(letters) > 1 || later // otherwise, only the order differs
}

// followsTime reports whether equal requests that follow each other get equal values until the time changes, so that no
// value appears again after another one. A webhook that selects one of a few values repeats them in any order.
func (r *Run) followsTime(x *objects.Object, values []drawnValue) bool {
	seen, last := map[string]bool{}, ""
	for range 2 * draws {
		out := r.Request(r.NewInstances(), session.Query{Object: x})
		if !out.OK() {
			return false
		}
		all := ""
		for _, v := range values {
			value, _ := valueAt(out.After.Doc, v.at)
			all += plain(value) + "\n"
		}
		if all != last && seen[all] {
			return false
		}
		seen[all], last = true, all
	}
	return len(seen) < 2*draws
}

// isAbsent reports whether a document has no value, or an empty one, at the place of a drawn value. It reports false for
// the name of an object, and for the name of an element that the document lacks.
func isAbsent(doc any, v drawnValue) bool {
	value, _ := valueAt(doc, v.at)
	if value != nil && value != any("") {
		return false
	}
	if last := v.path[len(v.path)-1]; last.Element || last.Name != "name" {
		return !last.Element
	}
	_, has := valueAt(doc, v.at[:len(v.at)-1])
	return has && len(v.at) > 1 && v.at[len(v.at)-2] != "metadata"
}

// waitForNextSecond returns when the next second of the clock begins. It returns false if the run ends before.
func (r *Run) waitForNextSecond() bool {
	now := time.Now()
	next := time.NewTimer(now.Truncate(time.Second).Add(time.Second).Sub(now))
	defer next.Stop()
	select {
	case <-next.C:
		return true
	case <-r.Ctx.Done():
		return false
	}
}
