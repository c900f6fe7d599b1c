// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A lookout is what one replica remembers of its looks. All times but written are of its own
// clock and have the monotonic reading: a step of the clock settles nothing, and a suspended
// machine has not looked.
type lookout struct {
	version string // of the Secret that was decoded last
	state   *state
	err     error

	looks   map[string]glance      // the last look at each place, by its name
	since   map[sighting]time.Time // when a CA was first seen in a place, and at every look since
	trusted map[string]error       // what a target said of the certificate, when it could be read last
	trouble error                  // which of them do not trust it
	ready   bool                   // the replica was ready once
	told    string                 // the error that was logged last
	ahead   time.Duration          // by how much this clock was, as it was told last
	overdue bool                   // see follow
	far     steady                 // the clocks differ by too much
	differs steady                 // they differ by so much that it is told
	// clocksDiffer says that the log was told so, or that it is an error.
	clocksDiffer bool
}

// A sighting is a CA in a place: a target, or the Secret, which is the place without a name.
type sighting struct{ ca, place string }

// A glance is what tells whether a place may have been different between two looks.
type glance struct {
	at      time.Time
	version string
	written time.Time // by the server's clock
}

// follows tells whether what is there at both looks was there all the time: nothing was changed,
// or at least not the caBundle by one of us, as after a loss, and the time between is short.
func (g glance) follows(before glance, began time.Time, patience time.Duration) bool {
	return g.version == before.version || g.written.Equal(before.written) && began.Sub(before.at) <= patience
}

// decode reads the Secret, if it is another than the last time.
func (l *lookout) decode(s kube.Secret) (*state, error) {
	if s.Version == "" || s.Version != l.version {
		l.state, l.err = decodeState(s.Data)
		l.version = s.Version
	}
	return l.state, l.err
}

// observe remembers where the CAs of the Secret were seen in this turn. What could not be read
// stays as it was.
func (l *lookout) observe(seen *state, t *turn, patience time.Duration) {
	if l.looks == nil {
		l.looks, l.since = map[string]glance{}, map[sighting]time.Time{}
	}
	if seen != nil {
		l.look("", glance{at: t.looked, version: t.stored.Version}, t, patience, seen.trusted())
	}
	for i := range t.targets {
		o := &t.targets[i]
		if o.err == nil {
			var there []*x509.Certificate
			if seen != nil {
				there = slices.DeleteFunc(seen.trusted(), func(c *x509.Certificate) bool { return !o.trusts(c) })
			}
			l.look(o.target.String(), glance{t.looked, o.Version, o.Written}, t, patience, there)
		}
	}
}

// look notes what is in a place now.
func (l *lookout) look(place string, g glance, t *turn, patience time.Duration, there []*x509.Certificate) {
	before, known := l.looks[place]
	l.looks[place] = g
	first := map[sighting]time.Time{}
	for _, c := range there {
		s := sighting{fingerprint(c), place}
		first[s] = t.looked
		if at, seen := l.since[s]; seen && known && g.follows(before, t.began, patience) {
			first[s] = at
		}
	}
	maps.DeleteFunc(l.since, func(s sighting, _ time.Time) bool { return s.place == place })
	maps.Copy(l.since, first)
}

// settled tells whether this replica has seen a CA, at every look and for long enough, in the
// Secret and in every target of ours that calls somebody. Each replica finds out for itself, about its
// own targets: one that dies has another one begin again, and no clocks are compared. A target
// that cannot be read now may lack it.
func (l *lookout) settled(a *authority, t *turn, settle time.Duration) bool {
	if a == nil {
		return false
	}
	long := func(place string) bool {
		first, there := l.since[sighting{a.id(), place}]
		return there && t.began.Sub(first) >= settle
	}
	return long("") && !slices.ContainsFunc(t.targets, func(o observation) bool {
		return !o.isIgnored() && (o.err != nil || !long(o.target.String()))
	})
}

// settlesAt is when everything that was seen will have settled if nothing happens.
func (l *lookout) settlesAt(settle time.Duration) time.Time {
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

// inARow is how many looks it takes to change what is thought of the clocks: where there are several
// API servers, one of them may be wrong, or asked about nothing but now and then.
const inARow = 3

// A steady is what was found at several looks in a row, or at the first.
type steady struct {
	known, is bool
	against   int // looks that say otherwise
}

// look tells whether a look agrees with what is thought after it.
func (s *steady) look(found bool) (agrees bool) {
	switch {
	case found == s.is && s.known:
		s.against = 0
	case !s.known || s.against+1 >= inARow:
		*s = steady{known: true, is: found}
	default:
		s.against++
	}
	return found == s.is
}
