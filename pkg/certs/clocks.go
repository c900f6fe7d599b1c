// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"time"
)

// How clocks are compared. The API server judges certificates by its own clock. As long as the
// two differ by less than ClockSkew, certificates have room for that, and nothing is done. Beyond
// it nobody knows which one is wrong. So nothing is written, since a step that is taken by a wrong
// clock, such as the end of the trust in a CA, hits all replicas; and what this replica serves is
// made to be valid by both.

// tellDifference is from where on a difference of clocks is logged.
const tellDifference = time.Minute

// differBy says by how much the clocks differ.
func differBy(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("this machine's clock is %s behind the API server's", -ahead)
	}
	return fmt.Sprintf("this machine's clock is %s ahead of the API server's", ahead)
}

// setTimes is called once all was read. It tells whether this turn may go on: not if the API server
// that answered says otherwise of the clocks than those before, since one of the two is wrong.
func (s *SelfManaged) setTimes(t *turn) bool {
	t.now, t.ahead = s.clock(), s.cluster.Ahead()
	t.judged, t.differ = t.now, nil
	s.look.differs.look(t.ahead.Abs() > tellDifference)
	far := s.policy.tooFar(t.ahead)
	if agrees := s.look.far.look(far); !agrees || !far {
		return agrees
	}
	t.judged = t.now.Add(-t.ahead)
	if (t.ahead-s.look.ahead).Abs() > tellDifference/2 || !s.policy.tooFar(s.look.ahead) { // else the log would tell of each second
		s.look.ahead = t.ahead.Truncate(time.Second)
	}
	t.differ = fmt.Errorf("%s, and ClockSkew is %s: set the clock right; until then this replica changes neither the Secret nor a caBundle",
		differBy(s.look.ahead), s.policy.skew)
	return true
}

// tellClock logs that the clocks differ, when that begins and ends. A difference that keeps this
// replica from its work is an error of the turn.
func (s *SelfManaged) tellClock(t *turn) {
	s.status.ClockAhead = t.ahead
	differ := s.look.differs.is
	switch {
	case differ && !s.look.clocksDiffer && t.differ == nil:
		s.log.Info(differBy(t.ahead.Truncate(time.Second))+": there is room for that, and not for much more", "clockSkew", s.o.ClockSkew.String())
	case !differ && s.look.clocksDiffer:
		s.log.Info("this machine's clock and the API server's agree again")
	}
	s.look.clocksDiffer = differ
}
