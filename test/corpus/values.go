// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/admitkit/admitkit/pkg/review"
)

// P03, P07, P08 and P09: webhooks that compute a new value from the old one. In the second call the
// old value is their own.

func valuePatterns() []Case {
	return []Case{
		onPods("P03 value concatenation", concatenated).breaks("L1", "L12"),
		onDeployments("P03 value concatenation", concatenated).breaks("L1", "L12"),
		onPods("P07 rewrites a probe twice", probeRewritten).breaks("L1"),
		onPods("P07 wraps the command twice", commandWrapped).breaks("L1"),
		onPods("P07 saves its own dnsPolicy", dnsPolicySaved).breaks("L1"),
		onPods("P07 saves its own schedulerName", schedulerSaved).breaks("L1"),
		onPods("P08 prefixes the image again", imagePrefixed).breaks("L1", "L12"),
		onPods("P09 relative arithmetic", limitRaised).breaks("L1", "L12"),
	}
}

func valueLookalikes() []Case {
	return []Case{
		onPods("P03 token once", tokenOnce),
		onDeployments("P03 token once", tokenOnce),
		onPods("P07 probe rewritten once", probeRewrittenOnce),
		onPods("P07 command wrapped once", commandWrappedOnce),
		onPods("P07 dnsPolicy saved once", unless(func(p *corev1.Pod) bool { return p.Spec.DNSPolicy == corev1.DNSDefault }, dnsPolicySaved)),
		onPods("P07 schedulerName saved once", unless(func(p *corev1.Pod) bool { return p.Spec.SchedulerName == ownScheduler }, schedulerSaved)),
		onPods("P08 skip when the prefix is there", imagePrefixedOnce),
		onPods("P09 computes from the stored original", limitFromOriginal),
		onPods("P09 set only when absent", limitIfAbsent),
	}
}

// unless returns an edit that does nothing if done returns true.
func unless(done func(p *corev1.Pod) bool, e edit) edit {
	return func(r *review.Request, p *corev1.Pod) error {
		if done(p) {
			return nil
		}
		return e(r, p)
	}
}

// concatenated appends an option to a variable without a check. A second call appends it again.
var concatenated = changes(func(p *corev1.Pod) {
	if len(p.Spec.Containers) == 0 {
		return
	}
	c := &p.Spec.Containers[0]
	if e := findEnv(c, "OPTS"); e != nil {
		e.Value += " -agent"
	} else {
		ensureEnv(c, "OPTS", "-agent")
	}
})

// tokenOnce adds its option only if the value does not have it. It denies a variable whose value comes from a
// reference.
func tokenOnce(_ *review.Request, p *corev1.Pod) error {
	for _, c := range everyContainer(p) {
		e := findEnv(c, "OPTS")
		switch {
		case e == nil:
			ensureEnv(c, "OPTS", "-agent")
		case e.ValueFrom != nil:
			return denial("OPTS must be a plain value")
		case !slices.Contains(strings.Fields(e.Value), "-agent"):
			e.Value = extended(e.Value, "-agent")
		}
	}
	return nil
}

// extended appends a token to a list of tokens.
func extended(value, token string) string {
	if value == "" {
		return token
	}
	return value + " " + token
}

const probePort = 15020

// probeRewritten stores the port of each probe and then replaces it. A second call stores its own
// port.
var probeRewritten = changes(func(p *corev1.Pod) {
	for _, c := range httpProbed(p) {
		rewriteProbe(p, c)
	}
})

// probeRewrittenOnce skips a probe that already has its port, so the stored port stays the user's.
var probeRewrittenOnce = changes(func(p *corev1.Pod) {
	for _, c := range httpProbed(p) {
		if c.ReadinessProbe.HTTPGet.Port != intstr.FromInt32(probePort) {
			rewriteProbe(p, c)
		}
	}
})

// rewriteProbe stores the port of the readiness probe in an annotation and replaces it.
func rewriteProbe(p *corev1.Pod, c *corev1.Container) {
	get := c.ReadinessProbe.HTTPGet
	annotate(p, "orig/"+c.Name, get.Port.String())
	get.Port = intstr.FromInt32(probePort)
}

// httpProbed returns the containers with a readiness probe over HTTP.
func httpProbed(p *corev1.Pod) []*corev1.Container {
	return slices.DeleteFunc(everyContainer(p), func(c *corev1.Container) bool {
		return c.ReadinessProbe == nil || c.ReadinessProbe.HTTPGet == nil
	})
}

// commandWrapped puts its program before each command. A second call repeats this.
var commandWrapped = changesContainers(func(c *corev1.Container) {
	if len(c.Command) > 0 {
		c.Command = slices.Insert(c.Command, 0, "/agent/run")
	}
})

// commandWrappedOnce puts its program before each command that does not contain it.
var commandWrappedOnce = changesContainers(func(c *corev1.Container) {
	if len(c.Command) > 0 && !slices.Contains(c.Command, "/agent/run") {
		c.Command = slices.Insert(c.Command, 0, "/agent/run")
	}
})

// dnsPolicySaved stores dnsPolicy and then replaces it. A second call stores its own policy.
var dnsPolicySaved = changes(func(p *corev1.Pod) {
	annotate(p, "orig/dns-policy", string(p.Spec.DNSPolicy))
	p.Spec.DNSPolicy = corev1.DNSDefault
})

const ownScheduler = "agent-scheduler"

// schedulerSaved stores schedulerName and then replaces it. A second call stores its own scheduler.
var schedulerSaved = changes(func(p *corev1.Pod) {
	annotate(p, "orig/scheduler-name", p.Spec.SchedulerName)
	p.Spec.SchedulerName = ownScheduler
})

const mirror = "mirror.example.com/"

// imagePrefixed puts its registry before each image. A second call repeats this.
var imagePrefixed = changesAppContainers(func(c *corev1.Container) {
	c.Image = mirror + c.Image
})

// imagePrefixedOnce puts its registry before each image that does not begin with it.
var imagePrefixedOnce = changesContainers(func(c *corev1.Container) {
	prefixImage(c, mirror)
})

func prefixImage(c *corev1.Container, prefix string) {
	if c.Image != "" && !strings.HasPrefix(c.Image, prefix) {
		c.Image = prefix + c.Image
	}
}

var overhead = resource.MustParse("64Mi")

// limitRaised adds an overhead to each memory limit. A second call adds it again.
var limitRaised = changesAppContainers(func(c *corev1.Container) {
	if hasLimit(c) {
		limit := c.Resources.Limits[corev1.ResourceMemory]
		limit.Add(overhead)
		c.Resources.Limits[corev1.ResourceMemory] = limit
	}
})

func hasLimit(c *corev1.Container) bool {
	_, ok := c.Resources.Limits[corev1.ResourceMemory]
	return ok
}

// limitFromOriginal adds an overhead to the limit that it stored in its first call, so every call has
// the same result. It overwrites an invalid annotation.
func limitFromOriginal(_ *review.Request, p *corev1.Pod) error {
	for _, c := range everyContainer(p) {
		if !hasLimit(c) || p.Spec.Resources != nil {
			continue
		}
		key := "original-memory.agent.io/" + c.Name
		limit := c.Resources.Limits[corev1.ResourceMemory]
		original, err := resource.ParseQuantity(p.Annotations[key])
		if err != nil || original.Sign() < 0 {
			original = limit.DeepCopy()
			annotate(p, key, original.String())
		}
		original.Add(overhead)
		if request := c.Resources.Requests[corev1.ResourceMemory]; original.Cmp(request) < 0 {
			return denial("the memory that " + c.Name + " requests is above its limit")
		}
		c.Resources.Limits[corev1.ResourceMemory] = original
	}
	return nil
}

// limitIfAbsent sets a memory limit only where there is none.
var limitIfAbsent = changes(func(p *corev1.Pod) {
	for _, c := range everyContainer(p) {
		if p.Spec.Resources == nil {
			defaultLimit(c, corev1.ResourceMemory, overhead)
		}
	}
})

// defaultLimit sets a limit, or the request if that is higher. The API server rejects a request
// above the limit.
func defaultLimit(c *corev1.Container, name corev1.ResourceName, limit resource.Quantity) {
	if _, ok := c.Resources.Limits[name]; ok {
		return
	}
	if request := c.Resources.Requests[name]; request.Cmp(limit) > 0 {
		limit = request
	}
	if c.Resources.Limits == nil {
		c.Resources.Limits = corev1.ResourceList{}
	}
	c.Resources.Limits[name] = limit.DeepCopy()
}
