// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"strconv"
	"time"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// isRandom reports whether the webhook sets a random value at a path of x, so that equal requests get different values.
// Times are not random.
func (t *Trial) isRandom(x *objects.Object, p tree.Path) bool {
	seen := map[string]bool{}
	const requests = 3 // the second of the clock may change once between them
	for range requests {
		out := t.Request(t.NewInstances(), session.Query{Object: x})
		if !out.OK() {
			return false
		}
		value, ok := tree.Get(out.After.Doc, p)
		if !ok || isClock(value) {
			return false
		}
		seen[string(tree.Encode(value))] = true
	}
	return len(seen) == requests
}

// isOfTime reports whether a value at a path of the result for x depends on the time, although an exception for L3 covers
// it: it is the current time, or two equal requests get the same value. Then two elements of a list share it by chance.
func (t *Trial) isOfTime(x *objects.Object, p tree.Path) bool {
	var last any
	for i := range 3 { // the second of the clock may change once between two requests
		out := t.Request(t.NewInstances(), session.Query{Object: x})
		if !out.OK() {
			return false
		}
		value, ok := tree.Get(out.After.Doc, p)
		if ok && (isClock(value) || i > 0 && tree.Equal(value, last)) {
			return true
		}
		last = value
	}
	return false
}

// isClock reports whether a value is the current time: a text in the form of RFC 3339, or a number of seconds,
// milliseconds, microseconds or nanoseconds since 1970.
func isClock(value any) bool {
	text := fmt.Sprint(value)
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return false
	}
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
		perSecond := int64(time.Second / unit)
		if age := time.Since(time.Unix(n/perSecond, 0)).Abs(); age < time.Hour {
			return true
		}
	}
	return false
}
