// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// unknownFields checks L9: unknown fields stay in their place.
type unknownFields struct{ *Trial }

// check checks a case. The case's edits add fields that no Go type has.
func (l unknownFields) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok {
		return nil
	}
	known := l.first(x)
	if !known.OK() {
		return nil
	}
	doc := x.Doc
	for _, e := range c.Edits {
		if next, ok := e.Apply(doc); ok {
			doc = next
		}
	}
	out := l.F(l.Fresh(), session.Query{Object: x, Raw: tree.Encode(doc)})
	if out.Fault != "" {
		return l.Finding(c, ServerError, "the webhook fails when an object has a field that it does not know: "+textutil.FirstLine(out.Fault), out)
	}
	if !out.Allowed {
		return nil // a webhook may refuse what it cannot read
	}
	patched, err := tree.Decode(out.Result)
	if err != nil {
		return nil
	}
	var rounded *Finding
	for _, e := range c.Edits {
		got, ok := tree.Get(patched, e.Path)
		if !tree.Has(doc, e.Path) || ok && tree.Equal(got, e.Value) || l.excepted(c.Law, e.Path) {
			continue
		}
		if !tree.Has(known.After.Doc, e.Path[:len(e.Path)-1]) {
			continue // the field was removed with its parent
		}
		if ok && sameAsFloats(got, e.Value) {
			rounded = l.Finding(c, Rounds, "a large integer in a field that the webhook does not know is rounded: "+e.Path.String(), out)
			rounded.Advice = true
			continue
		}
		return l.Finding(c, Loses, "a field that the webhook does not know is lost: "+e.Path.String(), out)
	}
	return rounded
}

// sameAsFloats reports whether two values are equal if all numbers are read as floats, as encoding/json does. This
// changes integers above 2^53.
func sameAsFloats(a, b any) bool {
	return tree.Equal(asFloats(a), asFloats(b))
}

func asFloats(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = asFloats(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[name] = asFloats(inner)
		}
		return out
	}
	return v
}
