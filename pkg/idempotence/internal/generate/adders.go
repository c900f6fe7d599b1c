// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type memberOf struct {
	typ  reflect.Type
	name string
}

var metaType = reflect.TypeFor[metav1.ObjectMeta]()

// An adder generates a value for a list or map in the object m: an element of the list, or a name and a value for the
// map.
type adder func(b *build, m object) (name string, value any, ok bool)

// adders has an adder for each member of a built-in type that another party may add to. Kinds with containers have
// no adders here, because package edits generates the additions to them.
var adders = map[memberOf]adder{
	{metaType, "labels"}:          entryOf("labels"),
	{metaType, "annotations"}:     entryOf("annotations"),
	{metaType, "finalizers"}:      element(freshFinalizer),
	{metaType, "ownerReferences"}: element(func(b *build, _ object) any { return b.owner(false) }),

	{reflect.TypeFor[corev1.ConfigMap](), "data"}:    entryOfData("text\n"),
	{reflect.TypeFor[corev1.Secret](), "data"}:       entryOfData(blob),
	{reflect.TypeFor[corev1.Secret](), "stringData"}: entryOfData("text\n"),
	{reflect.TypeFor[corev1.ServiceAccount](), "imagePullSecrets"}: element(func(b *build, m object) any {
		return object{"name": b.fresh(func(name string) bool { return has(m, "imagePullSecrets", "name", name) }, "registry", "stranger")}
	}),
	{reflect.TypeFor[corev1.ServiceSpec](), "ports"}:       addedPort,
	{reflect.TypeFor[corev1.ServiceSpec](), "selector"}:    entryOf("selector"),
	{reflect.TypeFor[networkingv1.IngressSpec](), "rules"}: element(func(b *build, _ object) any { return b.ingressRule() }),
}

func element(of func(b *build, m object) any) adder {
	return func(b *build, m object) (string, any, bool) { return "", of(b, m), true }
}

// entryOf returns an adder for the named map of strings.
func entryOf(name string) adder {
	return func(b *build, m object) (string, any, bool) {
		entries, _ := m[name].(object)
		key, value := b.freshEntry(entries)
		return key, value, true
	}
}

// entryOfData returns an adder for one of the maps of a ConfigMap or Secret, which must not share keys.
func entryOfData(value string) adder {
	return func(b *build, m object) (string, any, bool) {
		taken := func(key string) bool {
			return slices.ContainsFunc([]string{"data", "binaryData", "stringData"}, func(name string) bool {
				entries, _ := m[name].(object)
				return entries[key] != nil
			})
		}
		return b.fresh(taken, "stranger", "added.yaml"), value, true
	}
}

// addedPort generates a port if all ports of the Service have names. A single port needs no name, but if there are
// several, each needs one.
func addedPort(b *build, m object) (string, any, bool) {
	ports := objects(m, "ports")
	for _, p := range ports {
		if p["name"] == nil {
			return "", nil, false
		}
	}
	return "", b.servicePort(m), len(ports) > 0
}

func freshFinalizer(b *build, m object) any {
	taken := func(name string) bool { return slices.Contains(listOf(m, "finalizers"), any(name)) }
	return b.fresh(taken, "example.com/added", "example.com/hold")
}
