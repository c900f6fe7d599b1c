// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A history is what one replica remembers between two reconciliations. All times except snapshot.written are from its own
// clock, with the monotonic reading. So neither a clock step nor a suspended machine counts towards Options.Settle, the
// time for which a new CA must be in every caBundle before it signs.
type history struct {
	version string // of the Secret that was decoded last
	state   *state
	err     error

	snapshots map[string]snapshot      // the last snapshot of each place, by its name
	since     map[caSighting]time.Time // since when every snapshot of a place has had the CA
	trusted   map[string]error         // whether each target trusts the certificate, as of its last read; nil means yes
	untrusted error                    // names the targets that do not trust the certificate
	ready     bool                     // the replica was ready once
	logged    string                   // the error that was logged last
	ahead     time.Duration            // how far this clock was ahead, as the last error about the clocks says
	overdue   bool                     // see follow
	far       debounced                // the clocks differ by more than ClockSkew
	differs   debounced                // the clocks differ by more than logDifference
	// clocksDiffer is the value of differs when logClock last ran.
	clocksDiffer bool
}

// A caSighting is a CA that was found in a place: the String of a target, or "" for the Secret.
type caSighting struct{ ca, place string }

// A snapshot identifies the version of a target or the Secret, to detect changes between two turns.
type snapshot struct {
	at      time.Time
	version string
	written time.Time // from the server's clock
}

// follows reports whether a CA that is in both snapshots was also there all the time between them. before is the
// earlier snapshot. This is so if the object was not written. It is assumed if no source wrote the caBundle, and the
// time from the earlier snapshot until began is at most patience.
func (g snapshot) follows(before snapshot, began time.Time, patience time.Duration) bool {
	return g.version == before.version || g.written.Equal(before.written) && began.Sub(before.at) <= patience
}

// decode decodes the Secret, unless it is the one that was decoded last.
func (l *history) decode(s kube.Secret) (*state, error) {
	if s.Version == "" || s.Version != l.version {
		l.state, l.err = decodeState(s.Data)
		l.version = s.Version
	}
	return l.state, l.err
}

// observe records where this turn found each CA of the Secret: in the Secret itself and in the targets. The record of a
// target that could not be read stays.
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

// record replaces the records about one place. A CA that stayed in this place keeps its time in since.
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

// settled reports whether this replica has found a CA for long enough in the Secret and in each of its targets with a
// webhook. Each replica decides that for its own targets with its own clock, so no clocks are compared. A CA has not
// settled if one of the targets cannot be read now, because the CA may be missing there.
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

// settlesAt returns when all known CAs will have settled if nothing changes.
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

// confirmations is the number of consecutive updates that change a debounced value. One update is not
// enough, because one of several API servers may have a wrong clock.
const confirmations = 3

// A debounced value changes only after several equal updates in a row. The first update sets it at once.
type debounced struct {
	known, is bool
	against   int // updates in a row with the other value
}

// update takes a new value. It reports whether the debounced value is equal to it afterwards.
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
