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

// fillTraits are the traits of objects that are generated from their schema alone.
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

// A filler fills an object by its schema. Its build generates values of types whose valid values the schema does not
// describe.
type filler struct {
	*build
	filling float64 // probability of an optional member at the top of a custom resource
	full    bool    // add every member that is allowed
	turn    int     // in a full object, the index of the value that each enum gets
	made    int     // number of optional members added
}

// may decides with probability p whether the object gets a trait, and records the trait.
func (b *build) may(name string, p float64) bool {
	if b.density == 0 || b.Without[name] || !b.chance(p) {
		return false
	}
	b.traits = append(b.traits, name)
	return true
}

// fillMembers adds missing members to o: all required ones, and some optional ones.
func (f *filler) fillMembers(n *node, o object, depth int) bool {
	if n == nil {
		return true
	}
	if n.typ == reflect.TypeFor[corev1.PodTemplateSpec]() {
		f.podIn(o, forever)
		return true
	}
	needed := f.needed(n, o)
	for i := range n.fields {
		m := n.fields[(i+f.turn)%len(n.fields)] // if the number of members is limited, each turn starts at a different one
		if depth == 0 && (m.name == "status" || m.name == "metadata" || m.name == "apiVersion" || m.name == "kind") {
			continue
		}
		if v, there := o[m.name]; there {
			f.fillMore(m.node, v, depth+1)
			continue
		}
		if !m.required && !slices.Contains(needed, m.name) {
			if isBuiltIn(n.typ) || depth > deep || f.without(n, o, m.name) || !f.may(traitOptional, f.optional(depth)) {
				continue
			}
		}
		v, ok := f.fill(m.node, depth+1)
		if !ok && m.required {
			return false
		}
		if ok {
			o[m.name] = v
		}
	}
	return true
}

// fillMore adds members to an existing value.
func (f *filler) fillMore(n *node, v any, depth int) {
	if n == nil || n.sort == anySort {
		return
	}
	switch v := v.(type) {
	case object:
		if n.sort == objectSort && (!isBuiltIn(n.typ) || n.typ == reflect.TypeFor[corev1.PodTemplateSpec]()) {
			f.fillMembers(n, v, depth)
		}
	case []any:
		for _, e := range v {
			f.fillMore(n.elem, e, depth+1)
		}
	}
}

// fill generates a value. It returns false if it finds no valid one.
func (f *filler) fill(n *node, depth int) (any, bool) {
	if expert, ok := experts[n.typ]; ok {
		return expert(f.build), true
	}
	switch {
	case n.nullable && !f.full && f.may(traitNull, 0.1):
		return nil, true
	case n.standard != nil && !f.full && f.may(traitDefault, 0.2):
		return tree.Clone(n.standard), true
	case len(n.enum) > 0 && f.full:
		return tree.Clone(n.enum[f.turn%len(n.enum)]), true
	case len(n.enum) > 0:
		return tree.Clone(pick(f.build, n.enum...)), true
	}
	switch n.sort {
	case objectSort:
		o := object{}
		if n.embedded {
			o = object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "inner"}}
		}
		ok := f.fillMembers(n, o, depth)
		return o, ok && f.atLeast(n, o, depth)
	case mapSort:
		return f.fillMap(n, depth)
	case listSort:
		return f.fillList(n, depth)
	}
	return f.scalar(n)
}

func (f *filler) fillMap(n *node, depth int) (any, bool) {
	o := object{}
	count := n.limits.size(n.limits.minProperties(), n.limits.maxProperties(), f.between(1, 2))
	if n.limits.minProperties() == 0 && (depth > deep || !f.full && f.may(traitEmptyMap, 0.1)) {
		count = 0
	}
	if count > mostItems {
		return nil, false
	}
	for i := range count {
		v, ok := f.fill(n.elem, depth+1)
		if !ok {
			return o, int64(len(o)) >= n.limits.minProperties()
		}
		o["key-"+strconv.FormatInt(i, 10)] = v
	}
	return o, true
}

// fillList generates a list. Elements are distinct where the schema demands it.
func (f *filler) fillList(n *node, depth int) (any, bool) {
	low, high := n.limits.minItems(), n.limits.maxItems()
	count := n.limits.size(low, high, f.between(1, 3))
	switch {
	case f.full && depth <= deep:
		count = n.limits.size(low, high, 2)
	case low == 0 && (depth > deep || f.may(traitEmptyList, 0.1)):
		count = 0
	case depth <= 3 && f.may(traitLong, 0.02):
		count = n.limits.size(low, high, 30)
	}
	list := []any{}
	if low > mostItems {
		return nil, false
	}
	for tries := count * 4; int64(len(list)) < count && tries > 0; tries-- {
		e, ok := f.fill(n.elem, depth+1)
		if ok && !n.holds(list, e) {
			list = append(list, e)
		}
	}
	return list, int64(len(list)) >= low
}

// holds reports whether the list already has an equal element, so that it must not get this one.
func (n *node) holds(list []any, element any) bool {
	if n.collection != Set && n.collection != Keyed && !n.limits.unique() {
		return false
	}
	id := n.identity(element)
	return slices.ContainsFunc(list, func(e any) bool { return n.identity(e) == id })
}

// experts generate values of core types in custom resources. The tags of these types do not describe which values
// are valid.
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

// nowhere returns the scope of an empty Pod.
func (b *build) nowhere() *scope {
	return &scope{build: b, meta: object{}, spec: object{}, rules: forever}
}
