// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// B25 to B32: webhooks whose responses depend on more than the request.

func sharedStates() []Case {
	return []Case{
		podCase("B25 appends to a shared template", sharedTemplate).breaks("L3"),
		podCase("B26 caches by the name of the object", cachesByName).breaks("L3"),
		podCase("B27 assigns the least used zone", leastUsedZone).breaks("L3"),
		onPods("B28 hashes a map in iteration order", mapChecksum).breaks("L3"),
		onPods("B29 writes the uid of the request", writesUID).breaks("L1", "L3"),
		noneOnDryRun(podCase("B30 a dry run leaves its placeholder in the cache", placeholderCached)).breaks("L7", "L3"),
		noneOnDryRun(onPods("B31 mounts another Secret in a dry run", otherInDryRun)).breaks("L7"),
		guardedInCreates(),
	}
}

// sharedTemplate appends variables to a template that all Pods share. Each Pod also gets the variables
// of the earlier ones.
func sharedTemplate() http.Handler {
	var mu sync.Mutex
	template := sidecar()
	return pods(func(_ *review.Request, p *corev1.Pod) error {
		if nameTaken(p, template.Name) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		for _, c := range p.Spec.Containers {
			template.Env = append(template.Env, corev1.EnvVar{Name: "WATCH_" + strings.ToUpper(strings.ReplaceAll(c.Name, "-", "_")), Value: c.Image})
		}
		p.Spec.Containers = append(p.Spec.Containers, *template.DeepCopy())
		return nil
	})
}

// cachesByName caches a hash by the name of the Pod. New Pods of a ReplicaSet have no name yet, so all
// of them get the first hash.
func cachesByName() http.Handler {
	var known sync.Map
	return pods(func(r *review.Request, p *corev1.Pod) error {
		images := ""
		for _, c := range p.Spec.Containers {
			if c.Name != sidecar().Name {
				images += c.Image + " "
			}
		}
		sum, _ := known.LoadOrStore(r.Namespace+"/"+r.Name, hash(images))
		annotate(p, "scan.example.com/images", sum.(string))
		return nil
	})
}

// leastUsedZone assigns the zone that it assigned least. Equal requests get different zones.
func leastUsedZone() http.Handler {
	var mu sync.Mutex
	given := map[string]int{}
	return pods(func(_ *review.Request, p *corev1.Pod) error {
		if _, ok := p.Labels["example.com/zone"]; ok {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		least := slices.MinFunc([]string{"a", "b", "c"}, func(a, b string) int { return given[a] - given[b] })
		given[least]++
		setKey(&p.Labels, "example.com/zone", least)
		return nil
	})
}

// mapChecksum hashes its settings in the iteration order of a map. Equal requests get different
// hashes.
var mapChecksum = changes(func(p *corev1.Pod) {
	var b strings.Builder
	for name, value := range settings() {
		fmt.Fprintf(&b, "%s=%s;", name, value)
	}
	annotate(p, "checksum.example.com/settings", hash(b.String()))
})

// writesUID writes the uid of the request, which differs in every call.
func writesUID(r *review.Request, p *corev1.Pod) error {
	annotate(p, "trace.example.com/admission", string(r.UID))
	return nil
}

// placeholderCached caches a token by namespace. A dry run stores a placeholder that later calls
// return.
func placeholderCached() http.Handler {
	var tokens sync.Map
	return pods(func(r *review.Request, p *corev1.Pod) error {
		token := "token-of-" + r.Namespace
		if r.DryRun {
			token = "unknown-until-stored"
		}
		known, _ := tokens.LoadOrStore(r.Namespace, token)
		if r.DryRun {
			known = "token-of-" + r.Namespace
		}
		annotate(p, "vault.example.com/token", known.(string))
		return nil
	})
}

// otherInDryRun mounts another Secret in a dry run, so a dry run shows a result that no real call has.
func otherInDryRun(r *review.Request, p *corev1.Pod) error {
	name := "agent-token"
	if r.DryRun {
		name = "dry-run"
	}
	return ensureMounted(p, secretVolume("tok", name), "/tok")
}

// guardedInCreates returns a case that skips its side effect in dry runs of creates, but not of
// updates.
func guardedInCreates() Case {
	stored := &secrets{writes: map[string]int{}}
	c := noneOnDryRun(onKind("B32 Service: writes in dry runs of updates", "v1", "services", func(r *review.Request, s *corev1.Service) error {
		setKey(&s.Annotations, "dns.example.com/zone", "shop")
		switch {
		case r.Operation == admissionv1.Create && r.DryRun:
		default:
			stored.write(r.Namespace + "/record")
		}
		return nil
	}))
	c.Observe = stored.snapshot
	return c.breaks("L7")
}

// B33 to B38: webhooks that change their own values again, or compete with another webhook that does the same.

func brokenValues() []Case {
	return []Case{
		onPods("B33 raises the grace period in each call", raisesGrace).breaks("L1", "L12"),
		onPods("B34 wraps the preStop command again", preStopWrapped).breaks("L1"),
		onPods("B35 halves the CPU request in each call", requestsHalved).breaks("L1", "L12"),
		onPods("B36 prefixes the image of another mirror", imagePrefixedOnce).against(otherMirror).breaks("L12"),
		onPods("B37 appends its search domain in each call", searchDomain).breaks("L1"),
		onPods("B38 keeps its pull secret first", firstSecret("registry-mirror")).against(firstSecret("rival")).breaks("L12"),
	}
}

// raisesGrace adds 15 seconds to the grace period in every call.
var raisesGrace = changes(func(p *corev1.Pod) {
	p.Spec.TerminationGracePeriodSeconds = ptr.To(min(ptr.Deref(p.Spec.TerminationGracePeriodSeconds, 30)+15, 600))
})

// preStopWrapped puts its program before each preStop command without a check. A second call repeats
// this.
var preStopWrapped = changes(func(p *corev1.Pod) {
	for _, c := range appContainers(p) {
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Exec == nil {
			continue
		}
		exec := c.Lifecycle.PreStop.Exec
		exec.Command = append([]string{"/mesh/await-drain", "--"}, exec.Command...)
	}
	annotate(p, "mesh.example.com/drain", "awaited")
})

// requestsHalved halves each CPU request in every call.
var requestsHalved = changesAppContainers(func(c *corev1.Container) {
	if request, ok := c.Resources.Requests[corev1.ResourceCPU]; ok && request.MilliValue() >= 20 && request.Value() < 1000 {
		request.SetMilli(request.MilliValue() / 2)
		c.Resources.Requests[corev1.ResourceCPU] = request
	}
})

// otherMirror puts another registry before each image that does not begin with it.
var otherMirror = changesContainers(func(c *corev1.Container) {
	prefixImage(c, "cache.example.com/")
})

// searchDomain appends its search domain in every call, up to 30 domains.
var searchDomain = changes(func(p *corev1.Pod) {
	if p.Spec.DNSConfig == nil {
		p.Spec.DNSConfig = &corev1.PodDNSConfig{}
	}
	if len(p.Spec.DNSConfig.Searches) < 30 {
		p.Spec.DNSConfig.Searches = append(p.Spec.DNSConfig.Searches, "corp.example.com")
	}
})

// firstSecret moves its pull secret to the front in every call. Two such webhooks never agree.
func firstSecret(name string) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		own := corev1.LocalObjectReference{Name: name}
		i := slices.Index(p.Spec.ImagePullSecrets, own)
		if i > 0 {
			p.Spec.ImagePullSecrets = slices.Delete(p.Spec.ImagePullSecrets, i, i+1)
		}
		if i != 0 {
			p.Spec.ImagePullSecrets = slices.Insert(p.Spec.ImagePullSecrets, 0, own)
		}
		return nil
	}
}
