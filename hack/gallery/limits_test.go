// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	originallimits "k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/limitranger"
	"github.com/admitkit/admitkit/examples/gallery/sources"
	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// limitControllers returns the controllers that limit resources.
func limitControllers() []*controller {
	return []*controller{{
		name: originallimits.PluginName, register: originallimits.Register, clusters: limitRanges(),
		hooks: func(t *testing.T, in cluster, _ string) []*webhook.Hook {
			ranges, err := reads.New(sources.LimitRanges(in.client, in.factory))
			if err != nil {
				t.Fatal(err)
			}
			return limitranger.Hooks(ranges)
		},
		edges: (*generator).limitEdges, generate: (*generator).limitRequest,
		differences: []*difference{orderOfLimitRanges(), failsToRead()}, plain: withSortedViolations, broken: brokenByDefaults(),
	}}
}

// limitedLater declares that these fields depend on whether LimitRanger runs before the hook. LimitRanger gives its
// defaults to the containers that it finds, and whichever of two webhooks sets a default first decides.
func limitedLater(fields ...string) (all []brokenLaw) {
	for _, path := range append(fields, "metadata.annotations["+limitranger.Annotation+"]") {
		all = append(all, brokenLaw{law: idempotence.L11, path: path, reason: "whichever of the hook and LimitRanger sets a default first decides"})
	}
	return all
}

// brokenByDefaults declares the fields where laws fail because of the defaults.
func brokenByDefaults() (all []brokenLaw) {
	for _, path := range []string{"spec.containers[*].resources", "spec.initContainers[*].resources", "spec.resources"} {
		all = append(all, brokenLaw{path: path, reason: "as with the original, a Pod is not valid if a default limit is below its request or conflicts with the resources of the Pod as a whole"})
	}
	return append(all, brokenLaw{path: "metadata.annotations[" + limitranger.Annotation + "]", reason: "as with the original, the annotation describes the defaults of one call"})
}

var violation = regexp.MustCompile(`, (minimum |maximum |\S+ max limit )`)

// withSortedViolations sorts the errors in a denial. The original takes the resources from a map, in random order.
func withSortedViolations(r result) result {
	head, list, ok := strings.Cut(r.message, "is forbidden: [")
	if ok {
		all := strings.Split(violation.ReplaceAllString(strings.TrimSuffix(list, "]"), "\n$1"), "\n")
		slices.Sort(all)
		r.message = head + "is forbidden: [" + strings.Join(all, ", ") + "]"
	}
	return r
}

// orderOfLimitRanges declares that the original takes the LimitRanges of a namespace in random order. In the namespaces
// with two of them, the first one is about CPU, and the second one about memory.
func orderOfLimitRanges() *difference {
	onlyOf := func(text, resource string) bool {
		return strings.Contains(text, resource) && !(strings.Contains(text, "cpu") && strings.Contains(text, "memory"))
	}
	return &difference{
		name:   "order of LimitRanges",
		reason: "the original takes the LimitRanges of a namespace from a map, in random order; the hooks sort them by name",
		is: func(c *comparison) bool {
			original, ours := c.original, c.ours
			if original.verdict == denied {
				return ours.verdict == denied && ours.code == original.code && onlyOf(original.message, "memory") && onlyOf(ours.message, "cpu")
			}
			first, isPod := original.object.(*corev1.Pod)
			second, arePods := ours.object.(*corev1.Pod)
			if !isPod || !arePods || !onlyOf(first.Annotations[limitranger.Annotation], "cpu") || !onlyOf(second.Annotations[limitranger.Annotation], "memory") {
				return false
			}
			second = second.DeepCopy()
			second.Annotations[limitranger.Annotation] = first.Annotations[limitranger.Annotation]
			return equality.Semantic.DeepEqual(first, second)
		},
	}
}

// limitRanges returns a cluster without LimitRanges, one with random ones, and one with valid ones, which have the API
// server's defaults.
func limitRanges() [][]runtime.Object {
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 4))}
	in := func(namespace, name string, limits ...corev1.LimitRangeItem) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.LimitRangeSpec{Limits: limits}}
	}
	var some, valid []runtime.Object
	for i, ns := range namespaces(*seed) {
		switch {
		case ns.Name == "plain" || ns.Name == "ns-0":
			some = append(some, in(ns.Name, "a", ofOne("cpu", "100m", "2")), in(ns.Name, "b", ofOne("memory", "64Mi", "1Gi")))
		case i%6 > 0:
			some = append(some, in(ns.Name, "any", g.anyLimits()...))
		}
		var limits []corev1.LimitRangeItem
		for j, limit := range validLimits() {
			if strings.Contains([]string{"012", "", "2", "0", "", "01"}[i%6], strconv.Itoa(j)) {
				limits = append(limits, limit)
			}
		}
		if r := in(ns.Name, "valid", limits...); len(limits) > 0 && ns.Name != metav1.NamespaceSystem {
			legacyscheme.Scheme.Default(r)
			valid = append(valid, r)
		}
	}
	return [][]runtime.Object{nil, some, valid}
}

// ofOne returns a limit that is about one resource only.
func ofOne(name corev1.ResourceName, low, high string) corev1.LimitRangeItem {
	return corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: quantities(name, low), Max: quantities(name, high), Default: quantities(name, high), DefaultRequest: quantities(name, low)}
}

// several returns a list from pairs of a name and a quantity.
func several(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// validLimits returns one limit of each type. The API server accepts them.
func validLimits() []corev1.LimitRangeItem {
	return []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Min: several("cpu", "100m", "memory", "32Mi"), Max: several("cpu", "1", "memory", "1Gi"),
		Default: several("cpu", "500m", "ephemeral-storage", "1Gi"), DefaultRequest: several("cpu", "200m"), MaxLimitRequestRatio: several("cpu", "4"),
	}, {
		Type: corev1.LimitTypePod, Min: several("cpu", "200m"), Max: several("cpu", "2", "memory", "1Gi"), MaxLimitRequestRatio: several("cpu", "2.5"),
	}, {
		Type: corev1.LimitTypePersistentVolumeClaim, Min: several("storage", "1Gi"), Max: several("storage", "1536Mi"),
	}}
}

// anyLimits returns random limits, including some that the API server would reject.
func (g *generator) anyLimits() (all []corev1.LimitRangeItem) {
	for range 1 + g.IntN(4) {
		all = append(all, corev1.LimitRangeItem{
			Type: pick(g, corev1.LimitTypeContainer, corev1.LimitTypeContainer, corev1.LimitTypePod, corev1.LimitTypePod, corev1.LimitTypePersistentVolumeClaim, "Bad"),
			Min:  g.amounts(4), Max: g.amounts(4), Default: g.amounts(3), DefaultRequest: g.amounts(3), MaxLimitRequestRatio: g.amounts(6),
		})
	}
	return all
}

// amounts returns quantities of random resources. On average, CPU and memory are each in one of n lists, and other
// resources in one of 3n.
func (g *generator) amounts(n int) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		if g.oneIn(n) {
			list[name] = resource.MustParse(pick(g, "0", "50m", "100m", "500m", "1", "2.5", "64Mi", "1Gi", "1500M", "9E"))
		}
	}
	for _, name := range []corev1.ResourceName{"storage", "ephemeral-storage", "example.com/gpu"} {
		if g.oneIn(3 * n) {
			list[name] = resource.MustParse(pick(g, "0", "1", "2", "1Gi", "2Gi", "1500m"))
		}
	}
	return list
}

// usual returns requests of CPU and memory, or limits if the argument limits is true. validLimits allows most of them.
func (g *generator) usual(limits bool) corev1.ResourceList {
	list := corev1.ResourceList{}
	if g.IntN(3) > 0 {
		list["cpu"] = resource.MustParse(pick(g, "100m", "200m", "0.25", "300m"))
		if limits {
			list["cpu"] = resource.MustParse(pick(g, "300m", "500m", "0.6", "3"))
		}
	}
	if g.oneIn(2) {
		list["memory"] = resource.MustParse(pick(g, "32Mi", "64Mi", "1Mi"))
		if limits {
			list["memory"] = resource.MustParse(pick(g, "256Mi", "512Mi", "1025Mi"))
		}
	}
	return list
}

func (g *generator) requirements() corev1.ResourceRequirements {
	if g.oneIn(3) {
		return corev1.ResourceRequirements{Requests: g.amounts(2), Limits: g.amounts(2)}
	}
	return corev1.ResourceRequirements{Requests: g.usual(false), Limits: g.usual(true)}
}

// limitedPod returns a Pod with random requests and limits for its containers, its init containers, and sometimes the
// Pod as a whole.
func (g *generator) limitedPod() *corev1.Pod {
	pod := g.pod()
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources = g.requirements()
	}
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].Resources = g.requirements()
		if g.oneIn(2) {
			pod.Spec.InitContainers[i].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
	}
	if g.oneIn(5) {
		pod.Spec.Resources = ptr.To(g.requirements())
	}
	if g.oneIn(8) {
		pod.Annotations = map[string]string{limitranger.Annotation: "set by the user"}
	}
	return pod
}

// limitEdges returns requests for fixed variants of Pods and claims in Namespaces with different LimitRanges.
func (g *generator) limitEdges() (all []*request) {
	hidden := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: unreadable}}
	all = append(all, onPods(admission.Create, "", hidden, nil), onPods(admission.Update, "resize", hidden.DeepCopy(), hidden))
	for _, namespace := range []string{"plain", "empty", "null", "broken", "typed", "label", "ns-0", notCached, "gone"} {
		for i, pod := range limitedPods() {
			pod.Namespace = namespace
			deleting := pod.DeepCopy()
			deleting.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0)))
			all = append(all, onPods(admission.Create, "", pod, nil), onPods(admission.Update, "resize", pod.DeepCopy(), pod))
			if i%10 == 0 {
				all = append(all, onPods(admission.Update, "", pod.DeepCopy(), pod), onPods(admission.Update, "status", pod.DeepCopy(), pod),
					onPods(admission.Update, "resize", pod.DeepCopy(), deleting), onPods(admission.Update, "resize", deleting.DeepCopy(), pod))
			}
		}
		for _, size := range []string{"", "0", "1Gi", "1023Mi", "2Gi", "1500m", "1536Mi"} {
			claim := g.claim(nil, corev1.ClaimBound, size)
			claim.Namespace = namespace
			deleting := claim.DeepCopy()
			deleting.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0)))
			all = append(all, onClaims(admission.Create, "", claim, nil), onClaims(admission.Update, "", claim.DeepCopy(), claim),
				onClaims(admission.Update, "", claim.DeepCopy(), deleting), onClaims(admission.Update, "status", claim.DeepCopy(), claim))
		}
	}
	return all
}

// limitedPods returns Pods with requests and limits near the bounds of LimitRanges.
func limitedPods() (all []*corev1.Pod) {
	lists := []corev1.ResourceList{
		nil, {}, several("cpu", "0"), several("cpu", "100m"), several("cpu", "99m", "memory", "32Mi"), several("cpu", "1", "memory", "1Gi"),
		several("cpu", "1001m", "memory", "1025Mi"), several("cpu", "9E", "memory", "9E"), several("example.com/gpu", "1", "ephemeral-storage", "1Gi"),
	}
	for i, requests := range lists {
		for _, limits := range lists {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			has := corev1.ResourceRequirements{Requests: requests.DeepCopy(), Limits: limits.DeepCopy()}
			pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "a"}, {Name: "b", Image: "b", Resources: has}}
			switch i % 3 {
			case 1:
				pod.Spec.Resources = has.DeepCopy()
			case 2:
				always := ptr.To(corev1.ContainerRestartPolicyAlways)
				pod.Spec.InitContainers = []corev1.Container{{Name: "c", Image: "c", Resources: has, RestartPolicy: always}, {Name: "d", Image: "d", Resources: has}, {Name: "e", Image: "e", Resources: has, RestartPolicy: always}}
			}
			all = append(all, pod)
		}
	}
	return all
}

func (g *generator) limitRequest() *request {
	if g.oneIn(4) {
		return g.limitedClaim()
	}
	pod := g.limitedPod()
	old := pod.DeepCopy()
	switch n := g.IntN(100); {
	case n < 60:
		return onPods(admission.Create, "", pod, nil)
	case n < 85:
		for i := range pod.Spec.Containers {
			resized(pod.Spec.Containers[i].Resources.Requests, g.usual(false))
			resized(pod.Spec.Containers[i].Resources.Limits, g.usual(true))
		}
		if g.oneIn(10) {
			old.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0)))
		}
		return onPods(admission.Update, pick(g, "resize", "resize", "resize", ""), pod, old)
	case n < 90:
		return onPods(admission.Update, pick(g, "status", "ephemeralcontainers"), pod, old)
	case n < 95:
		return onPods(admission.Delete, "", nil, old)
	}
	return g.other(pod, "podtemplates", "", "PodTemplate", &corev1.PodTemplate{ObjectMeta: pod.ObjectMeta, Template: corev1.PodTemplateSpec{Spec: pod.Spec}})
}

// resized replaces quantities of the list, but adds and removes none, as a resize must not.
func resized(list, by corev1.ResourceList) {
	for name := range list {
		if quantity, ok := by[name]; ok {
			list[name] = quantity
		}
	}
}

func (g *generator) limitedClaim() *request {
	claim := g.randomClaim()
	claim.Namespace = pick(g, g.namespaces...).Name
	claim.Spec.Resources.Requests = quantities(corev1.ResourceStorage, pick(g, "0", "512Mi", "1Gi", "1Gi", "1200Mi", "2Gi"))
	if g.oneIn(5) {
		claim.Spec.Resources = corev1.VolumeResourceRequirements{Requests: g.amounts(1), Limits: g.amounts(1)}
	}
	old := claim.DeepCopy()
	old.Status.Phase = corev1.ClaimBound
	old.Spec.Resources.Requests = quantities(corev1.ResourceStorage, pick(g, "1Gi", "1200Mi"))
	switch n := g.IntN(10); {
	case n < 5:
		return onClaims(admission.Create, "", claim, nil)
	case n < 8:
		return onClaims(admission.Update, "", claim, old)
	case n < 9:
		return onClaims(admission.Update, "status", claim, old)
	}
	return onClaims(admission.Delete, "", nil, old)
}
