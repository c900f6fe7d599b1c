// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// P19: webhooks with side effects in dry runs, or with another response to a dry run.

func sideEffectPatterns() []Case {
	return []Case{
		writes("P19 side effect in a dry run", func(*review.Request) bool { return true }).breaks("L7"),
		noneOnDryRun(onPods("P19 no patch in a dry run", func(r *review.Request, p *corev1.Pod) error {
			if r.DryRun {
				return nil
			}
			return tokenMounted(r, p)
		})).breaks("L7"),
		allocates("P19 a dry run takes a number", false).breaks("L7", "L3"),
	}
}

func sideEffectLookalikes() []Case {
	return []Case{
		writes("P19 guarded write", func(r *review.Request) bool { return !r.DryRun }),
		allocates("P19 a dry run takes no number", true).
			except("/metadata/annotations/agent~1number", "", "an allocator gives the numbers"),
	}
}

// noneOnDryRun declares sideEffects NoneOnDryRun, so that the API server calls the webhook for dry runs.
func noneOnDryRun(c Case) Case {
	c.Webhook.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun)
	return c
}

// secrets counts how often each Secret was written. It replaces the Secrets of a cluster.
type secrets struct {
	mu     sync.Mutex
	writes map[string]int
}

func (s *secrets) write(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes[name]++
}

func (s *secrets) snapshot() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.writes)
}

// writes returns a case of a handler that mounts a Secret. If when returns true for a request, it also stores the
// Secret. If when ignores dryRun, the handler breaks a law.
func writes(name string, when func(r *review.Request) bool) Case {
	stored := &secrets{writes: map[string]int{}}
	c := noneOnDryRun(onPods(name, func(r *review.Request, p *corev1.Pod) error {
		if when(r) {
			stored.write(r.Namespace + "/agent-token")
		}
		return tokenMounted(r, p)
	}))
	c.Observe = stored.snapshot
	return c
}

// allocates returns a case of a handler that gives each object the next number. If guarded is true, a dry run shows the
// next number but does not take it.
func allocates(name string, guarded bool) Case {
	return noneOnDryRun(podCase(name, func() http.Handler {
		var last atomic.Int64
		return pods(func(r *review.Request, p *corev1.Pod) error {
			if _, ok := p.Annotations["agent/number"]; ok {
				return nil
			}
			n := last.Load() + 1
			if !r.DryRun || !guarded {
				n = last.Add(1)
			}
			annotate(p, "agent/number", strconv.FormatInt(n, 10))
			return nil
		})
	}))
}
