// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	costRequests = 40 // of each controller
	costCalls    = 25 // with each request
	// tooSlow is the time of calls that are not measured, such as those that wait for an object.
	tooSlow = 50 * time.Millisecond
)

// TestCosts measures how much longer the calls of each hook take than those of an empty hook, and how often they allocate
// memory. The empty hook admits each request and decodes no object. The requests are random, so a part of them
// is denied, and a part is read from a fake API server.
func TestCosts(t *testing.T) {
	empty := webhook.ValidatingRaw(admissionregistrationv1.ValidatingWebhook{
		Name: "empty.example.com", Rules: webhook.Rules(webhook.OnEverything()),
	}, func(context.Context, *review.Request) (*review.Decision, error) { return review.Allow(), nil })
	for _, c := range controllers() {
		t.Run(c.name, func(t *testing.T) {
			g := &generator{Rand: rand.New(rand.NewPCG(*seed, 7)), namespaces: namespaces(*seed)}
			v := c.start(t, g.namespaces)[0]
			var own, of cost
			for i := 0; i < 100*costRequests && own.calls < costRequests; i++ {
				r := c.generate(g)
				r = r.encoded(t)
				for _, hook := range v.hooks {
					if !matches(t, hook, r) {
						continue
					}
					body := r.review(t)
					start := time.Now()
					if post(t.Context(), hook, body); time.Since(start) > tooSlow {
						continue
					}
					own.add(t.Context(), hook, body)
					of.add(t.Context(), empty, body)
				}
			}
			if own.calls == 0 {
				t.Fatal("no request matches")
			}
			row := rowOf(c)
			row.time = fmt.Sprintf("%.0f", max(own.perCall()-of.perCall(), 0))
			row.allocations = fmt.Sprintf("%.0f", (own.allocations-of.allocations)/float64(own.calls))
			t.Logf("%s: %s µs and %s allocations more than an empty hook, which takes %.0f µs and allocates %.0f times",
				c.name, row.time, row.allocations, of.perCall(), of.allocations/float64(of.calls))
		})
	}
}

// A cost is the sum of what requests cost.
type cost struct {
	calls       int
	time        time.Duration // of one call with each request
	allocations float64
}

func (c *cost) add(ctx context.Context, hook *webhook.Hook, body []byte) {
	start := time.Now()
	c.allocations += testing.AllocsPerRun(costCalls, func() { post(ctx, hook, body) }) // calls it once more
	c.time += time.Since(start) / (costCalls + 1)
	c.calls++
}

// perCall returns the mean time of a call in µs.
func (c *cost) perCall() float64 { return float64(c.time.Microseconds()) / float64(c.calls) }
