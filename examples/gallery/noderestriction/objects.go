// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// lease lets a node change the Lease that has its name, in the namespace kube-node-lease.
func lease(_ context.Context, node string, req *webhook.Request[coordinationv1.Lease]) error {
	name := req.Name
	if req.Operation == admissionv1.Create {
		name = req.Object.Name
	}
	switch {
	case req.Namespace != corev1.NamespaceNodeLease:
		return deny(req, "can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case name != node:
		return deny(req, "can only access node lease with the same name as the requesting node")
	}
	return nil
}

// csiNode lets a node change the CSINode that has its name.
func csiNode(_ context.Context, node string, req *webhook.Request[storagev1.CSINode]) error {
	name := req.Name
	if req.Operation == admissionv1.Create {
		name = req.Object.Name
	}
	if name != node {
		return deny(req, "can only access CSINode with the same name as the requesting node")
	}
	return nil
}

// resourceSlice lets a node create and delete its own ResourceSlices. The node authorizer checks updates.
func resourceSlice(_ context.Context, node string, req *webhook.Request[resourcev1.ResourceSlice]) error {
	verb := "create"
	if req.Operation == admissionv1.Delete {
		verb = "delete"
	}
	slice, err := req.ObjectOrOld()
	if err != nil {
		return err
	}
	if ptr.Deref(slice.Spec.NodeName, "") != node {
		return deny(req, "can only %s ResourceSlice with the same NodeName as the requesting node", verb)
	}
	return nil
}

// claim lets nodes report the size of a volume and the progress of its expansion. The node authorizer has checked that
// a Pod on the node uses the claim.
func claim(_ context.Context, node string, req *webhook.Request[corev1.PersistentVolumeClaim]) error {
	switch {
	case req.SubResource != "status":
		return deny(req, "may only update PVC status")
	case req.Operation != admissionv1.Update:
		return deny(req, "unexpected operation %q", req.Operation)
	}
	old, err := req.OldObject()
	if err != nil {
		return err
	}
	if before, after := withoutExpansion(old), withoutExpansion(req.Object); !equality.Semantic.DeepEqual(before, after) {
		return deny(req, "node %q is not allowed to update fields other than status.quantity and status.conditions: %v", node, diff.Diff(before, after))
	}
	return nil
}

// withoutExpansion returns a copy of the claim without the fields that a node may change.
func withoutExpansion(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim = claim.DeepCopy()
	claim.ResourceVersion, claim.ManagedFields = "", nil
	status := &claim.Status
	status.Capacity, status.Conditions, status.AllocatedResources, status.AllocatedResourceStatuses = nil, nil, nil, nil
	return claim
}
