// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"math"
	"regexp"
	"strings"
)

// limits are the constraints of a schema node besides its type. Nil means none.
type limits struct {
	minimum, maximum           *float64
	exclusiveMin, exclusiveMax bool
	multipleOf                 *float64
	lengthMin, lengthMax       *int64
	pattern                    *regexp.Regexp
	format                     string
	itemsMin, itemsMax         *int64
	membersMin, membersMax     *int64
	uniqueItems                bool
	// In anyOf, all members of at least one list are required; in oneOf, of exactly one list.
	anyOf, oneOf [][]string
}

func orElse(p *int64, otherwise int64) int64 {
	if p == nil {
		return otherwise
	}
	return *p
}

func (l *limits) minItems() int64 {
	if l == nil {
		return 0
	}
	return orElse(l.itemsMin, 0)
}

func (l *limits) maxItems() int64 {
	if l == nil {
		return math.MaxInt64
	}
	return orElse(l.itemsMax, math.MaxInt64)
}

func (l *limits) minProperties() int64 {
	if l == nil {
		return 0
	}
	return orElse(l.membersMin, 0)
}

func (l *limits) maxProperties() int64 {
	if l == nil {
		return math.MaxInt64
	}
	return orElse(l.membersMax, math.MaxInt64)
}

func (l *limits) unique() bool { return l != nil && l.uniqueItems }

// size returns the legal size nearest to wanted.
func (*limits) size(low, high, wanted int64) int64 { return min(max(low, wanted), high) }

// needed returns names of members that o must have to satisfy anyOf and oneOf. It returns none if o satisfies both.
func (f *filler) needed(n *node, o object) []string {
	if n.limits == nil {
		return nil
	}
	var names []string
	for _, alternatives := range [][][]string{n.limits.anyOf, n.limits.oneOf} {
		met := false
		for _, members := range alternatives {
			met = met || hasAll(o, members)
		}
		if len(alternatives) > 0 && !met {
			names = append(names, pick(f.build, alternatives...)...)
		}
	}
	return names
}

func hasAll(o object, members []string) bool {
	for _, name := range members {
		if _, ok := o[name]; !ok {
			return false
		}
	}
	return true
}

// atLeast adds members until o has minProperties. It returns false if it finds too few.
func (f *filler) atLeast(n *node, o object, depth int) bool {
	for _, m := range n.fields {
		if int64(len(o)) >= n.limits.minProperties() {
			break
		}
		if _, there := o[m.name]; !there {
			if v, ok := f.fill(m.node, depth+1); ok {
				o[m.name] = v
			}
		}
	}
	return int64(len(o)) >= n.limits.minProperties()
}

// scalar generates a value that is neither an object nor a list.
func (f *filler) scalar(n *node) (any, bool) {
	switch n.sort {
	case booleanSort:
		return f.chance(0.5), true
	case integerSort:
		return f.integer(n)
	case numberSort:
		return f.decimal(n)
	case intOrStringSort:
		return f.intOrString(n)
	case textSort:
		return f.text(n)
	}
	return pick[any](f.build, "text", int64(3), true, object{"free": "form"}, []any{"a"}), true
}

// intOrString generates a number or a text, as the limits allow.
func (f *filler) intOrString(n *node) (any, bool) {
	switch {
	case n.limits == nil || n.limits.pattern == nil:
	case n.limits.pattern.MatchString("250m") && n.limits.pattern.MatchString("2Gi"):
		return pick[any](f.build, quantities...), true
	default:
		return f.text(n)
	}
	return pick[any](f.build, int64(1), "25%", "1"), true
}

// quantities are the values of fields with the pattern of quantities. Other texts with that pattern, such as "1e.5", are no
// quantities.
var quantities = []any{"1", "250m", "2Gi", "0.5", "+.5", "1e3", int64(2)}

// bounds returns the smallest and the largest legal integer. low and high are the values for a node without limits.
func (l *limits) bounds(low, high float64) (float64, float64) {
	if l == nil {
		return low, high
	}
	if l.minimum != nil {
		low = math.Ceil(*l.minimum)
		if l.exclusiveMin && low == *l.minimum {
			low++
		}
		if l.maximum == nil {
			high = low + 100
		}
	}
	if l.maximum != nil {
		high = math.Floor(*l.maximum)
		if l.exclusiveMax && high == *l.maximum {
			high--
		}
		if l.minimum == nil {
			low = min(low, high-100)
		}
	}
	return low, high
}

func (f *filler) integer(n *node) (any, bool) {
	low, high := n.limits.bounds(0, 100)
	step := 1.0
	if n.limits != nil && n.limits.multipleOf != nil {
		step = max(1, *n.limits.multipleOf)
	}
	first, last := math.Ceil(low/step), math.Floor(high/step)
	if first > last {
		return nil, false
	}
	v := first + float64(f.between(0, int64(min(last-first, 1000))))
	if f.may(traitEdge, 0.2) {
		v = pick(f.build, first, last)
	}
	return int64(v * step), true
}

// decimal generates a number, with a fraction if the limits allow one.
func (f *filler) decimal(n *node) (any, bool) {
	low, high := n.limits.bounds(0, 100)
	if n.limits != nil && n.limits.multipleOf != nil {
		v := math.Ceil(low / *n.limits.multipleOf) * *n.limits.multipleOf
		if v == math.Trunc(v) {
			return int64(v), true
		}
		return v, v <= high
	}
	switch {
	case high > low:
		return low + 0.5, true
	case high == low:
		return int64(low), true
	case n.limits.minimum != nil && n.limits.maximum != nil:
		v := (*n.limits.minimum + *n.limits.maximum) / 2
		return v, *n.limits.minimum <= *n.limits.maximum
	}
	return nil, false
}

// formats has sample values for the formats that the API server checks.
var formats = map[string][]string{
	"date-time": {"2026-01-02T03:04:05Z"}, "date": {"2026-01-02"}, "duration": {"5m0s", "1h"},
	"email": {"a@example.com"}, "hostname": {"example.com"}, "ipv4": {"10.1.2.3"}, "ipv6": {"2001:db8::1"}, "cidr": {"10.0.0.0/8"},
	"mac": {"00:00:5e:00:53:01"}, "uri": {"https://example.com/a?b=c&d"}, "uuid": {"d9607e19-f88f-41e6-a518-52540026f73f"},
	"uuid3": {"d9607e19-f88f-31e6-a518-52540026f73f"}, "uuid4": {"d9607e19-f88f-41e6-a518-52540026f73f"}, "uuid5": {"d9607e19-f88f-51e6-a518-52540026f73f"},
	"byte": {"aGVsbG8="}, "bsonobjectid": {"507f1f77bcf86cd799439011"}, "isbn": {"0321751043"}, "isbn10": {"0321751043"},
	"isbn13": {"978-0321751041"}, "creditcard": {"4111111111111111"}, "ssn": {"111-11-1111"}, "hexcolor": {"#ff00aa"},
	"rgbcolor": {"rgb(1,2,3)"}, "password": {"secret"}, "datetime": {"2026-01-02T03:04:05Z"},
	"k8s-short-name": {"a-name"}, "k8s-long-name": {"a.long-name"},
}

var plainTexts = []string{"a", "web", "some text", "x1", "<b>&", "ünïcode", "", "1", "true"}

func (f *filler) text(n *node) (any, bool) {
	l := n.limits
	if l == nil {
		return pick(f.build, plainTexts...), true
	}
	if samples := formats[strings.ReplaceAll(l.format, "_", "-")]; samples != nil {
		return pick(f.build, samples...), true
	}
	low, high := orElse(l.lengthMin, 0), orElse(l.lengthMax, math.MaxInt64)
	if low > mostText {
		return nil, false
	}
	for range 20 {
		s := pick(f.build, plainTexts...)
		if l.pattern != nil {
			s = f.matching(l.pattern.String(), int(min(low, 1000)))
		} else if f.may(traitEdge, 0.1) && high <= 1000 {
			s = strings.Repeat("x", int(high))
		}
		if missing := low - int64(len([]rune(s))); l.pattern == nil && missing > 0 {
			s += strings.Repeat("0123456789", int(missing/10)+1)[:missing]
		}
		if size := int64(len([]rune(s))); low <= size && size <= high && (l.pattern == nil || l.pattern.MatchString(s)) {
			return s, true
		}
	}
	return nil, false
}
