// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	reviews "github.com/admitkit/admitkit/pkg/review"
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
	}, func(context.Context, *reviews.Request) (*reviews.Decision, error) { return reviews.Allow(), nil })
	for _, c := range slices.Concat(controllers(), withoutOriginals()) {
		t.Run(c.name, func(t *testing.T) {
			g := &generator{Rand: rand.New(rand.NewPCG(*seed, 7)), namespaces: namespaces(*seed)}
			variants := c.start(t, g.namespaces)
			var own, of cost
			for i := 0; i < 100*costRequests && own.calls < costRequests; i++ {
				r, v := c.generate(g), variants[i%len(variants)]
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
			row.time = fmt.Sprintf("%.1f", own.perCall()-of.perCall())
			row.allocations = fmt.Sprintf("%.1f", (own.allocations-of.allocations)/float64(own.calls))
			t.Logf("%s: %s µs and %s allocations more than an empty hook, which takes %.1f µs and allocates %.0f times",
				c.name, row.time, row.allocations, of.perCall(), of.allocations/float64(of.calls))
		})
	}
}

// A cost is the sum of what requests cost.
type cost struct {
	calls       int
	time        time.Duration // of the fastest call with each request: others measure what else the machine does
	allocations float64
}

func (c *cost) add(ctx context.Context, hook *webhook.Hook, body []byte) {
	c.allocations += testing.AllocsPerRun(costCalls, func() { post(ctx, hook, body) })
	fastest := tooSlow
	for range costCalls {
		start := time.Now()
		post(ctx, hook, body)
		fastest = min(fastest, time.Since(start))
	}
	c.time += fastest
	c.calls++
}

// perCall returns the mean time of a call in µs.
func (c *cost) perCall() float64 { return float64(c.time.Nanoseconds()) / 1000 / float64(c.calls) }
