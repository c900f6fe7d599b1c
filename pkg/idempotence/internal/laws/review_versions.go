// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// reviewVersions checks L8: every review version and encoding gets the same decision.
type reviewVersions struct{ *Trial }

func (l reviewVersions) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok {
		return nil
	}
	s := l.Fresh()
	first := l.F(s, session.Query{Object: x})
	if first.Fault != "" && first.FaultOf == session.BadEnvelope {
		return l.Finding(c, Envelope, "the API server cannot use the answer: "+first.Fault, first)
	}
	if first.OK() {
		if again := l.F(s, session.Query{Object: first.After}); again.Fault != "" && again.FaultOf == session.BadEnvelope {
			return l.Finding(c, EnvelopeAgain, "the API server cannot use the answer to the next call: "+again.Fault, first, again)
		}
	}
	for _, w := range l.Webhooks {
		versions := w.Versions()
		if l.FirstVersionOnly {
			versions = versions[:1]
		}
		for _, version := range versions {
			if v := l.readsVersion(c, x, first, l.Fresh(), version); v != nil {
				return v
			}
		}
		if s := l.NewInstances(); len(versions) > 1 { // API servers of two versions call one instance
			for _, version := range slices.Backward(append(versions[:len(versions):len(versions)], versions...)) {
				if v := l.readsVersion(c, x, first, s, version); v != nil {
					return v
				}
			}
		}
	}
	if l.UsualEncodingOnly {
		return nil
	}
	return l.sameAs(c, first, l.F(l.Fresh(), session.Query{Object: x, Raw: otherwise(x.Doc)}), "another encoding of the object")
}

// readsVersion sends a review in the version. It returns a finding if the response cannot be used or the result differs
// from first.
func (l reviewVersions) readsVersion(c *Case, x *objects.Object, first *session.Outcome, s session.Instances, version string) *Finding {
	out := l.F(s, session.Query{Object: x, Version: version})
	if out.Fault != "" && out.FaultOf == session.BadEnvelope {
		return l.Finding(c, Envelope, fmt.Sprintf("the API server cannot use the answer to a review of version %s: %s", version, out.Fault), out)
	}
	return l.sameAs(c, first, out, "a review of version "+version)
}

// otherwise encodes a document differently: members in reverse order, white space, and escapes in annotations. Escapes
// are used only there, because the decoders of some types, such as Quantity, do not understand them.
func otherwise(v any) []byte {
	var out bytes.Buffer
	writeOtherwise(&out, v, false)
	return out.Bytes()
}

func writeOtherwise(out *bytes.Buffer, v any, escapes bool) {
	switch v := v.(type) {
	case map[string]any:
		out.WriteString("{ ")
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		slices.Reverse(names)
		for i, name := range names {
			if i > 0 {
				out.WriteString(" ,\n")
			}
			writeText(out, name, escapes)
			out.WriteString(" : ")
			writeOtherwise(out, v[name], escapes || name == "annotations")
		}
		out.WriteString("\t}")
	case []any:
		out.WriteString("[ ")
		for i, element := range v {
			if i > 0 {
				out.WriteString(" , ")
			}
			writeOtherwise(out, element, escapes)
		}
		out.WriteString(" ]")
	case string:
		writeText(out, v, escapes)
	default:
		out.Write(tree.Encode(v))
	}
}

// writeText writes a string. If escapes is set, it writes each letter e as an escape, unless the string has other
// escapes.
func writeText(out *bytes.Buffer, text string, escapes bool) {
	encoded := tree.Encode(text)
	if escapes && !bytes.ContainsRune(encoded, '\\') {
		encoded = bytes.ReplaceAll(encoded, []byte("e"), []byte(`\u0065`))
	}
	out.Write(encoded)
}
