// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A history is what one replica remembers of earlier turns. All times except written are of its own
// clock, with the monotonic reading: a step of the clock does not count as time in which a CA
// settles, nor does the suspension of the machine.
type history struct {
	version string // of the Secret that was decoded last
	state   *state
	err     error

	snapshots map[string]snapshot      // the last look at each place, by its name
	since     map[caSighting]time.Time // when a CA was first seen in a place, and at every look since
	trusted   map[string]error         // what a target said of the certificate, when it could be read last
	untrusted error                    // which of them do not trust it
	ready     bool                     // the replica was ready once
	logged    string                   // the error that was logged last
	ahead     time.Duration            // by how much this clock was, as it was told last
	overdue   bool                     // see follow
	far       debounced                // the clocks differ by too much
	differs   debounced                // they differ by so much that it is told
	// clocksDiffer says that the log was told so, or that it is an error.
	clocksDiffer bool
}

// A caSighting is a CA that was seen in a target, or in the Secret, whose place is empty.
type caSighting struct{ ca, place string }

// A snapshot identifies the version of a target or the Secret, to detect changes between two turns.
type snapshot struct {
	at      time.Time
	version string
	written time.Time // by the server's clock
}

// follows tells whether what is there at both looks was there all the time: nothing was changed,
// or at least not the caBundle by one of us, as after a loss, and the time between is short.
func (g snapshot) follows(before snapshot, began time.Time, patience time.Duration) bool {
	return g.version == before.version || g.written.Equal(before.written) && began.Sub(before.at) <= patience
}

// decode reads the Secret, if it is another than the last time.
func (l *history) decode(s kube.Secret) (*state, error) {
	if s.Version == "" || s.Version != l.version {
		l.state, l.err = decodeState(s.Data)
		l.version = s.Version
	}
	return l.state, l.err
}

// observe remembers where the CAs of the Secret were seen in this turn. What could not be read
// stays as it was.
func (l *history) observe(seen *state, t *turn, patience time.Duration) {
	if l.snapshots == nil {
		l.snapshots, l.since = map[string]snapshot{}, map[caSighting]time.Time{}
	}
	if seen != nil {
		l.record("", snapshot{at: t.looked, version: t.stored.Version}, t, patience, seen.trusted())
	}
	for i := range t.targets {
		o := &t.targets[i]
		if o.err == nil {
			var there []*x509.Certificate
			if seen != nil {
				there = slices.DeleteFunc(seen.trusted(), func(c *x509.Certificate) bool { return !o.trusts(c) })
			}
			l.record(o.target.String(), snapshot{t.looked, o.Version, o.Written}, t, patience, there)
		}
	}
}

// record records the CAs that a place holds now.
func (l *history) record(place string, g snapshot, t *turn, patience time.Duration, there []*x509.Certificate) {
	before, known := l.snapshots[place]
	l.snapshots[place] = g
	first := map[caSighting]time.Time{}
	for _, c := range there {
		s := caSighting{fingerprint(c), place}
		first[s] = t.looked
		if at, seen := l.since[s]; seen && known && g.follows(before, t.began, patience) {
			first[s] = at
		}
	}
	maps.DeleteFunc(l.since, func(s caSighting, _ time.Time) bool { return s.place == place })
	maps.Copy(l.since, first)
}

// settled tells whether this replica has seen a CA, at every look and for long enough, in the
// Secret and in every target of ours that calls somebody. Each replica finds out for itself, about its
// own targets: one that dies has another one begin again, and no clocks are compared. A target
// that cannot be read now may lack it.
func (l *history) settled(a *authority, t *turn, settle time.Duration) bool {
	if a == nil {
		return false
	}
	long := func(place string) bool {
		first, there := l.since[caSighting{a.id(), place}]
		return there && t.began.Sub(first) >= settle
	}
	return long("") && !slices.ContainsFunc(t.targets, func(o observation) bool {
		return !o.isIgnored() && (o.err != nil || !long(o.target.String()))
	})
}

// settlesAt is when everything that was seen will have settled if nothing happens.
func (l *history) settlesAt(settle time.Duration) time.Time {
	var last time.Time
	for _, t := range l.since {
		if t.After(last) {
			last = t
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(settle).Round(0)
}

// confirmations is how many responses in a row change the result: one of several API servers may have a
// wrong clock.
const confirmations = 3

// A debounced value is that of the first update, or of several in a row.
type debounced struct {
	known, is bool
	against   int // looks that say otherwise
}

// look tells whether a look agrees with what is thought after it.
func (s *debounced) update(found bool) (agrees bool) {
	switch {
	case found == s.is && s.known:
		s.against = 0
	case !s.known || s.against+1 >= confirmations:
		*s = debounced{known: true, is: found}
	default:
		s.against++
	}
	return found == s.is
}
