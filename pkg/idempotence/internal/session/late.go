// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// patience limits how long a run waits for a webhook that does not respond to some requests. If the run waited for each
// of them until the timeout, as the API server does, its budget would end before it has tried other objects.
type patience struct {
	late    map[objects.Digest]*Answer // answers to requests without a response in time, by the digest of the request
	slowest time.Duration              // of all responses
}

const (
	// fullyAwaited is the number of requests that are awaited until the webhook's timeout.
	fullyAwaited = 3
	// leastPatience is the minimum time that later requests are awaited, unless the timeout is shorter.
	leastPatience = time.Second
	// slowestTimes is n if later requests are awaited n times as long as the slowest response took.
	slowestTimes = 10
)

// of returns how long a request is awaited.
func (p *patience) of(w *Webhook) time.Duration {
	if p == nil || len(p.late) < fullyAwaited {
		return w.Timeout()
	}
	return min(w.Timeout(), max(leastPatience, slowestTimes*p.slowest))
}

// known returns the answer to an equal earlier request that got no response in time, so that the request need not be
// sent again. Without such an answer it returns nil.
func (p *patience) known(w *Webhook, q *Query) *Answer {
	if p == nil || len(p.late) == 0 {
		return nil
	}
	a := p.late[keyOf(w, q)]
	if a == nil {
		return nil
	}
	again := *a
	return &again
}

// note records how long the webhook took to respond, or that it did not.
func (p *patience) note(ctx context.Context, w *Webhook, q *Query, a *Answer, took time.Duration) {
	switch {
	case p == nil || ctx.Err() != nil:
	case a.Exchange.Late:
		kept := *a
		p.late[keyOf(w, q)] = &kept
	default:
		p.slowest = max(p.slowest, took)
	}
}

func keyOf(w *Webhook, q *Query) objects.Digest {
	return objects.DigestOf(append([]byte(w.Name+" "+string(q.Operation)+" "), q.sent()...))
}
