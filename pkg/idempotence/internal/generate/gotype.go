// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/internal/shape"
)

// ForType returns the schema of a built-in struct type, or of a pointer to one. It contains only what the struct tags
// declare.
func ForType(t reflect.Type) *Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	c := typeCompiler{}
	s := &Schema{root: c.node(shape.Of(t)), kind: kinds[t]}
	if o, ok := reflect.New(t).Interface().(runtime.Object); ok {
		if gvks, _, err := scheme.Scheme.ObjectKinds(o); err == nil {
			s.GVK = gvks[0]
		}
	}
	s.Cluster = s.kind != nil && s.kind.rules.cluster
	return s
}

// isBuiltIn reports whether a type is a built-in type of Kubernetes.
func isBuiltIn(t reflect.Type) bool {
	return t != nil && (strings.HasPrefix(t.PkgPath(), "k8s.io/api/") || strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/"))
}

// metadataNode returns the node for metadata, which all schemas of custom resources share.
var metadataNode = sync.OnceValue(func() *node { return typeCompiler{}.node(shape.Of(reflect.TypeFor[metav1.ObjectMeta]())) })

// typeCompiler holds the nodes of the types seen so far, including unfinished ones.
type typeCompiler map[*shape.Shape]*node

func (c typeCompiler) node(s *shape.Shape) *node {
	for s.Kind == shape.Pointer {
		s = s.Elem
	}
	if n, ok := c[s]; ok {
		return n
	}
	n := &node{typ: s.Type, sort: sortOf(s)}
	c[s] = n
	switch s.Kind {
	case shape.Struct:
		c.fields(n, s)
	case shape.Map:
		n.elem, n.collection = c.node(s.Elem), Map
	case shape.List:
		n.elem, n.collection = c.node(s.Elem), Atomic
	}
	return n
}

func (c typeCompiler) fields(n *node, s *shape.Shape) {
	for i := range s.Fields {
		f := &s.Fields[i]
		inner := c.node(f.Shape)
		if inner.sort == listSort {
			inner = c.list(s, f, inner)
		}
		if inner.sort == textSort && f.Name == "protocol" && isBuiltIn(s.Type) {
			inner = &node{sort: textSort, standard: "TCP"}
		}
		n.fields = append(n.fields, member{f.Name, inner, !f.OmitEmpty && !f.OmitZero})
	}
	slices.SortFunc(n.fields, func(a, b member) int { return strings.Compare(a.name, b.name) })
}

// list compiles a list. The tags of its field declare the keys of the elements.
func (c typeCompiler) list(s *shape.Shape, f *shape.Field, n *node) *node {
	twin := *n
	tag := s.Type.FieldByIndex(f.Index).Tag
	switch keys, known := listKeys[listField{s.Type, f.Name}]; {
	case known:
		twin.collection, twin.keys = Keyed, keys
	case f.MergeKey != "":
		twin.collection, twin.keys = Keyed, []string{f.MergeKey}
	case strings.HasPrefix(tag.Get("patchStrategy"), "merge") && n.elem.sort != objectSort:
		twin.collection = Set
	}
	return &twin
}

// sortOf returns the kind of JSON value for a Go type. It is only as exact as the identity of list elements requires.
func sortOf(s *shape.Shape) sort {
	switch s.Kind {
	case shape.String:
		return textSort
	case shape.Struct:
		return objectSort
	case shape.Map:
		return mapSort
	case shape.List:
		return listSort
	}
	return anySort
}

type listField struct {
	typ  reflect.Type
	name string
}

// listKeys has the list keys that are missing from the struct tags. The API declares them as listMapKey markers, which
// are comments.
var listKeys = map[listField][]string{
	{reflect.TypeFor[corev1.Container](), "ports"}:                      {"containerPort", "protocol"},
	{reflect.TypeFor[corev1.EphemeralContainer](), "ports"}:             {"containerPort", "protocol"},
	{reflect.TypeFor[corev1.PodSpec](), "topologySpreadConstraints"}:    {"topologyKey", "whenUnsatisfiable"},
	{reflect.TypeFor[corev1.ServiceSpec](), "ports"}:                    {"port", "protocol"},
	{reflect.TypeFor[corev1.ResourceRequirements](), "claims"}:          {"name"},
	{reflect.TypeFor[corev1.PodStatus](), "containerStatuses"}:          {"name"},
	{reflect.TypeFor[corev1.PodStatus](), "initContainerStatuses"}:      {"name"},
	{reflect.TypeFor[corev1.PodStatus](), "ephemeralContainerStatuses"}: {"name"},
	{reflect.TypeFor[appsv1.DeploymentStatus](), "conditions"}:          {"type"},
	{reflect.TypeFor[appsv1.StatefulSetStatus](), "conditions"}:         {"type"},
}
