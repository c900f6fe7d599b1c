// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// Several laws need the same results, F(x) and F(F(x)). Laws whose calls reach the same instance reuse the responses of
// each other's cases: those that any instance can decide, and for a server, which has no fresh instances, also laws that
// would otherwise use new ones. L3 checks that equal requests get equal results, so it reuses nothing.
var (
	reusing         = []Law{L2, L10}
	reusingOnServer = []Law{L1, L2, L5, L10}
)

// mostReused bounds the number of cached results. Few are enough, because the cases of one object follow each other.
const mostReused = 16

// reuse caches the results of earlier cases, and separately those of the current case, which makes its own calls.
type reuse struct {
	earlier, now map[objects.Digest]*session.Outcome
}

// reusable returns the cache key of a request, or false if its result must not be reused.
func (t *Trial) reusable(q session.Query) (key objects.Digest, ok bool) {
	among := reusingOnServer
	if slices.ContainsFunc(t.Webhooks, func(w *session.Webhook) bool { return w.InProcess }) {
		among = reusing
	}
	if t.Unshared || t.User != nil || q.Nameless || !slices.Contains(among, t.law) || t.Kind.Old != nil ||
		q.Object == nil || q.Old != nil || q.Raw != nil || q.DryRun || q.Version != "" || q.Operation != t.Operation {
		return key, false
	}
	return objects.DigestOf(q.Object.Raw), true
}

// keep adds the results of the last case to the cache. If the cache is full, it is emptied first.
func (u *reuse) keep() {
	if len(u.earlier)+len(u.now) > mostReused {
		u.earlier = nil
	}
	if u.earlier == nil {
		u.earlier = map[objects.Digest]*session.Outcome{}
	}
	for key, out := range u.now {
		u.earlier[key] = out
	}
	u.now = map[objects.Digest]*session.Outcome{}
}
