// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"time"
)

// The API server verifies certificates by its own clock. Certificates tolerate a difference of up to
// ClockSkew. With a larger difference a replica cannot know which clock is wrong. It then writes
// nothing, since a step at the wrong time, such as the end of the trust in a CA, affects all
// replicas. It serves a certificate that is valid by both clocks.

// logDifference is the least difference of clocks that is logged.
const logDifference = time.Minute

// clockDifference describes the difference of the clocks.
func clockDifference(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("this machine's clock is %s behind the API server's", -ahead)
	}
	return fmt.Sprintf("this machine's clock is %s ahead of the API server's", ahead)
}

// setTimes sets the times of a turn after everything was read. It reports whether the turn may go on.
// It may not if this API server's clock disagrees with that of earlier responses: one of them is wrong.
func (s *SelfManaged) setTimes(t *turn) bool {
	t.now, t.ahead = s.clock(), s.cluster.Ahead()
	t.judged, t.differ = t.now, nil
	s.seen.differs.update(t.ahead.Abs() > logDifference)
	far := s.policy.exceedsSkew(t.ahead)
	if agrees := s.seen.far.update(far); !agrees || !far {
		return agrees
	}
	t.judged = t.now.Add(-t.ahead)
	if (t.ahead-s.seen.ahead).Abs() > logDifference/2 || !s.policy.exceedsSkew(s.seen.ahead) { // else the log would tell of each second
		s.seen.ahead = t.ahead.Truncate(time.Second)
	}
	t.differ = fmt.Errorf("%s, and ClockSkew is %s: set the clock right; until then this replica changes neither the Secret nor a caBundle",
		clockDifference(s.seen.ahead), s.policy.skew)
	return true
}

// logClock logs when the clocks begin and cease to differ. A difference beyond ClockSkew is an error
// of the turn instead.
func (s *SelfManaged) logClock(t *turn) {
	s.status.ClockAhead = t.ahead
	differ := s.seen.differs.is
	switch {
	case differ && !s.seen.clocksDiffer && t.differ == nil:
		s.log.Info(clockDifference(t.ahead.Truncate(time.Second))+": there is room for that, and not for much more", "clockSkew", s.o.ClockSkew.String())
	case !differ && s.seen.clocksDiffer:
		s.log.Info("this machine's clock and the API server's agree again")
	}
	s.seen.clocksDiffer = differ
}
