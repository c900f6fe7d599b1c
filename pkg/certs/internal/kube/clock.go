// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"time"
)

// A clockComparer compares this machine's clock with the API server's, using the Date header of
// each response.
type clockComparer struct {
	next  http.RoundTripper
	clock func() time.Time
	ahead func(time.Duration)
}

func (c *clockComparer) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := c.clock()
	answer, err := c.next.RoundTrip(r)
	if err != nil || answer.StatusCode >= http.StatusInternalServerError { // a proxy may have sent the response
		return answer, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		c.ahead(clockAhead(sent, c.clock(), date))
	}
	return answer, nil
}

// clockAhead returns the least difference by which this machine's clock is ahead of another clock. It
// is negative if this clock is behind, and zero if the two may agree. The other clock showed date, in
// whole seconds, at some time between sent and received.
func clockAhead(sent, received, date time.Time) time.Duration {
	if least := sent.Sub(date.Add(time.Second)); least > 0 {
		return least
	}
	return min(received.Sub(date), 0)
}
