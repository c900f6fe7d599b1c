// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	originalaccount "k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
)

// TestOtherRequests sends to each controller requests that were generated for the others, some of them from a node: a
// hook must not act on a resource, a subresource or an operation that its original leaves alone.
func TestOtherRequests(t *testing.T) {
	for _, c := range controllers() {
		t.Run(c.name, func(t *testing.T) {
			if c.timed || c.name == originalaccount.PluginName { // which waits for missing ServiceAccounts
				synctest.Test(t, func(t *testing.T) { compareOthers(t, c) })
				return
			}
			compareOthers(t, c)
		})
	}
}

// otherRequests is the number of requests for each other controller.
const otherRequests = 30

func compareOthers(t *testing.T, c *controller) {
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 4)), namespaces: namespaces(*seed)}
	count := &tally{}
	variants := c.start(t, g.namespaces)
	for _, other := range controllers() {
		for i := range otherRequests {
			r := *other.generate(g)
			if r.user == nil && g.oneIn(3) {
				r.user = pick(g, nodeUsers...)
			}
			name := fmt.Sprintf("go test -seed %d: request %d for %s", *seed, i, other.name)
			for _, mutating := range []bool{true, false} {
				compare(t, c, variants[i%len(variants)], r.encoded(t), mutating, name, count)
			}
		}
	}
	t.Logf("%d/%d results equal; the original changed %d, denied %d, failed %d", count.equal, count.total, count.changed, count.denied, count.failed)
}
