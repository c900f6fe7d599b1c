// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ownedFields is the part of a managedFields entry with the owned caBundles. Package
// sigs.k8s.io/structured-merge-diff/fieldpath documents the format.
type ownedFields struct {
	Webhooks map[string]struct {
		ClientConfig struct {
			CABundle *struct{} `json:"f:caBundle"`
		} `json:"f:clientConfig"`
	} `json:"f:webhooks"`
}

// writtenAt returns when the field manager last changed a value of the object. The API server keeps
// the time if an apply changes nothing.
func (k *Client) writtenAt(object *unstructured.Unstructured) time.Time {
	var last time.Time
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == k.fieldManager && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// ownedWebhooks returns the names of the webhooks whose caBundle the field manager has applied.
func (k *Client) ownedWebhooks(object *unstructured.Unstructured) map[string]bool {
	owned := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != k.fieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var fields ownedFields
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue // an unknown format: no field is known to be ours
		}
		for element, webhook := range fields.Webhooks {
			var key struct{ Name string }
			text, isKey := strings.CutPrefix(element, "k:")
			if isKey && json.Unmarshal([]byte(text), &key) == nil && webhook.ClientConfig.CABundle != nil {
				owned[key.Name] = true
			}
		}
	}
	return owned
}
