// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"cmp"
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// pod lets a node create mirror Pods, delete its Pods and update their status.
func (in Cluster) pod(ctx context.Context, node string, req *webhook.Request[corev1.Pod]) error {
	switch {
	case req.SubResource == "status":
		return podStatus(node, req)
	case req.SubResource != "":
		return deny(req, "unexpected pod subresource %q, only 'status' and 'eviction' are allowed", req.SubResource)
	case req.Operation == admissionv1.Create:
		return in.mirrorPod(ctx, node, req)
	case req.Operation != admissionv1.Delete:
		return deny(req, "unexpected operation %q, node %q can only create and delete mirror pods", req.Operation, node)
	}
	old, err := req.OldObject()
	if err != nil {
		return err
	}
	if old.Spec.NodeName != node {
		return deny(req, "node %q can only delete pods with spec.nodeName set to itself", node)
	}
	return nil
}

// podStatus lets a node update the status of its Pods, but not their labels. Nor may it change the statuses of claims,
// which the scheduler and the ResourceClaim controller record.
func podStatus(node string, req *webhook.Request[corev1.Pod]) error {
	if req.Operation != admissionv1.Update {
		return deny(req, "unexpected operation %q", req.Operation)
	}
	old, err := req.OldObject()
	if err != nil {
		return err
	}
	pod := req.Object
	switch {
	case old.Spec.NodeName != node:
		return deny(req, "node %q can only update pod status for pods with spec.nodeName set to itself", node)
	case !labels.Equals(old.Labels, pod.Labels):
		return deny(req, "node %q cannot update labels through pod status", node)
	case !equality.Semantic.DeepEqual(old.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses):
		return deny(req, "node %q cannot update resource claim statues", node)
	case !equality.Semantic.DeepEqual(old.Status.ExtendedResourceClaimStatus, pod.Status.ExtendedResourceClaimStatus):
		return deny(req, "node %q cannot update extended resource claim status", node)
	}
	return nil
}

// eviction lets a node evict its Pods.
func (in Cluster) eviction(ctx context.Context, node string, req *webhook.Request[policyv1.Eviction]) error {
	if req.Operation != admissionv1.Create {
		return deny(req, "unexpected operation %s", req.Operation)
	}
	name := cmp.Or(req.Name, req.Object.Name)
	if name == "" {
		return deny(req, "could not determine pod from request data")
	}
	pod, err := existing(ctx, in.Pods, "pod", req.Namespace, name)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != node {
		return deny(req, "node %s can only evict pods with spec.nodeName set to itself", node)
	}
	return nil
}

func binding(_ context.Context, _ string, req *webhook.Request[corev1.Binding]) error {
	return deny(req, "unexpected pod subresource %q, only 'status' and 'eviction' are allowed", req.SubResource)
}

// mirrorPod lets a node create a mirror Pod that runs on the node and refers to no API object except its Node.
func (in Cluster) mirrorPod(ctx context.Context, node string, req *webhook.Request[corev1.Pod]) error {
	pod := req.Object
	_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case !isMirror:
		return deny(req, "pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, node)
	case pod.Spec.NodeName != node:
		return deny(req, "node %q can only create pods with spec.nodeName set to itself", node)
	case len(pod.OwnerReferences) > 1:
		return deny(req, "node %q can only create pods with a single owner reference set to itself", node)
	}
	if err := in.ownedByNode(ctx, node, req); err != nil {
		return err
	}
	switch referred, err := referredTo(pod); {
	case err != nil:
		return deny(req, "error checking mirror pod for API references: %s", err)
	case referred != "":
		return deny(req, "node %q can not create pods that reference %s", node, referred)
	}
	return nil
}

// ownedByNode denies a Pod unless its first owner reference names the node as its controller, and does not block
// deletion.
func (in Cluster) ownedByNode(ctx context.Context, node string, req *webhook.Request[corev1.Pod]) error {
	var owner metav1.OwnerReference
	if len(req.Object.OwnerReferences) > 0 {
		owner = req.Object.OwnerReferences[0]
	}
	switch {
	case owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != node:
		return deny(req, "node %q can only create pods with an owner reference set to itself", node)
	case !ptr.Deref(owner.Controller, false):
		return deny(req, "node %q can only create pods with a controller owner reference set to itself", node)
	case ptr.Deref(owner.BlockOwnerDeletion, false):
		return deny(req, "node %q must not set blockOwnerDeletion on an owner reference", node)
	}
	stored, err := existing(ctx, in.Nodes, "node", "", node)
	if err != nil {
		return err
	}
	if owner.UID != stored.UID {
		return deny(req, "node %s UID mismatch: expected %s got %s", node, owner.UID, stored.UID)
	}
	return nil
}
