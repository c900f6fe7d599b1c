// SPDX-License-Identifier: Apache-2.0

package webhook

import "time"

// stalled returns a connection that is busy without a call, or when to look again. All have to be
// looked at: if that was in vain, not at once again.
func (all *connections) stalled() (*connection, time.Duration) {
	const pause = patience / 10
	if since := time.Since(all.looked); since < pause {
		return nil, pause - since
	}
	wait := time.Hour
	for c := range all.open {
		if !c.busy || c.dismissed.Load() || c.calls.Load() > 0 {
			continue
		}
		most := patience
		if c.kept.Load() {
			most = patienceKept
		}
		young := most - min(time.Since(c.began), time.Since(c.born)-time.Duration(c.left.Load()))
		if young <= 0 {
			return c, 0
		}
		wait = min(wait, young)
	}
	all.looked = time.Now()
	return nil, wait
}

// hold counts a call, of which release is the end.
func (c *connection) hold() {
	if c != nil {
		c.calls.Add(1)
		if !c.called.Load() {
			c.called.Store(true)
		}
	}
}

func (c *connection) release() {
	if c != nil {
		c.left.Store(int64(time.Since(c.born)))
		c.calls.Add(-1)
	}
}
