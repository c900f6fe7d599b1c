// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"errors"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A turn is one look at everything. The order matters: targets are read before the Secret, and
// written only if they have not changed since. So what is written into a caBundle is never
// older than what was there.
type turn struct {
	began, looked time.Time // before and after the targets were read, with the monotonic reading
	targets       []observation
	stored        kube.Secret
	readAt        time.Time // before the Secret was read
	now           time.Time
	ahead         time.Duration // by how much this clock is, see cluster
	differ        error         // if that is too much
	follows       bool          // another replica is elected, or none yet
	judged        time.Time     // by this clock, or the API server's if they differ too much
}

// waits is why nothing may be written in this turn.
func (t *turn) waits() error {
	if t.differ == nil && t.follows {
		return errors.New("this replica waits for the elected one to make it")
	}
	return t.differ
}

// validity returns from when, less the skew, and until when a certificate is valid that is made in
// this turn. See endOfTrust: its lifetime counts from the moment at which its CA was known to sign.
func (t *turn) validity(lifetime time.Duration) (from, until time.Time) {
	from, until = t.now, t.readAt.Add(lifetime)
	if t.judged.Before(from) {
		from = t.judged
	}
	if other := t.judged.Add(lifetime); t.differ != nil && other.After(until) {
		until = other
	}
	return from, until
}
