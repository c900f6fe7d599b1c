// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// A clock is that of the API server, which verifies certificates. The clock of this machine may be wrong. The zero value
// is the clock of this machine.
type clock struct{ ahead time.Duration }

// mostSkew is the difference below which both clocks count as equal. The API server sends whole seconds.
const mostSkew = time.Minute

// observe returns a configuration whose answers set the clock.
func (c *clock) observe(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil {
				c.set(answer.Header.Get("Date"))
			}
			return answer, err
		})
	})
	return config
}

func (c *clock) set(date string) {
	at, err := http.ParseTime(date)
	if err != nil {
		return // a proxy may have removed it
	}
	if ahead := time.Until(at); ahead.Abs() > mostSkew {
		c.ahead = ahead
	}
}

func (c *clock) now() time.Time { return time.Now().Add(c.ahead) }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
