// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An adding describes where a value is added: m is the object that gets the value, c is the container around
// m, if any, and scope is the Pod.
type adding struct {
	*scope
	c, m object
}

type memberOf struct {
	typ  reflect.Type
	name string
}

var (
	podSpecType   = reflect.TypeFor[corev1.PodSpec]()
	containerType = reflect.TypeFor[corev1.Container]()
	metaType      = reflect.TypeFor[metav1.ObjectMeta]()
)

// An adder generates an element, or a member and its name.
type adder func(*adding) (name string, value any, ok bool)

// adders has an adder for each member of a built-in type that another party may add to.
var adders = map[memberOf]adder{
	{podSpecType, "containers"}:     element(func(a *adding) any { return a.stranger() }),
	{podSpecType, "initContainers"}: element(strangeInit),
	{podSpecType, "volumes"}:        element(func(a *adding) any { return a.volume(append(volumeNames, "stranger")...) }),
	{podSpecType, "tolerations"}:    element(func(a *adding) any { return a.toleration() }),
	{podSpecType, "imagePullSecrets"}: element(func(a *adding) any {
		return object{"name": a.fresh(func(name string) bool { return has(a.m, "imagePullSecrets", "name", name) }, "registry", "stranger")}
	}),
	{podSpecType, "hostAliases"}: func(a *adding) (string, any, bool) {
		v, ok := a.hostAlias()
		return "", v, ok
	},
	{podSpecType, "topologySpreadConstraints"}: func(a *adding) (string, any, bool) {
		v, ok := a.spread()
		return "", v, ok
	},
	{podSpecType, "readinessGates"}: element(func(a *adding) any {
		return object{"conditionType": a.fresh(func(name string) bool { return has(a.m, "readinessGates", "conditionType", name) }, "example.com/ready", "example.com/other")}
	}),
	{podSpecType, "nodeSelector"}: entryOf("nodeSelector"),

	{containerType, "env"}:     element(func(a *adding) any { return a.freshEnv(a.c) }),
	{containerType, "envFrom"}: element(func(a *adding) any { return a.envSource() }),
	{containerType, "ports"}:   element(func(a *adding) any { return a.port(a.c) }),
	{containerType, "volumeMounts"}: func(a *adding) (string, any, bool) {
		m := a.mount(a.c)
		return "", m, m != nil
	},
	{containerType, "args"}:                                      element(func(a *adding) any { return pick(a.build, "--added", "-v=3", "") }),
	{containerType, "command"}:                                   behind("command", func(*adding) any { return "--added" }),
	{reflect.TypeFor[corev1.ResourceRequirements](), "limits"}:   strangeSize,
	{reflect.TypeFor[corev1.ResourceRequirements](), "requests"}: strangeSize,

	{reflect.TypeFor[corev1.NodeAffinity](), preferred}:                  element(func(a *adding) any { return a.weighed("preference", a.nodeTerm()) }),
	{reflect.TypeFor[corev1.NodeSelector](), "nodeSelectorTerms"}:        element(func(a *adding) any { return a.nodeTerm() }),
	{reflect.TypeFor[corev1.PodAffinity](), preferred}:                   element(weighedPodTerm),
	{reflect.TypeFor[corev1.PodAntiAffinity](), preferred}:               element(weighedPodTerm),
	{reflect.TypeFor[corev1.PodAffinity](), required}:                    element(func(a *adding) any { return a.podTerm() }),
	{reflect.TypeFor[corev1.PodAntiAffinity](), required}:                element(func(a *adding) any { return a.podTerm() }),
	{reflect.TypeFor[corev1.PodSecurityContext](), "supplementalGroups"}: element(func(a *adding) any { return a.between(6000, 60000) }),

	{metaType, "labels"}:          entryOf("labels"),
	{metaType, "annotations"}:     entryOf("annotations"),
	{metaType, "finalizers"}:      element(freshFinalizer),
	{metaType, "ownerReferences"}: element(func(a *adding) any { return a.owner(false) }),

	{reflect.TypeFor[corev1.ConfigMap](), "data"}:    entryOfData("text\n"),
	{reflect.TypeFor[corev1.Secret](), "data"}:       entryOfData(blob),
	{reflect.TypeFor[corev1.Secret](), "stringData"}: entryOfData("text\n"),
	{reflect.TypeFor[corev1.ServiceAccount](), "imagePullSecrets"}: element(func(a *adding) any {
		return object{"name": a.fresh(func(name string) bool { return has(a.m, "imagePullSecrets", "name", name) }, "registry", "stranger")}
	}),
	{reflect.TypeFor[corev1.ServiceSpec](), "ports"}:       addedPort,
	{reflect.TypeFor[corev1.ServiceSpec](), "selector"}:    entryOf("selector"),
	{reflect.TypeFor[networkingv1.IngressSpec](), "rules"}: element(func(a *adding) any { return a.ingressRule() }),
	{reflect.TypeFor[appsv1.StatefulSetSpec](), "volumeClaimTemplates"}: element(func(a *adding) any {
		taken := claimTemplates(object{"spec": a.m})
		name := a.fresh(func(name string) bool {
			for _, t := range taken {
				if t == name {
					return true
				}
			}
			return false
		}, "claim", "stranger")
		return object{"metadata": object{"name": name}, "spec": claimSpec(a.build)}
	}),
}

func element(of func(*adding) any) adder {
	return func(a *adding) (string, any, bool) { return "", of(a), true }
}

// behind adds only after existing elements, because a first element would have another meaning.
func behind(list string, of func(*adding) any) adder {
	return func(a *adding) (string, any, bool) {
		if len(listOf(a.m, list)) == 0 {
			return "", nil, false
		}
		return "", of(a), true
	}
}

// entryOf adds to a map of strings.
func entryOf(name string) adder {
	return func(a *adding) (string, any, bool) {
		m, _ := a.m[name].(object)
		key, value := a.freshEntry(m)
		return key, value, true
	}
}

// entryOfData adds to one of the maps of a ConfigMap or Secret, unless the object is immutable.
func entryOfData(value string) adder {
	return func(a *adding) (string, any, bool) {
		if a.m["immutable"] == true && a.Update {
			return "", nil, false
		}
		return a.fresh(func(key string) bool { return a.hasKey(key) }, "stranger", "added.yaml"), value, true
	}
}

// hasKey reports whether one of the maps of a ConfigMap or Secret has the key. The maps must not share keys.
func (a *adding) hasKey(key string) bool {
	for _, name := range []string{"data", "binaryData", "stringData"} {
		if m, _ := a.m[name].(object); m[key] != nil {
			return true
		}
	}
	return false
}

func (a *adding) stranger() object {
	c := a.container(a.siblings()...)
	a.settings(c,
		func(object) {}, func(c object) { envs(a.scope, c) }, func(c object) { ports(a.scope, c) },
		func(c object) { a.resources(c, true, true, plainSizes) }, func(c object) { command(a.scope, c) },
		func(c object) {
			if m := a.mount(c); m != nil {
				appendTo(c, "volumeMounts", m)
			}
		},
	)
	return c
}

func strangeInit(a *adding) any {
	c := a.stranger()
	if a.chance(0.3) {
		c["restartPolicy"] = "Always"
	}
	return c
}

func strangeSize(a *adding) (string, any, bool) { return a.freshResource(a.m) }

// addedPort adds only beside ports with names. A single port needs no name, but several do.
func addedPort(a *adding) (string, any, bool) {
	ports := objects(a.m, "ports")
	for _, p := range ports {
		if p["name"] == nil {
			return "", nil, false
		}
	}
	return "", a.servicePort(a.m), len(ports) > 0
}

func weighedPodTerm(a *adding) any { return a.weighed("podAffinityTerm", a.podTerm()) }

func freshFinalizer(a *adding) any {
	return a.fresh(func(name string) bool {
		for _, f := range listOf(a.m, "finalizers") {
			if f == name {
				return true
			}
		}
		return false
	}, "example.com/added", "example.com/hold")
}
