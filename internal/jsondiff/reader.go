// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"strconv"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A reader steps through the decode.Outline of a document, which has one part for each value.
type reader struct {
	raw   []byte
	parts decode.Outline
	next  int            // index of the next part in parts
	c     jsonraw.Cursor // decodes strings with escapes
	names []entryName    // of the maps on the path
}

// part returns the part to compare next. skip steps over it.
func (r *reader) part() *decode.Part { return &r.parts[r.next] }
func (r *reader) skip()              { r.next = int(r.part().Next) }

func (r *reader) kind() jsonraw.Kind { return r.part().Kind }

func (r *reader) bytes(p *decode.Part) []byte { return r.raw[p.Start:p.End:p.End] }

// textOf returns the decoded text of a string part, valid until the next call.
func (r *reader) textOf(p *decode.Part) []byte {
	if p.Plain {
		return r.raw[p.Start+1 : p.End-1]
	}
	r.c.Seek(r.raw, int(p.Start), 0)
	text, _ := r.c.TextBytes() // cannot fail: the part was read before
	return text
}

// name returns the name of the map entry whose value is p.
func (r *reader) name(p *decode.Part) []byte {
	c := jsonraw.At(r.raw, int(p.At), 0)
	name, _ := c.Name() // cannot fail: the name was read before
	return name
}

// isText reports whether the next value is the string want, and if so steps over it. It returns false if want is
// empty, because the field may be omitted then.
func (r *reader) isText(want string) bool {
	p := r.part()
	if p.Kind != jsonraw.String || want == "" || string(r.textOf(p)) != want {
		return false
	}
	r.next++
	return true
}

// integer reads a number that is written without a fraction or an exponent.
func integer(raw []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// An entryName is the name of one entry and the index of its part.
type entryName struct {
	name []byte
	part int
}
