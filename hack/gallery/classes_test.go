// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	originalpriority "k8s.io/kubernetes/plugin/pkg/admission/priority"
	originalruntime "k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/priority"
	"github.com/admitkit/admitkit/examples/gallery/runtimeclass"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// classControllers returns the controllers that set fields of a Pod according to the class that it names.
func classControllers() []*controller {
	return []*controller{{
		name: originalruntime.PluginName, register: originalruntime.Register, clusters: [][]runtime.Object{runtimeClasses()},
		hooks: func(t *testing.T, in cluster, _ string) []*webhook.Hook {
			return runtimeclass.Hooks(in.runtimeClasses(t))
		},
		edges: (*generator).runtimeClassEdges, generate: (*generator).runtimeClassRequest,
		differences: []*difference{emptyOverhead()},
		broken:      []brokenLaw{mergesTolerations()},
		onServer:    []*difference{deniesUnnamed()},
	}, {
		name: originalpriority.PluginName, register: originalpriority.Register, clusters: priorityClasses(),
		hooks: func(_ *testing.T, in cluster, _ string) []*webhook.Hook {
			return priority.Hooks(in.factory.Scheduling().V1().PriorityClasses().Lister())
		},
		edges: (*generator).priorityEdges, generate: (*generator).priorityRequest,
	}}
}

// emptyOverhead declares that the hook admits a Pod whose overhead is an empty map.
func emptyOverhead() *difference {
	return &difference{
		name:   "empty overhead",
		reason: "the API server leaves an empty map out of the object that it sends to a webhook, so the hook cannot see it",
		is: func(c *comparison) bool {
			original, ours := c.original, c.ours
			pod, ok := ours.object.(*corev1.Pod)
			return original.verdict == denied && strings.Contains(original.message, "Pod Overhead set without") && ok && len(pod.Spec.Overhead) == 0
		},
	}
}

// deniesUnnamed declares that the hook denies a Pod whose RuntimeClass has an empty name.
func deniesUnnamed() *difference {
	return &difference{
		name:   "class with an empty name",
		reason: "the original asks the API server, and its client refuses to send the request; for the hook, no object has an empty name",
		is: func(c *comparison) bool {
			return c.original.verdict == failed && c.original.message == "resource name may not be empty" &&
				c.ours.verdict == denied && c.ours.code == http.StatusForbidden && strings.HasSuffix(c.ours.message, `is forbidden: pod rejected: RuntimeClass "" not found`)
		},
	}
}

func runtimeClasses() []runtime.Object {
	class := func(name string, overhead corev1.ResourceList, scheduling *nodev1.Scheduling) *nodev1.RuntimeClass {
		c := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runc", Scheduling: scheduling}
		if overhead != nil {
			c.Overhead = &nodev1.Overhead{PodFixed: overhead}
		}
		return c
	}
	gpu := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	spot := corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists}
	return []runtime.Object{
		class("plain", nil, nil), class("heavy", quantities("cpu", "500m"), nil), class("empty", corev1.ResourceList{}, &nodev1.Scheduling{}),
		class("placed", nil, &nodev1.Scheduling{NodeSelector: map[string]string{"env": "test", "gpu": "a"}, Tolerations: []corev1.Toleration{gpu, spot}}),
		class(notCached, quantities("memory", "1"), &nodev1.Scheduling{Tolerations: []corev1.Toleration{spot}}),
	}
}

var runtimeClassNames = []*string{nil, ptr.To("plain"), ptr.To("heavy"), ptr.To("empty"), ptr.To("placed"), ptr.To(notCached), ptr.To("gone"), ptr.To("")}

func (g *generator) runtimeClassEdges() (all []*request) {
	for _, class := range runtimeClassNames {
		for _, overhead := range []corev1.ResourceList{nil, {}, quantities("cpu", "0.5"), quantities("memory", "1"), quantities("cpu", "1")} {
			for _, selector := range []map[string]string{nil, {}, {"env": "prod"}, {"env": "test"}, {"other": "a"}} {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "plain"}}
				pod.Spec = corev1.PodSpec{RuntimeClassName: class, Overhead: overhead, NodeSelector: selector}
				all = append(all, onPods(admission.Create, "", pod, nil), onPods(admission.Update, "", pod.DeepCopy(), pod))
			}
		}
	}
	return all
}

func (g *generator) runtimeClassRequest() *request {
	r := g.podRequest()
	if pod, ok := r.object.(*corev1.Pod); ok {
		pod.Spec.RuntimeClassName = pick(g, runtimeClassNames...)
		pod.Spec.Overhead = pick(g, nil, nil, nil, nil, corev1.ResourceList{}, quantities("cpu", "500m"), quantities("memory", "1"))
	}
	return r
}

// priorityClasses returns clusters without a default class, with one, and with two.
func priorityClasses() [][]runtime.Object {
	class := func(name string, value int32, global bool, policy *corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: global, PreemptionPolicy: policy}
	}
	never, lower := ptr.To(corev1.PreemptNever), ptr.To(corev1.PreemptLowerPriority)
	return [][]runtime.Object{
		nil,
		{class("low", -5, false, nil), class("high", 1000, false, lower), class("system-node-critical", 2000001000, false, lower)},
		{class("low", -5, true, nil), class("high", 1000, false, never)},
		{class("low", 7, true, never), class("high", 1000, true, lower)},
	}
}

func (g *generator) priorityEdges() (all []*request) {
	policies := []*corev1.PreemptionPolicy{nil, ptr.To(corev1.PreemptNever), ptr.To(corev1.PreemptLowerPriority)}
	for _, class := range []string{"", "low", "high", "gone", "system-node-critical"} {
		for _, value := range []*int32{nil, ptr.To[int32](0), ptr.To[int32](-5), ptr.To[int32](1000)} {
			for _, policy := range policies {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "plain"}}
				bare := pod.DeepCopy()
				pod.Spec = corev1.PodSpec{PriorityClassName: class, Priority: value, PreemptionPolicy: policy}
				all = append(all, onPods(admission.Create, "", pod, nil), onPods(admission.Update, "", bare, pod), onPods(admission.Update, "", pod, bare))
			}
		}
		for _, global := range []bool{true, false} {
			c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, GlobalDefault: global}
			old := c.DeepCopy()
			old.GlobalDefault = !global
			all = append(all, onPriorityClasses(admission.Create, c, nil), onPriorityClasses(admission.Update, c, old), onPriorityClasses(admission.Delete, nil, c))
		}
	}
	return all
}

func onPriorityClasses(op admission.Operation, class, old *schedulingv1.PriorityClass) *request {
	return on(op, schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), "priorityclasses", "", class, old)
}

func (g *generator) priorityRequest() *request {
	if g.oneIn(5) {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: pick(g, "low", "high", "other")}, Value: int32(g.IntN(2000)), GlobalDefault: g.oneIn(2)}
		g.rename(class)
		old := class.DeepCopy()
		old.GlobalDefault = g.oneIn(2)
		op := pick(g, admission.Create, admission.Update)
		return created(op, onPriorityClasses(op, class, old))
	}
	r := g.podRequest()
	for _, object := range []runtime.Object{r.object, r.old} {
		if pod, ok := object.(*corev1.Pod); ok {
			pod.Spec.PriorityClassName = pick(g, "", "", "low", "high", "gone", "system-node-critical")
			pod.Spec.Priority = pick(g, nil, nil, nil, ptr.To[int32](0), ptr.To[int32](-5), ptr.To[int32](1000), ptr.To[int32](2000001000))
			pod.Spec.PreemptionPolicy = pick(g, nil, nil, nil, ptr.To(corev1.PreemptNever), ptr.To(corev1.PreemptLowerPriority))
		}
	}
	return r
}
