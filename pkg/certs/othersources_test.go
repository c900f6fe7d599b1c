// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A source keeps the CAs of other sources, up to a limit. A CA with the name of another source must
// also have a plausible lifetime.
func TestOtherSourceCAs(t *testing.T) {
	guest := func(t *testing.T, number int, begins, life time.Duration) []byte {
		t.Helper()
		a, err := newAuthority(fmt.Sprintf("%shooks/ca-%d", authorityName, number), ECDSAP256, time.Now().Add(begins), life, 0)
		if err != nil {
			t.Fatal(err)
		}
		return encodeCertificate(a.cert)
	}
	rows := []struct {
		why          string
		begins, life time.Duration
		stays        bool
	}{
		{"one like ours", 0, 365 * day, true},
		{"a longer one", -300 * day, 700 * day, true},
		{"one that its name alone would make trusted for long", 0, 3650 * day, false},
		{"one that begins later", 300 * day, 365 * day, false},
	}
	for _, row := range rows {
		inBubble(t, row.why, func(t *testing.T, f *fakeCluster) {
			theirs := guest(t, 0, row.begins, row.life)
			f.createTarget(webhooks, theirs)
			r := startReplica(t, slowOptions(), f)
			defer r.stop(t)
			there := func() bool {
				return slices.ContainsFunc(parseBundle(f.bundleAt(webhooks, time.Now())), parseBundle(theirs)[0].Equal)
			}
			if settleSlowly(); !there() {
				t.Error("it was removed at once")
			}
			if elapse(10 * day); there() != row.stays {
				t.Errorf("after 10 days it is there: %t", there())
			}
			watchCalls(t, f, webhooks, 0, day, r)
		})
	}
	inBubble(t, "too many", func(t *testing.T, f *fakeCluster) {
		var all []byte
		for n := range maxForeign + 1 {
			all = append(all, guest(t, n, 0, 365*day)...)
		}
		f.createTarget(webhooks, all)
		r := startReplica(t, slowOptions(), f)
		defer r.stop(t)
		settleSlowly()
		if st := r.Status(); st.Err == nil || !strings.Contains(st.Err.Error(), "its caBundle has 33 certificates from other sources") || st.NotReady == nil {
			t.Errorf("status: %+v", st)
		}
		f.createTarget(webhooks, all[len(all)/2:])
		settleSlowly()
		if st := r.Status(); st.Err != nil || st.NotReady != nil || r.call(f.bundleAt(webhooks, time.Now())) != nil {
			t.Errorf("with less of them: %+v", st)
		}
	})
}
