// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"errors"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A turn is one pass of reconciliation. The order matters: targets are read before the Secret, and
// written only if they have not changed since. So a turn never writes a caBundle that is older than
// the one it replaces.
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

// waits returns why nothing may be written in this turn, or nil.
func (t *turn) waits() error {
	if t.differ == nil && t.follows {
		return errors.New("this replica waits for the elected one to make it")
	}
	return t.differ
}

// validity returns the validity, without the skew, of a certificate created in this turn. Its
// lifetime counts from when this replica read that its CA signs: see endOfTrust.
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
