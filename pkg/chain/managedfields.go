// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
)

// defaultManager is the field manager of a request that names none.
const defaultManager = "admitkit"

// fieldManagers stamp managedFields as the API server does before admission. The time of the
// stamp has a fraction of a second, which the first patch cuts off: this is why a patch without effect
// counts as a change.
type fieldManagers struct {
	objects *objects
	known   sync.Map // of managedKind to *managedfields.FieldManager
}

type managedKind struct {
	schema.GroupVersionKind
	subresource string
}

// builtInFields knows the fields of Kubernetes' own types. Parsing their schema takes long.
var builtInFields = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(builtIn())
})

func (f *fieldManagers) stamp(kind schema.GroupVersionKind, subresource string, live, obj runtime.Object, manager string) (runtime.Object, error) {
	m, err := f.manager(managedKind{kind, subresource})
	if err != nil {
		return nil, err
	}
	if live == nil {
		if live, err = f.objects.New(kind); err != nil {
			return nil, err
		}
	}
	if manager == "" {
		manager = defaultManager
	}
	obj = m.UpdateNoErrors(live, obj, manager)
	f.objects.internal(live)
	return f.objects.internal(obj), nil
}

func (f *fieldManagers) manager(kind managedKind) (*managedfields.FieldManager, error) {
	if m, ok := f.known.Load(kind); ok {
		return m.(*managedfields.FieldManager), nil
	}
	var m *managedfields.FieldManager
	var err error
	gv := kind.GroupVersion()
	if hasSchema(kind.GroupVersionKind) {
		m, err = managedfields.NewDefaultFieldManager(builtInFields(), f.objects, f.objects, f.objects, kind.GroupVersionKind, gv, kind.subresource, nil)
	} else {
		m, err = managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), f.objects, f.objects, f.objects, kind.GroupVersionKind, gv, kind.subresource, nil)
	}
	if err != nil {
		return nil, err
	}
	f.known.Store(kind, m)
	return m, nil
}

// hasSchema tries it: Kubernetes' own types without clients, such as Scale, have none.
func hasSchema(kind schema.GroupVersionKind) bool {
	obj, err := builtIn().New(kind)
	if err != nil {
		return false
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	_, err = builtInFields().ObjectToTyped(obj)
	return err == nil
}

// internal takes the TypeMeta from a built-in object.
func (o *objects) internal(obj runtime.Object) runtime.Object {
	if _, ok := obj.(runtime.Unstructured); !ok {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj
}
