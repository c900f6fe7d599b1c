// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestOwnedWebhooks(t *testing.T) {
	const bundle = `{"f:clientConfig":{"f:caBundle":{}}}`
	entry := func(fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: testManager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	other, update, empty := entry(`{"f:webhooks":{"k:{\"name\":\"a\"}":`+bundle+`}}`), entry(`{"f:webhooks":{"k:{\"name\":\"a\"}":`+bundle+`}}`), entry("")
	other.Manager, update.Operation, empty.FieldsV1 = "other", metav1.ManagedFieldsOperationUpdate, nil
	rows := []struct {
		why   string
		entry metav1.ManagedFieldsEntry
		want  map[string]bool
	}{
		{"a bundle", entry(`{"f:webhooks":{"k:{\"name\":\"a\"}":` + bundle + `,"k:{\"name\":\"b\"}":` + bundle + `}}`), map[string]bool{"a": true, "b": true}},
		{"something else", entry(`{"f:webhooks":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:clientConfig":{"f:url":{}},"f:name":{}}}}`), map[string]bool{}},
		{"another kind of key", entry(`{"f:webhooks":{"v:\"a\"":` + bundle + `,"i:0":` + bundle + `,"k:[]":` + bundle + `}}`), map[string]bool{}},
		{"the form is not known", entry(`{"f:webhooks":[]}`), map[string]bool{}},
		{"another manager", other, map[string]bool{}},
		{"another operation", update, map[string]bool{}},
		{"no fields", empty, map[string]bool{}},
	}
	k := &Client{fieldManager: testManager}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetManagedFields([]metav1.ManagedFieldsEntry{row.entry})
			if diff := cmp.Diff(k.ownedWebhooks(object), row.want); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}
