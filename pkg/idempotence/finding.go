// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// violation returns a finding about the case.
func (r *run) violation(c *Case, mode FailureMode, text string, outcomes ...*outcome) *Violation {
	found := *c
	found.Kind, found.Operation = r.kind.GroupVersionKind, r.operation
	v := &Violation{Law: c.Law, FailureMode: mode, Verdict: Fails, Summary: text, Case: found}
	// Shrinking produces many findings, so the details are added to the last one only.
	v.details = func() { r.detail(v, outcomes) }
	return v
}

// detail adds the cause, the fix, the calls and the difference to a finding.
func (r *run) detail(v *Violation, outcomes []*outcome) {
	v.Kind = kindName(v.Case.Kind)
	told := explain(v.Law, v.FailureMode)
	v.Cause, v.Fix = told.cause, told.fix
	if v.FailureMode == FailureInvalid && v.Case.Old != nil { // what an update is refused for is a change, mostly
		update := explain(L6, "")
		v.Cause, v.Fix = update.cause, update.fix
	}
	if v.FailureMode == FailureServerError {
		v.Cause = howItFailed(outcomes) + v.Cause
	}
	labels := told.requests
	for i, o := range outcomes {
		for _, a := range o.calls {
			call := a.Exchange
			if call.Request = i + 1; i < len(labels) {
				call.About = labels[i]
			}
			v.Calls = append(v.Calls, call)
		}
	}
	from, to := compared(v, outcomes)
	if from != nil && to != nil {
		changes := r.shown(v, from, to)
		v.Difference = newDifference(v, changes)
		v.mark(changes, len(outcomes))
	} else {
		v.markProblems(len(outcomes))
	}
}

// howItFailed describes what the server did instead of responding, or returns "".
func howItFailed(outcomes []*outcome) string {
	for _, o := range outcomes {
		for _, a := range o.calls {
			switch {
			case a.broke:
				return "The server broke off the connection, as one does whose handler panics: its log has the trace. "
			case a.Status >= http.StatusBadGateway && a.Status <= http.StatusGatewayTimeout:
				return fmt.Sprintf("HTTP %d comes from something in front of it, such as a proxy, or from a server that is overloaded: look there first. ", a.Status)
			case a.Status == http.StatusInternalServerError:
				return fmt.Sprintf("The server answered with HTTP %d, as one does whose handler raised an error: its log has the trace. ", a.Status)
			}
		}
	}
	return ""
}

func kindName(gvk schema.GroupVersionKind) string {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return apiVersion + " " + kind
}

// compared returns the two objects that should be equal.
func compared(v *Violation, o []*outcome) (from, to *objects.Object) {
	n := len(o)
	switch v.FailureMode {
	case FailureGrows, FailureChanges, FailureNeverSettles:
		return o[n-2].after, o[n-1].after
	case FailureVaries, FailureDiffers, FailureIncomplete, FailureNotTheSame, FailureReadsNamespace:
		return o[0].after, o[1].after
	case FailureTreatedUnlike:
		return o[1].after, o[n-1].after
	case FailureOrder:
		if n == 4 {
			return o[1].after, o[3].after
		}
	case FailureRemoves, FailureOverwrites, FailureRemovesSample:
		doc, err := tree.Decode(o[n-1].calls[0].Object)
		if err == nil {
			return &objects.Object{Raw: o[n-1].calls[0].Object, Doc: doc}, o[n-1].after
		}
	}
	return nil, nil
}

// shown returns the changes that a finding reports.
func (r *run) shown(v *Violation, from, to *objects.Object) []tree.Change {
	return slices.DeleteFunc(r.differences(v.Law, from, to), func(c tree.Change) bool {
		switch v.FailureMode {
		case FailureTreatedUnlike, FailureOrder:
			return c.Kind == tree.Moved
		case FailureRemoves, FailureOverwrites, FailureRemovesSample, FailureIncomplete:
			return c.Kind == tree.Moved || c.Kind == tree.Added
		case FailureReadsNamespace:
			return c.Path.String() == "metadata.namespace"
		}
		return false
	})
}

// inSequence holds the failure modes for which only the last request is relevant.
var inSequence = []FailureMode{FailureGrows, FailureChanges, FailureNeverSettles, FailureRemoves, FailureOverwrites, FailureRemovesSample, FailureNotTheSame}

// mark marks the operations that cause the difference.
func (v *Violation) mark(changes []tree.Change, requests int) {
	for i := range v.Calls {
		c := &v.Calls[i]
		if slices.Contains(inSequence, v.FailureMode) && c.Request < requests {
			continue
		}
		c.eachOperation(func(n int, before, after any, _ string) {
			for _, did := range tree.Changes(before, after) {
				if slices.ContainsFunc(changes, func(d tree.Change) bool { return d.Path.HasPrefix(did.Path) || did.Path.HasPrefix(d.Path) }) {
					c.Offending = append(c.Offending, n)
					return
				}
			}
		})
	}
}

// markProblems marks the operations that the API server rejects, or that cannot be applied.
func (v *Violation) markProblems(requests int) {
	paths := problemPaths(v.Summary)
	for i := range v.Calls {
		c := &v.Calls[i]
		if c.Request < requests {
			continue
		}
		c.eachOperation(func(n int, _, after any, pointer string) {
			if after == nil || slices.ContainsFunc(paths, func(p string) bool {
				return strings.HasPrefix(p+"/", pointer+"/") || strings.HasPrefix(pointer+"/", p+"/")
			}) {
				c.Offending = append(c.Offending, n)
			}
		})
	}
}

// eachOperation applies the patch of a call one operation at a time. It stops at an operation that does not apply, for
// which after is nil. pointer is the operation's path, with an index for "-".
func (c *Exchange) eachOperation(visit func(n int, before, after any, pointer string)) {
	operations, err := jsonpatch.DecodePatch(c.Patch)
	if err != nil {
		return
	}
	raw := []byte(c.Object)
	before, err := tree.Decode(raw)
	if err != nil {
		return
	}
	for n, operation := range operations {
		pointer, _ := operation.Path()
		if raw, err = objects.ApplyPatch(jsonpatch.Patch{operation}, raw); err != nil {
			visit(n, before, nil, pointer)
			return
		}
		after, err := tree.Decode(raw)
		if err != nil {
			return
		}
		if parent, ok := strings.CutSuffix(pointer, "/-"); ok {
			pointer = parent
		}
		visit(n, before, after, pointer)
		before = after
	}
}

var problemPath = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9]*(?:\.[a-zA-Z][a-zA-Z0-9]*|\[[^\]]*\])+): (?:Invalid|Duplicate|Required|Forbidden|Not found|Unsupported|Too)`)

// problemPaths returns the field paths in the API server's messages as JSON pointers.
func problemPaths(text string) (pointers []string) {
	for _, match := range problemPath.FindAllStringSubmatch(text, -1) {
		var b strings.Builder
		for path := match[1]; path != ""; {
			if path[0] == '[' {
				key, rest, _ := strings.Cut(path[1:], "]")
				b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
				path = rest
				continue
			}
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			b.WriteString("/" + path[:end])
			path = path[end:]
		}
		pointers = append(pointers, b.String())
	}
	return pointers
}

// A Difference is how two objects differ that should be equal.
type Difference struct {
	// From and To name the two objects.
	From    string   `json:"from"`
	To      string   `json:"to"`
	Changes []Change `json:"changes"`
}

// A Change is one part of a difference: at a field path, a value is added, removed, replaced, or moved within its
// list.
type Change struct {
	Kind string          `json:"kind"`
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

func newDifference(v *Violation, changes []tree.Change) *Difference {
	if len(changes) == 0 {
		return nil
	}
	d := &Difference{}
	told := explain(v.Law, v.FailureMode)
	d.From, d.To = told.from, told.to
	for _, c := range changes {
		change := Change{Kind: string(c.Kind), Path: c.Path.String()}
		if c.Kind != tree.Added {
			change.Old = tree.Encode(c.Old)
		}
		if c.Kind != tree.Removed {
			change.New = tree.Encode(c.New)
		}
		d.Changes = append(d.Changes, change)
	}
	return d
}
