// SPDX-License-Identifier: Apache-2.0

package customresource

import (
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	structuralpruning "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Coerce drops unknown fields from a custom resource, as decoding into Go types does for built-in types, and returns
// an error for each of them. If lenient, it also drops malformed metadata.
func (r *Resource) Coerce(u *unstructured.Unstructured, lenient bool) (unknown []error, err error) {
	kind := u.GroupVersionKind()
	s := r.schema(kind.Version)
	meta, found, paths, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{DropMalformedFields: lenient, ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	if !r.Definition.Spec.PreserveUnknownFields {
		paths = append(paths, structuralpruning.PruneWithOptions(u.Object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		structuraldefaulting.PruneNonNullableNullsWithoutDefaults(u.Object, s)
	}
	problem, more := objectmeta.CoerceWithOptions(nil, u.Object, s, false, objectmeta.CoerceOptions{DropInvalidFields: lenient, ReturnUnknownFieldPaths: true})
	if problem != nil {
		return nil, problem
	}
	u.SetGroupVersionKind(kind)
	if found {
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, err
		}
	}
	for _, path := range append(paths, more...) {
		unknown = append(unknown, fmt.Errorf("unknown field %q", path))
	}
	return unknown, nil
}

// Default sets the defaults of the schema.
func (r *Resource) Default(u *unstructured.Unstructured) {
	structuraldefaulting.Default(u.Object, r.schema(u.GroupVersionKind().Version))
}

// schema returns the structural schema of a version, or nil for an unknown version.
func (r *Resource) schema(version string) *structuralschema.Structural {
	if v := r.Versions[version]; v != nil {
		return v.schema
	}
	return nil
}
