// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

var podParts = []maker{volumePart, sidecarPart, initPart, tolerationPart, pullSecretPart, hostAliasPart}

func volumePart(m *partInputs) part {
	volume := []corev1.Volume{emptyDir(m.word), secretVolume(m.word, m.word+"-secret"), configVolume(m.word, m.word+"-config")}[m.IntN(3)]
	mount := corev1.VolumeMount{Name: m.word, MountPath: "/" + m.word}
	mounted := m.tryEach(func(c *corev1.Container) error { return ensureMount(c, mount) })
	ensured := func(ensure func(p *corev1.Pod) error, mounted edit) edit {
		return func(r *review.Request, p *corev1.Pod) error {
			if err := ensure(p); err != nil {
				return err
			}
			return mounted(r, p)
		}
	}
	here := func(p *corev1.Pod) error { return ensureVolume(p, volume) }
	has := func(p *corev1.Pod) bool { return hasVolume(p, m.word) }
	blindly := func(p *corev1.Pod) error {
		addVolume(p, volume)
		return nil
	}
	ensure := ensured(here, mounted)
	filled := volume
	if volume.EmptyDir != nil { // for which any other volume may take its place
		filled = secretVolume(m.word, m.word+"-secret")
	}
	return part{name: "volume", ensure: ensure, bugs: []bug{
		broken("volume guard removed", ensured(blindly, mounted), "L1"),
		broken("mount guard removed", ensured(here, m.each(func(c *corev1.Container) {
			addMount(c, mount)
		})), "L1", "L5"),
		broken("early return", unless(has, ensure), "L4b", "L5"),
		broken("path not checked", ensured(here, m.each(func(c *corev1.Container) {
			if !mountsVolume(c, m.word) {
				addMount(c, mount)
			}
		})), "L1", "L5"), // L1 if a generated object has a mount at the path
		broken("volume known by its name only", ensured(func(p *corev1.Pod) error {
			if !has(p) {
				addVolume(p, filled)
			}
			return nil
		}, mounted), "L5"),
		broken("random name", func(_ *review.Request, p *corev1.Pod) error {
			name := "v-" + randomHex()
			addVolume(p, emptyDir(name))
			for _, c := range m.others(p) {
				addMount(c, corev1.VolumeMount{Name: name, MountPath: "/" + name})
			}
			return nil
		}, "L1", "L3"),
	}}
}

// containerPart adds a container to the list that list returns.
func containerPart(m *partInputs, name string, list func(p *corev1.Pod) *[]corev1.Container) part {
	c := corev1.Container{Name: m.word, Image: m.word + ":v1"}
	blind := changes(func(p *corev1.Pod) { *list(p) = append(*list(p), c) })
	taken := func(p *corev1.Pod) bool { return nameTaken(p, c.Name) }
	oneList := broken("looks into one list only", unless(func(p *corev1.Pod) bool {
		return slices.ContainsFunc(*list(p), func(other corev1.Container) bool { return other.Name == c.Name })
	}, blind), "L5", "L1", "L4a")
	oneList.advice = name == "init container" // only a container in initContainers can be a sidecar
	return part{name: name, ensure: unless(taken, blind), bugs: []bug{
		broken("guard removed", blind, "L1"),
		oneList,
		broken("replaces the list", unless(taken, changes(func(p *corev1.Pod) { *list(p) = []corev1.Container{c} })), "L10", "L5", "L4b"),
		broken("random name", changes(func(p *corev1.Pod) {
			*list(p) = append(*list(p), corev1.Container{Name: "c-" + randomHex(), Image: c.Image})
		}), "L1", "L3"),
	}}
}

func sidecarPart(m *partInputs) part {
	return containerPart(m, "sidecar", func(p *corev1.Pod) *[]corev1.Container { return &p.Spec.Containers })
}

func initPart(m *partInputs) part {
	return containerPart(m, "init container", func(p *corev1.Pod) *[]corev1.Container { return &p.Spec.InitContainers })
}

func tolerationPart(m *partInputs) part {
	own := corev1.Toleration{Key: m.word, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	blind := changes(func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, own) })
	has := func(p *corev1.Pod) bool { return slices.Contains(p.Spec.Tolerations, own) }
	return part{name: "toleration", ensure: unless(has, blind), bugs: []bug{
		broken("guard removed", blind, "L1"),
		broken("one for each key", changes(func(p *corev1.Pod) {
			p.Spec.Tolerations = byName(append(p.Spec.Tolerations, own), func(t corev1.Toleration) string { return t.Key })
		}), "L10", "L5"),
		broken("replaces the list", unless(has, changes(func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{own} })), "L10", "L5", "L4b"),
	}}
}

func pullSecretPart(m *partInputs) part {
	own := corev1.LocalObjectReference{Name: m.word}
	blind := changes(func(p *corev1.Pod) { p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, own) })
	has := func(p *corev1.Pod) bool { return slices.Contains(p.Spec.ImagePullSecrets, own) }
	return part{name: "imagePullSecret", ensure: unless(has, blind), bugs: []bug{
		broken("guard removed", blind, "L1"),
		broken("replaces the list", unless(has, changes(func(p *corev1.Pod) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{own}
		})), "L10", "L5", "L4b"),
	}}
}

// hostAliasPart adds a host name for an address. The Pod may already have a host alias for that address.
func hostAliasPart(m *partInputs) part {
	own := corev1.HostAlias{IP: fmt.Sprintf("192.0.2.%d", 1+m.IntN(200)), Hostnames: []string{m.word + ".example.com"}}
	find := func(p *corev1.Pod) int {
		return slices.IndexFunc(p.Spec.HostAliases, func(a corev1.HostAlias) bool { return a.IP == own.IP })
	}
	blind := changes(func(p *corev1.Pod) { p.Spec.HostAliases = append(p.Spec.HostAliases, *own.DeepCopy()) })
	ensure := changes(func(p *corev1.Pod) {
		i := find(p)
		if i < 0 {
			p.Spec.HostAliases = append(p.Spec.HostAliases, *own.DeepCopy())
			return
		}
		if a := &p.Spec.HostAliases[i]; !slices.Contains(a.Hostnames, own.Hostnames[0]) {
			a.Hostnames = append(a.Hostnames, own.Hostnames[0])
		}
	})
	return part{name: "hostAlias", ensure: ensure, bugs: []bug{
		broken("guard removed", blind, "L1"),
		broken("replaces the entry", changes(func(p *corev1.Pod) {
			if i := find(p); i >= 0 {
				p.Spec.HostAliases[i] = *own.DeepCopy()
				return
			}
			p.Spec.HostAliases = append(p.Spec.HostAliases, *own.DeepCopy())
		}), "L5", "L10", "L4b"),
	}}
}
