// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// podUpdates start from a Pod with two tolerations and an activeDeadlineSeconds of 100.
var podUpdates = []podCase{
	{"nothing", func(*corev1.Pod, *corev1.Container) {}, ""},
	{"metadata", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Labels, pod.Annotations = map[string]string{"x": "y"}, map[string]string{"x": "y"}
	}, ""},
	{"bad label", func(pod *corev1.Pod, _ *corev1.Container) { pod.Labels["a"] = "/" }, "metadata.labels[a]"},
	{"image", func(_ *corev1.Pod, web *corev1.Container) { web.Image = "web:v2" }, ""},
	{"no image", func(_ *corev1.Pod, web *corev1.Container) { web.Image = "" }, first + "image"},
	{"one container more", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "agent", Image: "x"})
	}, "spec.containers"},
	{"an init container", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "agent", Image: "x"}}
	}, "spec.initContainers"},
	{"a volume", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume("more"))
	}, "spec"},
	{"environment", func(_ *corev1.Pod, web *corev1.Container) { web.Env = []corev1.EnvVar{{Name: "A"}} }, "spec"},
	{"a toleration more", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.Tolerations = slices.Insert(pod.Spec.Tolerations, 0, corev1.Toleration{Key: "more", Operator: "Exists"})
	}, ""},
	{"a toleration less", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Tolerations = pod.Spec.Tolerations[1:] }, "spec.tolerations"},
	{"a toleration for longer", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Tolerations[1].TolerationSeconds = new(int64(7)) }, ""},
	{"less time", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.ActiveDeadlineSeconds = new(int64(50)) }, ""},
	{"more time", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.ActiveDeadlineSeconds = new(int64(101)) }, "spec.activeDeadlineSeconds"},
	{"all the time", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.ActiveDeadlineSeconds = nil }, "spec.activeDeadlineSeconds"},
	{"grace period", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.TerminationGracePeriodSeconds = new(int64(1)) }, "spec"},
	{"node", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.NodeSelector = map[string]string{"a": "b"} }, "spec"},
	{"a gate", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
	}, "spec.schedulingGates[0].name"},
}

func runningPod() *corev1.Pod {
	pod := smallPod()
	pod.Name = "running"
	pod.Spec.ActiveDeadlineSeconds = new(int64(100))
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Exists"}, {Key: "b", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(5))}}
	Default(pod)
	return pod
}

func TestValidatePodUpdates(t *testing.T) {
	for _, c := range podUpdates {
		t.Run(c.name, func(t *testing.T) {
			old := runningPod()
			pod := old.DeepCopy()
			c.edit(pod, &pod.Spec.Containers[0])
			Default(pod)
			want := strings.Fields(c.paths)
			if got := pathsOf(ValidateUpdate(pod, old)); !slices.Equal(got, want) {
				t.Errorf("refused: %q, want %q", got, want)
			}
		})
	}
}

func TestPodUpdatesAgreeWithTheAPIServer(t *testing.T) {
	s := startServer(t)
	old := runningPod()
	old.Namespace = s.namespace(t)
	if err := s.client.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	var n count
	for _, c := range podUpdates {
		pod := old.DeepCopy()
		c.edit(pod, &pod.Spec.Containers[0])
		updated, refusal := s.update(t, pod)
		Default(pod)
		n.compare(t, c.name, pod, updated, ValidateUpdate(pod, old), refusal)
	}
	if n.limited > 0 {
		t.Errorf("%+v: Validate must know every rule of these cases", n)
	}
}

func TestValidateOtherUpdates(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(obj runtime.Object, m *metav1.ObjectMeta)
		path func(obj runtime.Object) string
	}{
		{"labels", func(_ runtime.Object, m *metav1.ObjectMeta) { m.Labels = map[string]string{"x": "y"} }, nil},
		{"name", func(_ runtime.Object, m *metav1.ObjectMeta) { m.Name = "other" }, func(runtime.Object) string { return "metadata.name" }},
		{"finalizer", func(_ runtime.Object, m *metav1.ObjectMeta) { m.Finalizers = append(m.Finalizers, "example.com/late") }, func(obj runtime.Object) string {
			m, _ := named(obj)
			return "metadata.finalizers[" + strconv.Itoa(len(m.Finalizers)) + "]"
		}},
		{"template", func(obj runtime.Object, _ *metav1.ObjectMeta) {
			if t := template(obj); t != nil {
				t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "agent", Image: "x"})
			}
		}, func(obj runtime.Object) string {
			if _, ok := obj.(*batchv1.Job); ok {
				return "spec.template"
			}
			return ""
		}},
		{"selector", func(obj runtime.Object, _ *metav1.ObjectMeta) { setSelector(obj) }, func(obj runtime.Object) string {
			if setSelector(obj.DeepCopyObject()) {
				return "spec.selector"
			}
			return ""
		}},
	} {
		for _, old := range objects(t) {
			Default(old)
			if m, _ := named(old); c.name == "finalizer" {
				m.DeletionTimestamp = &metav1.Time{}
			}
			obj := old.DeepCopyObject()
			m, _ := named(obj)
			c.edit(obj, m)
			Default(obj)
			var want []string
			if c.path != nil {
				want = strings.Fields(c.path(old))
			}
			if got := pathsOf(ValidateUpdate(obj, old)); !slices.Equal(got, want) {
				t.Errorf("%T, %s: refused: %q, want %q", obj, c.name, got, want)
			}
		}
	}
}

// setSelector changes a selector to another valid one. It reports whether obj has an immutable
// selector.
func setSelector(obj any) bool {
	other := &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/tier": "front"}}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		o.Spec.Selector = other
	case *appsv1.ReplicaSet:
		o.Spec.Selector = other
	case *appsv1.StatefulSet:
		o.Spec.Selector = other
	case *appsv1.DaemonSet:
		o.Spec.Selector = other
	case *batchv1.Job:
		o.Spec.Selector = other
	default:
		return false
	}
	return true
}
