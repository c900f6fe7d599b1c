// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// TestReinvocation calls the injector again with its own output, and with output that users or other webhooks
// have changed, as the API server may do.
func TestReinvocation(t *testing.T) {
	var denied, admitted, edited int
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 1))
		user := randomPod(r)
		once, err := call(user)
		if err != nil {
			denied++
			if _, again := call(user); again == nil || again.Error() != err.Error() {
				t.Fatalf("seed %d: denied once with %v, then %v", seed, err, again)
			}
			continue
		}
		admitted++
		checkComplete(t, seed, once)
		checkKept(t, seed, user, once)
		twice, err := call(once)
		if err != nil || !equality.Semantic.DeepEqual(twice, once) {
			t.Fatalf("seed %d: the second call: %v\n%s", seed, err, cmp.Diff(once, twice))
		}
		name := slices.Sorted(maps.Keys(edits))[r.IntN(len(edits))]
		edit := edits[name]
		later, err := call(changed(once, edit.do))
		if err != nil {
			continue // the edit conflicts with the proxy
		}
		edited++
		checkComplete(t, seed, later)
		if again, err := call(later); err != nil || !equality.Semantic.DeepEqual(again, later) {
			t.Fatalf("seed %d: %s: a further call changes the Pod: %v\n%s", seed, name, err, cmp.Diff(later, again))
		}
		if !edit.adds {
			continue
		}
		fresh, err := call(changed(user, edit.do))
		if err != nil || !equality.Semantic.DeepEqual(sorted(later), sorted(fresh)) {
			t.Fatalf("seed %d: the result depends on whether %s comes before or after the call: %v\n%s", seed, name, err, cmp.Diff(sorted(fresh), sorted(later)))
		}
	}
	if denied < 500 || admitted < 500 || edited < 500 {
		t.Errorf("the random Pods cover too little: %d denied, %d admitted, %d edited", denied, admitted, edited)
	}
}

func call(pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	err := inject(pod, image)
	return pod, err
}

func changed(pod *corev1.Pod, edit func(*corev1.Pod)) *corev1.Pod {
	pod = pod.DeepCopy()
	edit(pod)
	return pod
}

// edits are changes that users or other webhooks may make to a Pod between two calls.
var edits = map[string]struct {
	adds bool // the edit only adds parts
	do   func(*corev1.Pod)
}{
	"add a container": {true, withContainer(corev1.Container{Name: "late"})},
	"add a sidecar first": {true, func(p *corev1.Pod) {
		p.Spec.InitContainers = slices.Insert(p.Spec.InitContainers, 0, corev1.Container{Name: "rival"})
	}},
	"add a volume":          {true, withVolume(corev1.Volume{Name: "late"})},
	"add a mount":           {true, mounting(corev1.VolumeMount{Name: "late", MountPath: "/late"})},
	"add an annotation":     {true, func(p *corev1.Pod) { p.Annotations = map[string]string{"late": "yes"} }},
	"remove the container":  {false, func(p *corev1.Pod) { p.Spec.InitContainers = without(p.Spec.InitContainers) }},
	"remove the volume":     {false, func(p *corev1.Pod) { p.Spec.Volumes = nil }},
	"remove the mounts":     {false, func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = nil }},
	"remove the annotation": {false, func(p *corev1.Pod) { delete(p.Annotations, StatusAnnotation) }},
	"change the image":      {false, func(p *corev1.Pod) { changeAll(p, func(c *corev1.Container) { c.Image = "mirror/" + c.Image }) }},
	"reverse":               {false, func(p *corev1.Pod) { slices.Reverse(p.Spec.InitContainers); slices.Reverse(p.Spec.Volumes) }},
	"use the volume":        {false, func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: VolumeName}} }},
}

func without(containers []corev1.Container) []corev1.Container {
	return slices.DeleteFunc(containers, func(c corev1.Container) bool { return c.Name == ContainerName })
}

func changeAll(p *corev1.Pod, change func(*corev1.Container)) {
	for _, c := range containers(&p.Spec) {
		change(c)
	}
}

func randomPod(r *rand.Rand) *corev1.Pod {
	pod := newPod()
	pod.Spec.Containers = randomContainers(r, "app", "web", ContainerName)
	pod.Spec.InitContainers = randomContainers(r, "setup", "migrate")[r.IntN(2):]
	for _, v := range []corev1.Volume{data, volume(), {Name: VolumeName}}[:r.IntN(4)] {
		if r.IntN(3) == 0 && !hasVolume(&pod.Spec) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		}
	}
	return pod
}

func randomContainers(r *rand.Rand, names ...string) []corev1.Container {
	var list []corev1.Container
	for _, name := range names[:1+r.IntN(len(names))] {
		c := corev1.Container{Name: name, Image: name + ":v1"}
		for _, m := range []corev1.VolumeMount{
			{Name: "data", MountPath: "/data"},
			{Name: VolumeName, MountPath: "/other"},
			{Name: VolumeName, MountPath: MountPath + "/"},
			{Name: "data", MountPath: MountPath},
		} {
			if r.IntN(8) == 0 {
				c.VolumeMounts = append(c.VolumeMounts, m)
			}
		}
		list = append(list, c)
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// checkComplete calls the validating hook, and then checks that no part exists twice.
func checkComplete(t *testing.T, seed uint64, pod *corev1.Pod) {
	t.Helper()
	if err := verify(pod); err != nil {
		t.Fatalf("seed %d: incomplete: %v", seed, err)
	}
	seen := map[string]bool{}
	once := func(key string) {
		if seen[key] {
			t.Fatalf("seed %d: the Pod has %s twice", seed, key)
		}
		seen[key] = true
	}
	for _, v := range pod.Spec.Volumes {
		once("volume " + v.Name)
	}
	for _, c := range containers(&pod.Spec) {
		once("container " + c.Name)
		for _, m := range c.VolumeMounts {
			once(fmt.Sprintf("mount %s of %s", m.MountPath, c.Name))
		}
	}
}

// checkKept checks that the Pod still has all parts of the user, in the same order.
func checkKept(t *testing.T, seed uint64, user, after *corev1.Pod) {
	t.Helper()
	user, after = user.DeepCopy(), after.DeepCopy()
	mounts := map[string]int{}
	for _, c := range containers(&user.Spec) {
		mounts[c.Name] = len(c.VolumeMounts)
	}
	drop := func(list []corev1.Container) []corev1.Container {
		return slices.DeleteFunc(list, func(c corev1.Container) bool { _, had := mounts[c.Name]; return !had })
	}
	after.Annotations = user.Annotations
	after.Spec.Containers, after.Spec.InitContainers = drop(after.Spec.Containers), drop(after.Spec.InitContainers)
	after.Spec.Volumes = after.Spec.Volumes[:len(user.Spec.Volumes)]
	for _, c := range containers(&after.Spec) {
		c.VolumeMounts = c.VolumeMounts[:mounts[c.Name]]
	}
	if !equality.Semantic.DeepEqual(user, after) {
		t.Fatalf("seed %d: the injector changed a part of the user:\n%s", seed, cmp.Diff(user, after))
	}
}

// sorted returns the Pod with its lists sorted by name, because their order may depend on the order of calls.
func sorted(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	byName := func(a, b corev1.Container) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(pod.Spec.Containers, byName)
	slices.SortFunc(pod.Spec.InitContainers, byName)
	slices.SortFunc(pod.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range containers(&pod.Spec) {
		slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	}
	return pod
}
