// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// sparingly is a memory of when something was logged that may happen at any rate.
type sparingly struct {
	mu     sync.Mutex
	last   time.Time
	others int // since then
}

const sparingInterval = time.Minute

// log logs an error at most once in a while, and otherwise at V(1).
func (s *sparingly) log(log logr.Logger, err error, message string, values ...any) {
	now := time.Now()
	s.mu.Lock()
	due := s.last.IsZero() || now.Sub(s.last) >= sparingInterval
	others := s.others
	if due {
		s.last, s.others = now, 0
	} else {
		s.others++
	}
	s.mu.Unlock()
	if due {
		log.Error(err, message+"; more of the kind within a minute are logged at V(1)", append(values, "moreBefore", others)...)
		return
	}
	log.V(1).Info(message, append(values, "reason", err.Error())...)
}
