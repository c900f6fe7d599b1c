// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// kinds lists all kinds of objects that client-go knows, and CustomResourceDefinition.
var kinds = sync.OnceValue(func() []reflect.Type {
	found := map[reflect.Type]bool{reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](): true}
	for _, t := range scheme.Scheme.AllKnownTypes() {
		if reflect.PointerTo(t).Implements(reflect.TypeFor[metav1.Object]()) {
			found[t] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(x, y reflect.Type) int {
		return cmp.Or(cmp.Compare(x.PkgPath(), y.PkgPath()), cmp.Compare(x.Name(), y.Name()))
	})
})

// favourites are the kinds with the most lists and nested fields.
var favourites = []reflect.Type{
	reflect.TypeFor[corev1.Pod](), reflect.TypeFor[appsv1.Deployment](), reflect.TypeFor[gadget](), reflect.TypeFor[gadget](),
}

// A view is the Go type in which a handler sees an object.
type view struct {
	kind reflect.Type // of the object
	typ  reflect.Type // of the value that the document is decoded into
	how  string
}

var unstructured = reflect.TypeFor[map[string]any]()

func (v view) isTyped() bool { return v.typ != unstructured }

func (v view) String() string { return fmt.Sprintf("%s, %s", v.kind, v.how) }

// projections is the number of projections of each kind.
const projections = 24

func randomView(r *rand.Rand) view {
	kind := favourites[r.Intn(len(favourites))]
	if r.Intn(2) == 0 {
		kind = kinds()[r.Intn(len(kinds()))]
	}
	switch r.Intn(8) {
	case 0:
		return view{kind, unstructured, "unstructured"}
	case 1, 2:
		n := r.Intn(projections)
		return view{kind, projection(kind, int64(n)), fmt.Sprint("projection ", n)}
	}
	return view{kind, kind, "typed"}
}

var projectionCache sync.Map

// projection returns a type with some of the fields of t. The types of these fields are projections, too.
func projection(t reflect.Type, seed int64) reflect.Type {
	type key struct {
		t    reflect.Type
		seed int64
	}
	if p, ok := projectionCache.Load(key{t, seed}); ok {
		return p.(reflect.Type)
	}
	p, _ := projectionCache.LoadOrStore(key{t, seed}, project(t, rand.New(rand.NewSource(seed)), 0))
	return p.(reflect.Type)
}

func project(t reflect.Type, r *rand.Rand, depth int) reflect.Type {
	if (place{typ: t}).opaque() || depth > 8 {
		return t
	}
	switch t.Kind() {
	case reflect.Pointer:
		return reflect.PointerTo(project(t.Elem(), r, depth))
	case reflect.Slice:
		return reflect.SliceOf(project(t.Elem(), r, depth))
	case reflect.Array:
		return reflect.ArrayOf(t.Len(), project(t.Elem(), r, depth))
	case reflect.Map:
		return reflect.MapOf(t.Key(), project(t.Elem(), r, depth))
	case reflect.Struct:
		return projectStruct(t, r, depth)
	}
	return t
}

func projectStruct(t reflect.Type, r *rand.Rand, depth int) reflect.Type {
	var fields []reflect.StructField
	taken := map[string]bool{}
	for _, f := range fieldsOf(t) {
		often := depth == 0 || f.name == "name"
		if r.Intn(3) > 0 && !often || r.Intn(4) == 0 {
			continue
		}
		field := t.FieldByIndex(f.index)
		if taken[field.Name] {
			continue
		}
		taken[field.Name] = true
		tag := field.Tag
		if r.Intn(2) == 0 {
			tag = reflect.StructTag(fmt.Sprintf("json:%q", tag.Get("json"))) // without its merge key
		}
		fields = append(fields, reflect.StructField{Name: field.Name, Type: project(f.typ, r, depth+1), Tag: tag})
	}
	return reflect.StructOf(fields)
}
