// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// RuntimeObject returns the object as a Go value, which is unstructured for a custom resource.
func (k *Kind) RuntimeObject(o *Object) runtime.Object {
	if o == nil {
		return nil
	}
	if o.Typed != nil {
		return o.Typed
	}
	fields, _ := tree.Clone(o.Doc).(map[string]any)
	return &unstructured.Unstructured{Object: fields}
}

// KnowsValid reports whether the harness can validate objects of the kind.
func (k *Kind) KnowsValid() bool {
	switch {
	case k.Custom != nil, k.Server != nil:
		return true
	case k.GoType == nil:
		return false
	}
	object, ok := reflect.New(k.GoType).Interface().(runtime.Object)
	return ok && k8svalidation.Knows(object)
}
