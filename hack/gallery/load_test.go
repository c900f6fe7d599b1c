// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/examples/gallery/podnodeselector"
	"github.com/admitkit/admitkit/pkg/webhook"
)

var (
	loadTime = flag.Duration("load", 2*time.Second, "how long TestLoad offers Pods")
	loadRate = flag.Int("pods", 1000, "number of Pods that TestLoad offers per second")
)

const (
	cachedNamespaces = 10_000
	loadPods         = 500 // different Pods
	loadWorkers      = 64  // concurrent Pods
)

// A hookCall is one call of a hook with its expected answer.
type hookCall struct {
	controller string
	hook       *webhook.Hook
	body       []byte
	want       string
}

// TestLoad offers Pods at a fixed rate to all hooks of the gallery, with 10,000 Namespaces in the cache. Each answer
// must be the one that the hook gave without load. The log contains the latencies, measured from the time when a Pod is
// due.
func TestLoad(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 6)), namespaces: manyNamespaces()}
	before := heap()
	chain := together(t, g, slices.Concat(controllers(), withoutOriginals()))
	t.Logf("the caches and hooks take %d MiB with %d Namespaces", (heap()-before)>>20, len(g.namespaces))
	pods := expected(t, g, chain)
	podTimes, callTimes, wrong := offer(t, pods)
	slices.Sort(podTimes)
	t.Logf("%d Pods, %d per second: p50 %v, p99 %v, longest %v; heap %d MiB", len(podTimes), *loadRate, percentile(podTimes, 50), percentile(podTimes, 99), percentile(podTimes, 100), heap()>>20)
	for _, m := range chain {
		if times := callTimes[m.name]; len(times) > 0 {
			slices.Sort(times)
			rowOf(m.controller).call = percentile(times, 50).Round(time.Microsecond).String()
			t.Logf("%s: %d calls: p50 %v, p99 %v", m.name, len(times), percentile(times, 50), percentile(times, 99))
		}
	}
	if wrong > 0 {
		t.Errorf("%d answers differ from those without load", wrong)
	}
}

// manyNamespaces returns cachedNamespaces Namespaces, some with a node selector.
func manyNamespaces() []*corev1.Namespace {
	list := namespaces(*seed)
	for i := len(list); i < cachedNamespaces; i++ {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i), Labels: map[string]string{"kubernetes.io/metadata.name": fmt.Sprintf("team-%d", i)}}}
		if i%3 == 0 {
			ns.Annotations = map[string]string{podnodeselector.Annotation: "env=test"}
		}
		list = append(list, ns)
	}
	return list
}

// expected returns the calls for each Pod, up to the one that denies it.
func expected(t *testing.T, g *generator, chain []member) [][]hookCall {
	t.Helper()
	var pods [][]hookCall
	for len(pods) < loadPods {
		r := g.podRequest()
		if r.resource.Resource != "pods" || r.subresource != "" || r.operation != "CREATE" {
			continue
		}
		r.makeValid()
		var calls []hookCall
		admit(t, chain, r, func(m member, r *request, mutating bool) result {
			got := result{verdict: allowed, object: r.object}
			for _, hook := range m.variant.hooks {
				if hook.Mutating() != mutating || !matches(t, hook, r) {
					continue
				}
				body := r.review(t)
				answered := post(t.Context(), hook, body)
				calls = append(calls, hookCall{m.name, hook, body, answered.Body.String()})
				if got = r.resultFrom(t, answered); got.verdict != allowed {
					break
				}
			}
			return got
		})
		pods = append(pods, calls)
	}
	return pods
}

// offer sends the Pods at the rate loadRate until loadTime is over. It returns the latencies of Pods, those of calls by
// controller, and the number of wrong answers.
func offer(t *testing.T, pods [][]hookCall) (podTimes []time.Duration, callTimes map[string][]time.Duration, wrong int64) {
	t.Helper()
	total := int(loadTime.Seconds() * float64(*loadRate))
	var (
		lock  sync.Mutex
		group sync.WaitGroup
	)
	callTimes = map[string][]time.Duration{}
	due := schedule(total)
	for range loadWorkers {
		group.Go(func() {
			var own []time.Duration
			ownCalls, ownWrong := map[string][]time.Duration{}, int64(0)
			for next := range due {
				ownWrong += send(t.Context(), pods[next.number%len(pods)], ownCalls)
				own = append(own, time.Since(next.at))
			}
			lock.Lock()
			defer lock.Unlock()
			podTimes, wrong = append(podTimes, own...), wrong+ownWrong
			for name, times := range ownCalls {
				callTimes[name] = append(callTimes[name], times...)
			}
		})
	}
	group.Wait()
	return podTimes, callTimes, wrong
}

// A turn is the number of a Pod and the time when it is due.
type turn struct {
	number int
	at     time.Time
}

// schedule returns a channel with room for all turns. It sends each turn when it is due, even if earlier ones have not
// been received.
func schedule(total int) <-chan turn {
	due := make(chan turn, total)
	go func() {
		defer close(due)
		start, ticker := time.Now(), time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for number := 0; number < total; {
			now := <-ticker.C
			for ; number < total; number++ {
				at := start.Add(time.Duration(number) * time.Second / time.Duration(*loadRate))
				if at.After(now) {
					break
				}
				due <- turn{number, at}
			}
		}
	}()
	return due
}

// send makes the calls for one Pod, and returns the number of wrong answers.
func send(ctx context.Context, calls []hookCall, times map[string][]time.Duration) (wrong int64) {
	for _, c := range calls {
		start := time.Now()
		if post(ctx, c.hook, c.body).Body.String() != c.want {
			wrong++
		}
		times[c.controller] = append(times[c.controller], time.Since(start))
	}
	return wrong
}

// heap returns the size of all live objects.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// percentile returns a percentile of sorted durations, or zero if there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*p/100, cmp.Or(len(sorted), 1)-1)]
}
