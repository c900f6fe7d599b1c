// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/hack/bench/document"
)

// An edit is a change of a Pod in two forms. typed changes the Go value, as a handler does. wanted makes the
// same change in the document, which gives the expected result.
type edit struct {
	name   string
	before func(doc string) string // changes the document before the edit, nil for no change
	typed  func(*corev1.Pod)
	wanted func(meta, spec map[string]any)
}

var (
	proxy     = corev1.Container{Name: "proxy", Image: "registry.example.com/mesh/proxy:v2.3.1"}
	proxyTree = map[string]any{"name": "proxy", "image": "registry.example.com/mesh/proxy:v2.3.1"}
)

var edits = []edit{
	{name: "nothing"},
	{
		name:  "a quantity respelled, 250m as 0.25",
		typed: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("0.25") },
	},
	{
		name: "add an annotation", typed: func(p *corev1.Pod) { p.Annotations["example.com/seen"] = "true" },
		wanted: func(meta, _ map[string]any) { at(meta, "annotations")["example.com/seen"] = "true" },
	},
	{
		name:   "add a label where there are none",
		before: func(doc string) string { return without(doc, `"labels":{`, `},`) },
		typed:  func(p *corev1.Pod) { p.Labels = map[string]string{"team": "red"} },
		wanted: func(meta, _ map[string]any) { meta["labels"] = map[string]any{"team": "red"} },
	},
	{
		name:   "add a label where labels are null",
		before: func(doc string) string { return replaced(doc, `"labels":{`, `},`, `"labels":null,`) },
		typed:  func(p *corev1.Pod) { p.Labels = map[string]string{"team": "red"} },
		wanted: func(meta, _ map[string]any) { meta["labels"] = map[string]any{"team": "red"} },
	},
	{
		name: "change an image", typed: func(p *corev1.Pod) { p.Spec.Containers[1].Image = "mirror.example.com/web:1" },
		wanted: func(_, spec map[string]any) { item(spec, "containers", 1)["image"] = "mirror.example.com/web:1" },
	},
	{
		name:   "change an image; quantities are not canonical",
		before: func(doc string) string { return strings.ReplaceAll(doc, `"memory":"512Mi"`, `"memory":"0.5Gi"`) },
		typed:  func(p *corev1.Pod) { p.Spec.Containers[1].Image = "mirror.example.com/web:1" },
		wanted: func(_, spec map[string]any) { item(spec, "containers", 1)["image"] = "mirror.example.com/web:1" },
	},
	{
		name: "set a field of every container", typed: func(p *corev1.Pod) {
			for i := range p.Spec.Containers {
				p.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
			}
		},
		wanted: func(_, spec map[string]any) {
			for i := range spec["containers"].([]any) {
				item(spec, "containers", i)["imagePullPolicy"] = "Always"
			}
		},
	},
	{
		name: "remove a probe", typed: func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = nil },
		wanted: func(_, spec map[string]any) { delete(item(spec, "containers", 0), "readinessProbe") },
	},
	{
		name:   "set a limit where there are no resources",
		before: func(doc string) string { return strings.Replace(doc, `,"resources":{}`, "", 1) },
		typed: func(p *corev1.Pod) {
			p.Spec.InitContainers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
		},
		wanted: func(_, spec map[string]any) {
			item(spec, "initContainers", 0)["resources"] = map[string]any{"limits": map[string]any{"cpu": "1"}}
		},
	},
	{
		name:  "append a container",
		typed: func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, proxy) },
		wanted: func(_, spec map[string]any) {
			change(spec, "containers", func(list []any) []any { return append(list, proxyTree) })
		},
	},
	{
		name:  "prepend a container",
		typed: func(p *corev1.Pod) { p.Spec.Containers = slices.Insert(p.Spec.Containers, 0, proxy) },
		wanted: func(_, spec map[string]any) {
			change(spec, "containers", func(list []any) []any { return slices.Insert(list, 0, any(proxyTree)) })
		},
	},
	{
		name:  "prepend an init container",
		typed: func(p *corev1.Pod) { p.Spec.InitContainers = slices.Insert(p.Spec.InitContainers, 0, proxy) },
		wanted: func(_, spec map[string]any) {
			change(spec, "initContainers", func(list []any) []any { return slices.Insert(list, 0, any(proxyTree)) })
		},
	},
	{
		name:  "remove the first container",
		typed: func(p *corev1.Pod) { p.Spec.Containers = slices.Delete(p.Spec.Containers, 0, 1) },
		wanted: func(_, spec map[string]any) {
			change(spec, "containers", func(list []any) []any { return slices.Delete(list, 0, 1) })
		},
	},
	{
		name:  "swap two init containers",
		typed: func(p *corev1.Pod) { slices.Reverse(p.Spec.InitContainers) },
		wanted: func(_, spec map[string]any) {
			change(spec, "initContainers", func(list []any) []any { slices.Reverse(list); return list })
		},
	},
	{
		name: "remove a variable from the middle",
		typed: func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = slices.Delete(p.Spec.Containers[0].Env, 1, 2)
		},
		wanted: func(_, spec map[string]any) {
			change(item(spec, "containers", 0), "env", func(list []any) []any { return slices.Delete(list, 1, 2) })
		},
	},
	{
		name: "prepend a toleration, which has no key",
		typed: func(p *corev1.Pod) {
			p.Spec.Tolerations = slices.Insert(p.Spec.Tolerations, 0, corev1.Toleration{Key: "dedicated", Operator: "Exists"})
		},
		wanted: func(_, spec map[string]any) {
			change(spec, "tolerations", func(list []any) []any {
				return slices.Insert(list, 0, any(map[string]any{"key": "dedicated", "operator": "Exists"}))
			})
		},
	},
	{
		name: "inject a sidecar: container first, init container, volume, annotation",
		typed: func(p *corev1.Pod) {
			p.Annotations["example.com/injected"] = "true"
			p.Spec.Containers = slices.Insert(p.Spec.Containers, 0, proxy)
			p.Spec.InitContainers = slices.Insert(p.Spec.InitContainers, 0, corev1.Container{Name: "iptables", Image: proxy.Image})
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "mesh", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		},
		wanted: func(meta, spec map[string]any) {
			at(meta, "annotations")["example.com/injected"] = "true"
			change(spec, "containers", func(list []any) []any { return slices.Insert(list, 0, any(proxyTree)) })
			change(spec, "initContainers", func(list []any) []any {
				return slices.Insert(list, 0, any(map[string]any{"name": "iptables", "image": proxy.Image}))
			})
			change(spec, "volumes", func(list []any) []any {
				return append(list, map[string]any{"name": "mesh", "emptyDir": map[string]any{}})
			})
		},
	},
}

// pod returns the document before the edit. With newer, it has fields that the Go types lack.
func (e *edit) pod(newer bool) []byte {
	pod := document.Pod(2, 2)
	for _, name := range []string{"migrate", "warm-up"} {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: name, Image: "registry.example.com/team/web:v1.42.0"})
	}
	doc := string(document.MustEncode(pod))
	if e.before != nil {
		doc = e.before(doc)
	}
	if newer {
		doc = addUnknown(doc)
	}
	return []byte(doc)
}

const unknown = "zzNew"

// addUnknown adds a field that the Go types lack. It adds the field to the spec, and to every object in
// the spec that has a name. Each field has a different value.
func addUnknown(doc string) string {
	head, spec, _ := strings.Cut(doc, `"spec":{`)
	parts := strings.Split(spec, `{"name":`)
	for i := range parts[:len(parts)-1] {
		parts[i] += `{"` + unknown + `":"value ` + strconv.Itoa(i) + `","name":`
	}
	return head + `"spec":{"` + unknown + `":"of the spec",` + strings.Join(parts, "")
}

func at(object map[string]any, name string) map[string]any { return object[name].(map[string]any) }

func item(object map[string]any, list string, i int) map[string]any {
	return object[list].([]any)[i].(map[string]any)
}

// change calls by with a list of the object, and puts the result in place of the list.
func change(object map[string]any, list string, by func([]any) []any) {
	object[list] = by(object[list].([]any))
}

// without removes the first occurrence of from, the next occurrence of to, and everything between them.
func without(doc, from, to string) string { return replaced(doc, from, to, "") }

// replaced puts text in place of the first occurrence of from, the next occurrence of to, and everything between them.
func replaced(doc, from, to, text string) string {
	head, rest, _ := strings.Cut(doc, from)
	_, tail, _ := strings.Cut(rest, to)
	return head + text + tail
}
