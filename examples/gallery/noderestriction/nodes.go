// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"context"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// node lets a node write and delete its own Node. It must not set restricted labels, nor change its taints or owner
// references.
func node(_ context.Context, name string, req *webhook.Request[corev1.Node]) error {
	switch {
	case req.Name != name:
		return deny(req, "node %q is not allowed to modify node %q", name, req.Name)
	case req.Operation == admissionv1.Create:
		return newNode(name, req)
	case req.Operation == admissionv1.Update:
		return changedNode(name, req)
	}
	return nil
}

func newNode(name string, req *webhook.Request[corev1.Node]) error {
	if configSource(req.Object) != nil {
		return deny(req, "node %q is not allowed to create pods with a non-nil configSource", name)
	}
	if keys := restrictedChanges(req.Object.Labels, nil); len(keys) > 0 {
		return deny(req, "node %q is not allowed to set the following labels: %s", name, strings.Join(keys, ", "))
	}
	return nil
}

func changedNode(name string, req *webhook.Request[corev1.Node]) error {
	old, err := req.OldObject()
	if err != nil {
		return err
	}
	n := req.Object
	switch {
	// Old kubelets drop the field when they update the status, so it may be removed.
	case configSource(n) != nil && !equality.Semantic.DeepEqual(configSource(n), configSource(old)):
		return deny(req, "node %q is not allowed to update configSource to a new non-nil configSource", name)
	case !equality.Semantic.DeepEqual(n.Spec.Taints, old.Spec.Taints):
		return deny(req, "node %q is not allowed to modify taints", name)
	case !equality.Semantic.DeepEqual(n.OwnerReferences, old.OwnerReferences):
		return deny(req, "node %q is not allowed to modify ownerReferences", name)
	}
	if keys := restrictedChanges(n.Labels, old.Labels); len(keys) > 0 {
		return deny(req, "is not allowed to modify labels: %s", strings.Join(keys, ", "))
	}
	return nil
}

// configSource returns a field that kubelets no longer use. The original still restricts it.
func configSource(n *corev1.Node) *corev1.NodeConfigSource {
	return n.Spec.ConfigSource //nolint:staticcheck // it is deprecated, but can still be set
}

// restrictedChanges returns the sorted keys of the labels that differ and that a node may not change.
func restrictedChanges(labels, old map[string]string) []string {
	all := map[string]string{}
	maps.Copy(all, old)
	maps.Copy(all, labels)
	maps.DeleteFunc(all, func(key, _ string) bool {
		value, ok := labels[key]
		before, had := old[key]
		return ok == had && value == before || !isRestricted(key)
	})
	return slices.Sorted(maps.Keys(all))
}

// kubeletLabels are the labels in the domains of Kubernetes that a node may set.
var kubeletLabels = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone,
	corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable,
	corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// isRestricted reports whether a node must not set this label, such as one with the prefix
// node-restriction.kubernetes.io/.
func isRestricted(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	within := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	switch {
	case !ok, !within("kubernetes.io") && !within("k8s.io"):
		return false
	case slices.Contains(kubeletLabels, key):
		return false
	}
	return !within(corev1.LabelNamespaceSuffixKubelet) && !within(corev1.LabelNamespaceSuffixNode)
}
