// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"maps"
	"reflect"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"

	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// DefaultManager is the field manager of a request that does not name one.
const DefaultManager = "admitkit"

// FieldManagers sets managedFields as the API server does before admission. The time in them has a fraction of a second,
// which is lost when the first patch is applied. This is why a patch without effect counts as a change.
type FieldManagers struct {
	objects    *Objects
	known      sync.Map // from managedKind to *managedfields.FieldManager
	converters sync.Map // from the schema.GroupKind of a custom resource to its managedfields.TypeConverter
}

// NewFieldManagers returns FieldManagers for the kinds of objects in o.
func NewFieldManagers(o *Objects) *FieldManagers { return &FieldManagers{objects: o} }

type managedKind struct {
	schema.GroupVersionKind
	subresource string
}

// builtInFields returns a converter that knows the fields of Kubernetes' own types. It parses their schema once,
// because that is slow.
var builtInFields = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(strategy.BuiltIn())
})

// stamp sets the managedFields of obj. live is the stored object, or nil on CREATE.
func (f *FieldManagers) stamp(kind schema.GroupVersionKind, subresource string, live, obj runtime.Object, manager string) error {
	m, err := f.manager(managedKind{kind, subresource})
	if err != nil {
		return err
	}
	if live == nil {
		if live, err = f.objects.New(kind); err != nil {
			return err
		}
	}
	if manager == "" {
		manager = DefaultManager
	}
	to, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	stamped, err := m.Update(live, f.withoutReset(kind, subresource, live, obj), manager)
	f.objects.internal(live)
	f.objects.internal(obj)
	if err != nil { // such as a value of a wrong type: the API server continues without managedFields (UpdateNoErrors)
		to.SetManagedFields(nil)
		return nil
	}
	from, err := meta.Accessor(stamped)
	if err != nil {
		return err
	}
	to.SetManagedFields(from.GetManagedFields())
	return nil
}

// withoutReset returns a copy of obj with the stored values in the fields that the API server resets. So the request
// does not own these fields (resetFields in the API server). On an update of the status, the API server resets the
// other fields. On other requests, it resets the status.
func (f *FieldManagers) withoutReset(kind schema.GroupVersionKind, subresource string, live, obj runtime.Object) runtime.Object {
	from, isCustom := live.(*unstructured.Unstructured)
	switch v := f.objects.CustomVersion(kind); {
	case isCustom && (v == nil || !v.HasStatus):
		return obj
	case isCustom && subresource == "":
		return keepMembers(obj.(*unstructured.Unstructured), from, "status")
	case isCustom && subresource == "status":
		return keepMembers(obj.(*unstructured.Unstructured), from, "metadata", "spec")
	case isCustom || !strategy.BuiltIn().Recognizes(kind):
		return obj
	case subresource == "":
		return keepField(obj, live, "Status")
	case subresource == "status":
		return keepField(obj, live, "Spec")
	}
	return obj
}

func keepMembers(obj, live *unstructured.Unstructured, names ...string) runtime.Object {
	kept := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	for _, name := range names {
		if value, ok := live.Object[name]; ok {
			kept.Object[name] = value
		} else {
			delete(kept.Object, name)
		}
	}
	if m, ok := kept.Object["metadata"].(map[string]any); ok { // the caller changes managedFields in it
		kept.Object["metadata"] = maps.Clone(m)
	}
	return kept
}

func keepField(obj, live runtime.Object, name string) runtime.Object {
	own, other := strategy.Field(obj, name), strategy.Field(live, name)
	if !own.IsValid() || own.IsZero() && other.IsZero() {
		return obj
	}
	v := reflect.ValueOf(obj).Elem()
	kept := reflect.New(v.Type())
	kept.Elem().Set(v)
	kept.Elem().FieldByName(name).Set(other)
	return kept.Interface().(runtime.Object)
}

func (f *FieldManagers) manager(kind managedKind) (*managedfields.FieldManager, error) {
	if m, ok := f.known.Load(kind); ok {
		return m.(*managedfields.FieldManager), nil
	}
	fields, err := f.Converter(kind.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	create := managedfields.NewDefaultCRDFieldManager
	if hasSchema(kind.GroupVersionKind) {
		create = managedfields.NewDefaultFieldManager
	}
	m, err := create(fields, f.objects, f.objects, f.objects, kind.GroupVersionKind, kind.GroupVersion(), kind.subresource, nil)
	if err != nil {
		return nil, err
	}
	f.known.Store(kind, m)
	return m, nil
}

// fields returns a converter that knows the fields of all versions of the custom resource, as
// buildOpenAPIModelsForApply does.
func (r *customResource) fields() (managedfields.TypeConverter, error) {
	merged, err := builder.MergeSpecsV3()
	if err != nil {
		return nil, err
	}
	for _, v := range r.Definition.Spec.Versions {
		one, err := builder.BuildOpenAPIV3(r.Definition, v.Name, builder.Options{})
		if err != nil {
			return nil, err
		}
		if merged, err = builder.MergeSpecsV3(merged, one); err != nil {
			return nil, err
		}
	}
	return managedfields.NewTypeConverter(merged.Components.Schemas, r.Definition.Spec.PreserveUnknownFields)
}

// hasSchema reports whether the schema of a kind is known. Kubernetes' own types without clients, such as Scale, have no
// schema.
func hasSchema(kind schema.GroupVersionKind) bool {
	obj, err := strategy.BuiltIn().New(kind)
	if err != nil {
		return false
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	_, err = builtInFields().ObjectToTyped(obj)
	return err == nil
}

// Converter returns the converter for the fields of a kind. For a custom resource without a definition, it is one that
// deduces the fields from the object.
func (f *FieldManagers) Converter(kind schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if hasSchema(kind) {
		return builtInFields(), nil
	}
	r := f.objects.Custom[kind.GroupKind()]
	if r == nil {
		return managedfields.NewDeducedTypeConverter(), nil
	}
	if known, ok := f.converters.Load(kind.GroupKind()); ok {
		return known.(managedfields.TypeConverter), nil
	}
	fields, err := r.fields()
	if err != nil {
		return nil, err
	}
	f.converters.Store(kind.GroupKind(), fields)
	return fields, nil
}
