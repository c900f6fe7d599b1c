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

// Coerce drops unknown fields from a custom resource, as the decoding of a built-in object does. It returns one error
// in unknown for each dropped field. It fails if the metadata is malformed. With lenient, it drops the malformed
// metadata instead.
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

// Default sets the missing fields of u that have a default in the schema of its version.
func (r *Resource) Default(u *unstructured.Unstructured) {
	structuraldefaulting.Default(u.Object, r.schema(u.GroupVersionKind().Version))
}

// schema returns the structural schema of a version of the resource, or nil for an unknown version.
func (r *Resource) schema(version string) *structuralschema.Structural {
	if v := r.Versions[version]; v != nil {
		return v.schema
	}
	return nil
}
