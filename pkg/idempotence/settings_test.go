// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// TestSettingsAreLegal adds each known setting to a minimal Pod. The Pod must stay valid, and the API server must know
// the fields of the setting.
func TestSettingsAreLegal(t *testing.T) {
	k := objects.KindOf(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	pod := &corev1.Pod{}
	pod.Name, pod.Spec.Containers = "a", []corev1.Container{{Name: "a", Image: "a"}}
	doc, err := documentOf(pod)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, list := range edits.NewSettings(doc) {
		set := doc
		for _, e := range list {
			var ok bool
			if set, ok = e.Apply(set); !ok {
				t.Errorf("%v cannot be applied", e)
			}
		}
		o, err := k.Object(set)
		if err != nil {
			t.Errorf("%v: %v", list, err)
			continue
		}
		if errs := k8svalidation.Validate(o.Typed); len(errs) > 0 {
			t.Errorf("%v: %v", list, errs)
		}
		for _, e := range list {
			if got, ok := tree.Get(o.Doc, e.Path); e.What == edits.Put && (!ok || got == nil) && tree.Size(e.Value) > 1 {
				t.Errorf("%v: the API server does not know the field", e)
			}
		}
		n++
	}
	if n < 100 {
		t.Errorf("%d settings", n)
	}
}

// TestSettingsOfKindsAreKnown decodes each known setting of a kind with its Go type. All fields must exist, because the
// API server drops a misspelt field silently.
func TestSettingsOfKindsAreKnown(t *testing.T) {
	kinds := map[string]schema.GroupVersionKind{}
	for gvk := range objects.Builtins().AllKnownTypes() {
		if gvk.Version == "v1" || gvk.Group == "autoscaling" && gvk.Version == "v2" {
			if was, ok := kinds[gvk.Kind]; !ok || was.Group == "autoscaling" && was.Version == "v1" {
				kinds[gvk.Kind] = gvk
			}
		}
	}
	for name, list := range edits.KnownSettings() {
		switch name {
		case "pod", "container", "containers", "object":
			continue
		}
		gvk, ok := kinds[name]
		if !ok {
			t.Errorf("%s is not a kind", name)
			continue
		}
		k := objects.KindOf(gvk)
		for _, s := range list.([]any) {
			doc := tree.Clone(s).(edits.Fields)
			doc["apiVersion"], doc["kind"] = gvk.ToAPIVersionAndKind()
			o, err := k.Object(doc)
			if err != nil {
				t.Errorf("%s: %v: %v", name, s, err)
				continue
			}
			tree.Leaves(s, func(p tree.Path, value any) {
				if p[0].Name == "stringData" || value == nil || tree.Size(value) == 0 || p[len(p)-1].Element || value == "" {
					return // moved to data, or omitted when empty
				}
				if list, ok := value.([]any); ok && len(list) == 0 {
					return
				}
				if object, ok := value.(edits.Fields); ok && len(object) == 0 {
					return
				}
				if got, ok := tree.Get(o.Doc, p); !ok || got == nil {
					t.Errorf("%s has no %s", name, p)
				}
			})
		}
	}
}

// TestSettingsReplaceNoValue adds settings to an object. NewSettings must not replace an existing value.
func TestSettingsReplaceNoValue(t *testing.T) {
	doc := edits.Fields{"spec": edits.Fields{"containers": []any{edits.Fields{"name": "a", "resources": edits.Fields{"limits": edits.Fields{"cpu": "2"}}}}, "hostNetwork": false}}
	for _, list := range edits.NewSettings(doc) {
		for _, e := range list {
			if e.What == edits.Put && tree.Has(doc, e.Path) {
				t.Errorf("%v replaces an existing value", e)
			}
		}
	}
}
