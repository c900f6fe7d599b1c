// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"time"
)

// A clockComparer compares this machine's clock with that of the API server, by the Date that each
// answer has.
type clockComparer struct {
	next  http.RoundTripper
	clock func() time.Time
	ahead func(time.Duration)
}

func (c *clockComparer) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := c.clock()
	answer, err := c.next.RoundTrip(r)
	if err != nil || answer.StatusCode >= http.StatusInternalServerError { // those may be of something in between
		return answer, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		c.ahead(clockAhead(sent, c.clock(), date))
	}
	return answer, nil
}

// clockAhead returns by how much a clock is ahead of another one at least, negative when it is behind,
// if that other one said date, in whole seconds, some time between the two. Zero when they may
// agree.
func clockAhead(sent, received, date time.Time) time.Duration {
	if least := sent.Sub(date.Add(time.Second)); least > 0 {
		return least
	}
	return min(received.Sub(date), 0)
}
