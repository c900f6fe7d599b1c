// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// Types lists the types that the tests decode into, in a fixed order: all types of client-go's scheme including options
// and lists, other types of the API server, and odd types.
var Types = sync.OnceValue(func() []reflect.Type { return slices.Concat(builtin(), oddTypes()) })

var builtin = sync.OnceValue(func() []reflect.Type {
	distinct := map[reflect.Type]bool{
		reflect.TypeFor[admissionv1.AdmissionReview]():                  true,
		reflect.TypeFor[admissionv1beta1.AdmissionReview]():             true,
		reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]():     true,
		reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionList](): true,
		reflect.TypeFor[apiextensionsv1.ConversionReview]():             true,
	}
	for _, t := range scheme.Scheme.AllKnownTypes() {
		distinct[t] = true
	}
	return slices.SortedFunc(maps.Keys(distinct), func(a, b reflect.Type) int {
		return cmp.Or(cmp.Compare(a.PkgPath(), b.PkgPath()), cmp.Compare(a.Name(), b.Name()))
	})
})

// generatedTypes is the number of types that [TypeFor] generates besides [Types].
const generatedTypes = 256

// TypeFor maps any number to a type: one of [Types] or a generated one.
func TypeFor(selector uint16) reflect.Type {
	types := Types()
	i := int(selector) % (len(types) + generatedTypes)
	if i < len(types) {
		return types[i]
	}
	return randomType(int64(i - len(types)))
}
