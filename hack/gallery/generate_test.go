// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/podnodeselector"
	"github.com/admitkit/admitkit/examples/gallery/podtolerationrestriction"
)

// namespaces returns Namespaces with fixed and with random annotations.
func namespaces(seed uint64) []*corev1.Namespace {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
	named := func(name string, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	}
	annotated := func(selector, defaults, whitelist string) map[string]string {
		return map[string]string{
			podnodeselector.Annotation: selector, podtolerationrestriction.DefaultAnnotation: defaults, podtolerationrestriction.WhitelistAnnotation: whitelist,
		}
	}
	list := []*corev1.Namespace{
		named("plain", nil), named("kube-system", map[string]string{"other": "annotation"}), named("empty", annotated("", "", "")),
		named("null", annotated(" env = test ", "null", "[]")), named("broken", annotated("env", "{", "{")), named("typed", annotated("a=b=c", `{"key":"a"}`, `[{"key":1}]`)),
		named("label", annotated("?=a", `[]`, `{}`)), named("value", annotated("env=?", `[]`, `null`)),
		named("case", annotated("env=test,", `[{"KEY":"gpu","Operator":"Exists"}]`, `[{"Operator":"Exists","unknown":1}]`)),
		named(notCached, annotated("disk=ssd", `[{"key":"spot","operator":"Exists"}]`, `[{"operator":"Exists"}]`)),
	}
	for i := range 20 {
		annotations := map[string]string{}
		if g.IntN(3) > 0 {
			annotations[podnodeselector.Annotation] = pick(g, "", "env=test", "env=prod,disk=ssd", "disk=hdd", "env=")
		}
		for _, key := range []string{podtolerationrestriction.DefaultAnnotation, podtolerationrestriction.WhitelistAnnotation} {
			if g.IntN(2) > 0 {
				text, _ := json.Marshal(g.tolerations())
				annotations[key] = string(text)
			}
		}
		list = append(list, named(fmt.Sprintf("ns-%d", i), annotations))
	}
	return list
}

// A generator makes random requests.
type generator struct {
	*rand.Rand
	namespaces []*corev1.Namespace
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) oneIn(n int) bool { return g.IntN(n) == 0 }

// podEdges returns the edge cases: fixed variants of a Pod, each created and updated in every Namespace, in one that does
// not exist and in one that cannot be read.
func (g *generator) podEdges() (all []*request) {
	changes := []func(*corev1.Pod){
		func(*corev1.Pod) {},
		func(p *corev1.Pod) { p.Name, p.GenerateName = "", "shop-" },
		func(p *corev1.Pod) { p.Name = "" },
		func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"env": "dev"} },
		func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
		func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = quantities("cpu", "1") },
		func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "a"} },
		func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" },
		func(p *corev1.Pod) { p.Spec = corev1.PodSpec{} },
	}
	names := []string{"gone", unreadable}
	for _, ns := range g.namespaces {
		names = append(names, ns.Name)
	}
	for _, name := range names {
		for _, change := range changes {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: name}}
			pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "shop:v1"}}
			change(pod)
			all = append(all, onPods(admission.Create, "", pod, nil), onPods(admission.Update, "", pod.DeepCopy(), pod))
		}
	}
	return all
}

// onPods returns a request for a Pod. The argument pod or old is nil if the operation has no such object.
func onPods(op admission.Operation, subresource string, pod, old *corev1.Pod) *request {
	return on(op, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", subresource, pod, old)
}

// on returns a request. The argument object or old is nil if the operation has no such object.
func on[T any, P interface {
	*T
	metav1.Object
	runtime.Object
}](op admission.Operation, kind schema.GroupVersionKind, resource, subresource string, object, old P) *request {
	r := &request{operation: op, subresource: subresource, kind: kind, resource: kind.GroupVersion().WithResource(resource)}
	if old != nil {
		r.old, r.name, r.namespace = old, old.GetName(), old.GetNamespace()
	}
	if object != nil {
		r.object, r.name, r.namespace = object, object.GetName(), object.GetNamespace()
	}
	return r
}

func (g *generator) podRequest() *request {
	pod := g.pod()
	old := pod.DeepCopy()
	switch n := g.IntN(100); {
	case n < 50:
		return onPods(admission.Create, "", pod, nil)
	case n < 80:
		if g.oneIn(3) {
			old = g.pod()
			old.Name, old.Namespace = pod.Name, pod.Namespace
		} else {
			g.change(pod)
		}
		return onPods(admission.Update, "", pod, old)
	case n < 90:
		g.change(pod)
		return onPods(admission.Update, pick(g, "status", "ephemeralcontainers", "resize"), pod, old)
	case n < 95:
		return onPods(admission.Delete, "", nil, old)
	case n < 97:
		return g.other(pod, "pods", "binding", "Binding", &corev1.Binding{ObjectMeta: pod.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: "a"}})
	}
	return g.other(pod, "podtemplates", "", "PodTemplate", &corev1.PodTemplate{ObjectMeta: pod.ObjectMeta, Template: corev1.PodTemplateSpec{Spec: pod.Spec}})
}

// other returns a CREATE of another resource or of a subresource, with the name and namespace of the Pod.
func (g *generator) other(pod *corev1.Pod, resource, subresource, kind string, object runtime.Object) *request {
	r := onPods(admission.Create, subresource, pod, nil)
	r.kind, r.resource, r.object = corev1.SchemeGroupVersion.WithKind(kind), corev1.SchemeGroupVersion.WithResource(resource), object
	return r
}

// change makes up to two random changes to a Pod, as for an update.
func (g *generator) change(pod *corev1.Pod) {
	for range g.IntN(3) {
		switch g.IntN(5) {
		case 0:
			pod.Spec.Containers[0].Image = g.image()
		case 1:
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, g.toleration())
		case 2:
			pod.Labels = map[string]string{"a": "b"}
		case 3:
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(g.container("debug"))})
		default:
			pod.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0)))
		}
	}
}

func (g *generator) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace = "gone"
	if g.IntN(30) > 0 {
		pod.Namespace = pick(g, g.namespaces...).Name
	}
	switch g.IntN(6) {
	case 0:
		pod.GenerateName = "shop-"
	case 1:
	default:
		pod.Name = "shop"
	}
	if g.oneIn(10) {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "a"}
	}
	if g.oneIn(10) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "a", UID: "b", Controller: ptr.To(true)}}
	}
	g.fill(&pod.Spec)
	pod.Status.QOSClass = pick(g, "", "", "", "", "", corev1.PodQOSBestEffort, corev1.PodQOSBurstable, corev1.PodQOSGuaranteed)
	return pod
}

func (g *generator) fill(spec *corev1.PodSpec) {
	for i := range 1 + g.IntN(2) {
		spec.Containers = append(spec.Containers, g.container(fmt.Sprintf("app-%d", i)))
	}
	for i := range g.IntN(3) {
		spec.InitContainers = append(spec.InitContainers, g.container(fmt.Sprintf("init-%d", i)))
	}
	if g.oneIn(4) {
		spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(g.container("debug"))}}
	}
	for i := range g.IntN(3) {
		v := corev1.Volume{Name: fmt.Sprintf("v-%d", i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
		if g.oneIn(2) {
			v.VolumeSource = corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: g.image(), PullPolicy: g.policy()}}
		}
		spec.Volumes = append(spec.Volumes, v)
	}
	spec.Tolerations = g.tolerations()
	spec.HostNetwork = g.oneIn(5)
	if g.oneIn(3) {
		spec.NodeSelector = map[string]string{pick(g, "env", "disk", "gpu"): pick(g, "test", "prod", "ssd", "")}
	}
	if g.oneIn(2) {
		spec.Affinity = g.affinity()
	}
	if g.oneIn(6) {
		spec.Resources = &corev1.ResourceRequirements{Requests: g.quantities(), Limits: g.quantities()}
	}
	if g.oneIn(5) {
		spec.PriorityClassName = "system-cluster-critical"
	}
}

func (g *generator) container(name string) corev1.Container {
	return corev1.Container{
		Name: name, Image: g.image(), ImagePullPolicy: g.policy(),
		Resources: corev1.ResourceRequirements{Requests: g.quantities(), Limits: g.quantities()},
	}
}

func (g *generator) image() string { return pick(g, "", "a", "a:v1", "b:v1", "c:latest") }

func (g *generator) policy() corev1.PullPolicy {
	return pick(g, "", corev1.PullAlways, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

func quantities(name corev1.ResourceName, quantity string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(quantity)}
}

func (g *generator) quantities() corev1.ResourceList {
	if g.IntN(4) > 0 {
		return nil
	}
	return quantities(pick(g, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "example.com/gpu", "hugepages-2Mi"), pick(g, "0", "1", "500m"))
}

func (g *generator) tolerations() (all []corev1.Toleration) {
	for range g.IntN(4) {
		all = append(all, g.toleration())
	}
	return all
}

func (g *generator) toleration() corev1.Toleration {
	return corev1.Toleration{
		Key:               pick(g, "", "gpu", "gpu", "spot", "spot", corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure),
		Operator:          pick(g, "", corev1.TolerationOpExists, corev1.TolerationOpExists, corev1.TolerationOpEqual, corev1.TolerationOpGt, "Bad"),
		Value:             pick(g, "", "", "1", "2"),
		Effect:            pick(g, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule),
		TolerationSeconds: pick[*int64](g, nil, nil, ptr.To[int64](0), ptr.To[int64](60), ptr.To[int64](300)),
	}
}

func (g *generator) affinity() *corev1.Affinity {
	var terms []corev1.PodAffinityTerm
	for range g.IntN(3) {
		terms = append(terms, corev1.PodAffinityTerm{TopologyKey: pick(g, corev1.LabelHostname, corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyZone, "")})
	}
	switch g.IntN(5) {
	case 0:
		return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	case 1:
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone}},
		}}}
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}
