// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// fillTraits are those of objects that are filled by their schema alone.
var fillTraits = []string{traitOptional, traitEmptyList, traitEmptyMap, traitLong, traitNull, traitEdge, traitDefault}

const (
	traitOptional  = "optional members"
	traitEmptyList = "empty lists"
	traitEmptyMap  = "empty maps"
	traitLong      = "long lists"
	traitNull      = "null members"
	traitEdge      = "values at their limits"
	traitDefault   = "defaults written out"

	deep = 8
)

// may is a trait that is drawn with chance p.
func (b *build) may(name string, p float64) bool {
	if b.density == 0 || b.Without[name] || !b.chance(p) {
		return false
	}
	b.traits = append(b.traits, name)
	return true
}

// fillMembers adds members that o does not have: those that are required, and some others.
func (b *build) fillMembers(n *node, o object, depth int) bool {
	if n == nil {
		return true
	}
	if n.typ == reflect.TypeFor[corev1.PodTemplateSpec]() {
		b.podIn(o, forever)
		return true
	}
	needed := b.needed(n, o)
	for i := range n.fields {
		m := n.fields[(i+b.turn)%len(n.fields)] // where there is not room for all, others come first each time
		if depth == 0 && (m.name == "status" || m.name == "metadata" || m.name == "apiVersion" || m.name == "kind") {
			continue
		}
		if v, there := o[m.name]; there {
			b.fillMore(m.node, v, depth+1)
			continue
		}
		if !m.required && !slices.Contains(needed, m.name) {
			if isBuiltIn(n.typ) || depth > deep || b.without(n, o, m.name) || !b.may(traitOptional, b.optional(depth)) {
				continue
			}
		}
		v, ok := b.fill(m.node, depth+1)
		if !ok && m.required {
			return false
		}
		if ok {
			o[m.name] = v
		}
	}
	return true
}

// fillMore adds to a value that is there.
func (b *build) fillMore(n *node, v any, depth int) {
	if n == nil || n.sort == anySort {
		return
	}
	switch v := v.(type) {
	case object:
		if n.sort == objectSort && (!isBuiltIn(n.typ) || n.typ == reflect.TypeFor[corev1.PodTemplateSpec]()) {
			b.fillMembers(n, v, depth)
		}
	case []any:
		for _, e := range v {
			b.fillMore(n.elem, e, depth+1)
		}
	}
}

// fill makes a value, or says that it cannot.
func (b *build) fill(n *node, depth int) (any, bool) {
	if expert, ok := experts[n.typ]; ok {
		return expert(b), true
	}
	switch {
	case n.nullable && !b.full && b.may(traitNull, 0.1):
		return nil, true
	case n.standard != nil && !b.full && b.may(traitDefault, 0.2):
		return tree.Clone(n.standard), true
	case len(n.enum) > 0 && b.full:
		return tree.Clone(n.enum[b.turn%len(n.enum)]), true
	case len(n.enum) > 0:
		return tree.Clone(pick(b, n.enum...)), true
	}
	switch n.sort {
	case objectSort:
		o := object{}
		if n.embedded {
			o = object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "inner"}}
		}
		ok := b.fillMembers(n, o, depth)
		return o, ok && b.atLeast(n, o, depth)
	case mapSort:
		return b.fillMap(n, depth)
	case listSort:
		return b.fillList(n, depth)
	}
	return b.scalar(n)
}

func (b *build) fillMap(n *node, depth int) (any, bool) {
	o := object{}
	count := n.limits.size(n.limits.minProperties(), n.limits.maxProperties(), b.between(1, 2))
	if n.limits.minProperties() == 0 && (depth > deep || !b.full && b.may(traitEmptyMap, 0.1)) {
		count = 0
	}
	if count > mostItems {
		return nil, false
	}
	for i := range count {
		v, ok := b.fill(n.elem, depth+1)
		if !ok {
			return o, int64(len(o)) >= n.limits.minProperties()
		}
		o["key-"+strconv.FormatInt(i, 10)] = v
	}
	return o, true
}

// fillList makes a list in which no two elements are one where that is not legal.
func (b *build) fillList(n *node, depth int) (any, bool) {
	low, high := n.limits.minItems(), n.limits.maxItems()
	count := n.limits.size(low, high, b.between(1, 3))
	switch {
	case b.full && depth <= deep:
		count = n.limits.size(low, high, 2)
	case low == 0 && (depth > deep || b.may(traitEmptyList, 0.1)):
		count = 0
	case depth <= 3 && b.may(traitLong, 0.02):
		count = n.limits.size(low, high, 30)
	}
	list := []any{}
	if low > mostItems {
		return nil, false
	}
	for tries := count * 4; int64(len(list)) < count && tries > 0; tries-- {
		e, ok := b.fill(n.elem, depth+1)
		if ok && !n.holds(list, e) {
			list = append(list, e)
		}
	}
	return list, int64(len(list)) >= low
}

// holds reports whether the list may not have the element because it has one like it.
func (n *node) holds(list []any, element any) bool {
	if n.collection != Set && n.collection != Keyed && !n.limits.unique() {
		return false
	}
	id := n.identity(element)
	return slices.ContainsFunc(list, func(e any) bool { return n.identity(e) == id })
}

// experts make values of the core types that a custom resource may have, whose tags do not say what is
// valid.
var experts = map[reflect.Type]func(*build) any{
	reflect.TypeFor[corev1.PodTemplateSpec](): func(b *build) any {
		o := object{"metadata": object{}, "spec": object{}}
		b.podIn(o, forever)
		return o
	},
	reflect.TypeFor[corev1.PodSpec](): func(b *build) any {
		o := object{"metadata": object{}, "spec": object{}}
		b.podIn(o, forever)
		return o["spec"]
	},
	reflect.TypeFor[corev1.Container](): func(b *build) any {
		s := b.nowhere()
		c := s.container(words...)
		s.settings(c, func(c object) { envs(s, c) }, func(c object) { ports(s, c) }, func(c object) { b.resources(c, true, true, oddSizes) })
		return c
	},
	reflect.TypeFor[corev1.Volume]():        func(b *build) any { return b.nowhere().volume(volumeNames...) },
	reflect.TypeFor[corev1.VolumeSource]():  func(b *build) any { return object{"emptyDir": emptyDir(b.nowhere())} },
	reflect.TypeFor[corev1.VolumeMount]():   func(b *build) any { return object{"name": "data", "mountPath": pick(b, mountPaths...)} },
	reflect.TypeFor[corev1.EnvVar]():        func(b *build) any { return b.env(pick(b, envNames...)) },
	reflect.TypeFor[corev1.EnvFromSource](): func(b *build) any { return b.envSource() },
	reflect.TypeFor[corev1.EnvVarSource]():  func(b *build) any { return b.valueFrom() },
	reflect.TypeFor[corev1.ContainerPort](): func(b *build) any { return b.nowhere().port(object{}) },
	reflect.TypeFor[corev1.ServicePort]():   func(b *build) any { return b.servicePort(object{}) },
	reflect.TypeFor[corev1.Toleration]():    func(b *build) any { return b.toleration() },
	reflect.TypeFor[corev1.Probe]():         func(b *build) any { return pick(b, httpProbe, tcpProbe, execProbe, grpcProbe)(b.nowhere()) },
	reflect.TypeFor[corev1.HostAlias]():     func(b *build) any { a, _ := b.nowhere().hostAlias(); return a },
	reflect.TypeFor[corev1.Affinity](): func(b *build) any {
		s := b.nowhere()
		nodeAffinity(s)
		return s.spec["affinity"]
	},
	reflect.TypeFor[corev1.TopologySpreadConstraint](): func(b *build) any { c, _ := b.nowhere().spread(); return c },
	reflect.TypeFor[corev1.ResourceRequirements](): func(b *build) any {
		c := object{}
		b.resources(c, b.chance(0.8), b.chance(0.8), oddSizes)
		return c["resources"]
	},
	reflect.TypeFor[corev1.PodSecurityContext](): func(b *build) any {
		s := b.nowhere()
		podSecurity(s)
		return s.spec["securityContext"]
	},
	reflect.TypeFor[corev1.SecurityContext](): func(b *build) any {
		c := object{}
		containerSecurity(b.nowhere(), c)
		return c["securityContext"]
	},
	reflect.TypeFor[corev1.PersistentVolumeClaimSpec](): func(b *build) any { return claimSpec(b) },
	reflect.TypeFor[corev1.LocalObjectReference]():      func(b *build) any { return object{"name": pick(b, words...)} },
	reflect.TypeFor[corev1.SecretKeySelector]():         func(b *build) any { return object{"name": pick(b, words...), "key": "token"} },
	reflect.TypeFor[corev1.ConfigMapKeySelector]():      func(b *build) any { return object{"name": pick(b, words...), "key": "config"} },
	reflect.TypeFor[metav1.LabelSelector]():             func(b *build) any { return b.selector() },
	reflect.TypeFor[metav1.ObjectMeta](): func(b *build) any {
		s := b.nowhere()
		s.run(templateMetaTraits)
		return s.meta
	},
}

// nowhere is a pod that has nothing yet.
func (b *build) nowhere() *scope {
	return &scope{build: b, meta: object{}, spec: object{}, rules: forever}
}
