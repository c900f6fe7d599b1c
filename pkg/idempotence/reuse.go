// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// A call of a server takes a while, and several laws look at what becomes of the same object: F(x), and F of that.
// Of a server there are no fresh instances, so that the same request would go to the same place once more.
// What the same request comes to is the matter of L3, for which nothing is reused.

// reusing are the laws that take what an earlier case of one of them was answered.
var reusing = []Law{L1, L2, L5, L10}

// mostReused bounds how many outcomes are kept: those of an object come one after the other.
const mostReused = 16

// reuse is what servers answered to earlier cases, and to the case that is looked at, which makes its own calls.
type reuse struct{ earlier, now map[objects.Digest]*outcome }

// reusable is the key of a request that may have been made before, or that may be made again.
func (r *run) reusable(q query) (key objects.Digest, ok bool) {
	if r.unshared || !slices.Contains(reusing, r.law) || r.kind.Old != nil ||
		q.object == nil || q.old != nil || q.raw != nil || q.dryRun || q.version != "" || q.operation != r.operation ||
		slices.ContainsFunc(r.subject.webhooks, func(w *webhook) bool { return w.inProcess }) {
		return key, false
	}
	return objects.DigestOf(q.object.Raw), true
}

// keep has later cases find what the one that is done was answered.
func (u *reuse) keep() {
	if len(u.earlier)+len(u.now) > mostReused {
		u.earlier = nil
	}
	if u.earlier == nil {
		u.earlier = map[objects.Digest]*outcome{}
	}
	for key, out := range u.now {
		u.earlier[key] = out
	}
	u.now = map[objects.Digest]*outcome{}
}
