// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// P17, P22 and P23: webhooks whose responses depend on something outside the request.

func nondeterministicPatterns() []Case {
	return []Case{
		onPods("P17 map iteration decides list order", mapOrder).breaks("L3"),
		counterCase("P22 process counter", func(p *corev1.Pod, n int64) {
			if len(p.Spec.Containers) > 0 {
				setEnv(&p.Spec.Containers[0], "PORT", strconv.FormatInt(15000+n, 10))
			}
		}).breaks("L1", "L3"),
		onPods("P23 wall clock in the object", lastSeen).breaks("L1", "L3"),
	}
}

func nondeterministicLookalikes() []Case {
	return []Case{
		onPods("P17 sorted keys", sortedOrder),
		onPods("P17 iterates into a map field", mapIntoMap),
		onPods("P22 constant", constantPort),
		onPods("P22 derived from the object", derivedPort),
		counterCase("P22 counter that feeds metrics only", func(p *corev1.Pod, _ int64) { setPort(p, 15000) }),
		onPods("P23 no clock", func(_ *review.Request, p *corev1.Pod) error {
			annotate(p, "agent/seen", "yes")
			return nil
		}),
		onPods("P23 time set once, declared", firstSeen).
			except("/metadata/annotations/agent~1first-seen", "", "the time of the first call"),
	}
}

// settings returns a map with so many entries that the iteration order usually differs between two calls.
func settings() map[string]string {
	return map[string]string{"A": "1", "B": "2", "C": "3", "D": "4"}
}

// mapOrder appends variables in the iteration order of a map. Equal requests get different lists.
var mapOrder = changes(func(p *corev1.Pod) {
	if len(p.Spec.Containers) == 0 {
		return
	}
	for name, value := range settings() {
		ensureEnv(&p.Spec.Containers[0], name, value)
	}
})

// sortedOrder appends variables in the order of their names.
var sortedOrder = changesContainers(func(c *corev1.Container) {
	for _, name := range slices.Sorted(maps.Keys(settings())) {
		ensureEnv(c, name, settings()[name])
	}
})

// mapIntoMap copies a map into the annotations, where the iteration order does not matter.
var mapIntoMap = changes(func(p *corev1.Pod) {
	for name, value := range settings() {
		annotate(p, "agent/"+name, value)
	}
})

// counterCase returns a case of a handler that counts its calls and passes the count to change.
func counterCase(name string, change func(p *corev1.Pod, n int64)) Case {
	return podCase(name, func() http.Handler {
		var calls atomic.Int64
		return pods(func(_ *review.Request, p *corev1.Pod) error {
			change(p, calls.Add(1))
			return nil
		})
	})
}

// setPort sets the variable PORT in every container.
func setPort(p *corev1.Pod, port int) {
	for _, c := range everyContainer(p) {
		setEnvValue(c, "PORT", strconv.Itoa(port))
	}
}

// setEnvValue sets the value of a variable. It does not change a variable that takes its value from a reference.
func setEnvValue(c *corev1.Container, name, value string) {
	if e := findEnv(c, name); e == nil || e.ValueFrom == nil {
		setEnv(c, name, value)
	}
}

// constantPort writes the same port in every call.
var constantPort = changes(func(p *corev1.Pod) {
	setPort(p, 15000)
})

// derivedPort computes the port from the namespace, which no webhook changes.
func derivedPort(r *review.Request, p *corev1.Pod) error {
	setPort(p, 15000+len(r.Namespace))
	return nil
}

// lastSeen writes the time of each call. Two calls never agree.
var lastSeen = changes(func(p *corev1.Pod) {
	annotate(p, "agent/last-seen", time.Now().Format(time.RFC3339Nano))
})

// firstSeen writes the time of the first call and keeps it. An exception of the case declares that the time may differ.
var firstSeen = changes(func(p *corev1.Pod) {
	if _, ok := p.Annotations["agent/first-seen"]; ok {
		return
	}
	annotate(p, "agent/first-seen", time.Now().Format(time.RFC3339Nano))
})
