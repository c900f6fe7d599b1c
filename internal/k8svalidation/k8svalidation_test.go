// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// objects returns the result of full as Go values.
func objects(t testing.TB) []runtime.Object {
	t.Helper()
	var list []runtime.Object
	for _, object := range full(t) {
		obj, err := typed(object)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, obj)
	}
	return list
}

func TestFullObjectsAreLegalAndDefaultedOnce(t *testing.T) {
	for _, obj := range objects(t) {
		if errs := Validate(obj); len(errs) > 0 {
			t.Errorf("%T: %v", obj, errs.ToAggregate())
		}
		if !Default(obj) {
			t.Errorf("%T: not known", obj)
		}
		again := obj.DeepCopyObject()
		Default(again)
		if diff := cmp.Diff(obj, again); diff != "" {
			t.Errorf("%T: with its defaults it changes again:\n%s", obj, diff)
		}
		if !Knows(obj) {
			t.Errorf("%T is not known", obj)
		}
		if errs := append(Validate(obj), ValidateUpdate(obj, obj)...); len(errs) > 0 {
			t.Errorf("%T with its defaults: %v", obj, errs.ToAggregate())
		}
	}
}

func TestUnknownTypes(t *testing.T) {
	lease := &coordinationv1.Lease{}
	if Knows(lease) || Default(lease) || Validate(lease) != nil || ValidateUpdate(lease, lease) != nil {
		t.Error("there is a result for an unknown type")
	}
	if m, spec := PodTemplate(lease); m != nil || spec != nil {
		t.Error("a pod template is found in a kind without one")
	}
}

func TestPodTemplate(t *testing.T) {
	found := 0
	for _, obj := range objects(t) {
		m, spec := PodTemplate(obj)
		if (m == nil) != (spec == nil) {
			t.Errorf("%T: only one of metadata and spec is returned", obj)
		}
		if m == nil {
			continue
		}
		found++
		m.Labels = map[string]string{"changed": "yes"}
		spec.NodeName = "changed"
		data, err := json.Marshal(obj)
		if err != nil || strings.Count(string(data), "changed") != 2 {
			t.Errorf("%T: not inside the object: %s (%v)", obj, data, err)
		}
	}
	if found != 9 {
		t.Errorf("%d kinds with a template, want 9", found)
	}
	if m, _ := PodTemplate(&corev1.ReplicationController{}); m != nil {
		t.Error("a template that is missing is found")
	}
}

func TestDefaultLeavesSharedMapsAlone(t *testing.T) {
	shared := map[string]string{"pod.beta.kubernetes.io/init-containers": "x"}
	pod := smallPod()
	pod.Annotations = shared
	Default(pod)
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Annotations: shared}}
	Default(daemons)
	if len(shared) != 1 || len(pod.Annotations) != 0 || len(daemons.Annotations) != 2 {
		t.Errorf("shared %v, Pod %v, DaemonSet %v", shared, pod.Annotations, daemons.Annotations)
	}
	job := &batchv1.Job{}
	job.Spec.Template.Labels = map[string]string{"a": "b"}
	Default(job)
	job.Labels["c"] = "d"
	if len(job.Spec.Template.Labels) != 1 {
		t.Error("a Job and its template share labels")
	}
}

func TestSeen(t *testing.T) {
	var s seen[int]
	for i := range 3 * fewKeys {
		if !s.add(i) || s.add(i) || !s.has(i) || s.has(i+1) {
			t.Errorf("wrong at %d", i)
		}
	}
	if s.add(0) || s.add(fewKeys) {
		t.Error("forgotten")
	}
}

func TestLargeLists(t *testing.T) {
	pod := smallPod()
	web := &pod.Spec.Containers[0]
	for i := range 3000 {
		name := "v" + strconv.Itoa(i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume(name))
		web.VolumeMounts = append(web.VolumeMounts, mount(name, "/"+name))
		web.Ports = append(web.Ports, corev1.ContainerPort{Name: "p" + strconv.Itoa(i), ContainerPort: int32(i + 1)})
	}
	if errs := Validate(pod); len(errs) > 0 {
		t.Errorf("%d errors, first %v", len(errs), errs[0])
	}
	web.VolumeMounts[2999].MountPath = "/v7"
	if got := pathsOf(Validate(pod)); len(got) != 1 {
		t.Errorf("refused: %.300q", got)
	}
}

func FuzzObject(f *testing.F) {
	for _, object := range full(f) {
		data, err := json.Marshal(object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var object tree
		if json.Unmarshal(data, &object) != nil {
			return
		}
		obj, err := typed(object)
		if err != nil {
			return
		}
		errs := Validate(obj)
		Default(obj)
		again := obj.DeepCopyObject()
		Default(again)
		if diff := cmp.Diff(obj, again); diff != "" {
			t.Errorf("with its defaults it changes again:\n%s", diff)
		}
		if after := Validate(obj); (len(after) == 0) != (len(errs) == 0) {
			t.Errorf("refused: %v, with the defaults: %v", errs, after)
		}
	})
}

func BenchmarkSmallPod(b *testing.B) {
	pod := smallPod()
	b.ReportAllocs()
	for b.Loop() {
		p := *pod
		p.Spec.Containers = slices.Clone(pod.Spec.Containers)
		Default(&p)
		if len(Validate(&p)) > 0 {
			b.Fatal("refused")
		}
	}
}

func BenchmarkFullPod(b *testing.B) {
	pod := objects(b)[0].(*corev1.Pod)
	Default(pod)
	b.ReportAllocs()
	for b.Loop() {
		Default(pod)
		if len(Validate(pod)) > 0 {
			b.Fatal("refused")
		}
	}
}
