// SPDX-License-Identifier: Apache-2.0

package customresource

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PrepareForCreate resets the status of a new object and sets its generation. The API server does this after it has
// called the mutating webhooks.
func (v *Version) PrepareForCreate(u *unstructured.Unstructured) {
	if v.HasStatus {
		delete(u.Object, "status")
	}
	u.SetGeneration(1)
}

// PrepareForUpdate restores the fields that an update of the object, or of the subresource, cannot change.
func (v *Version) PrepareForUpdate(u, old *unstructured.Unstructured, subresource string) {
	if subresource == "status" {
		v.prepareForStatus(u, old)
		return
	}
	if v.HasStatus {
		if status, ok := old.Object["status"]; ok {
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
	}
	if !apiequality.Semantic.DeepEqual(withoutMetadata(u), withoutMetadata(old)) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
}

// prepareForStatus restores everything except the status from the old object.
func (v *Version) prepareForStatus(u, old *unstructured.Unstructured) {
	status, ok := u.Object["status"]
	managed := u.GetManagedFields()
	u.Object = old.DeepCopy().Object
	u.SetManagedFields(managed)
	if ok {
		u.Object["status"] = status
	} else {
		delete(u.Object, "status")
	}
}

func withoutMetadata(u *unstructured.Unstructured) map[string]any {
	rest := make(map[string]any, len(u.Object))
	for name, value := range u.Object {
		if name != "metadata" {
			rest[name] = value
		}
	}
	return rest
}
