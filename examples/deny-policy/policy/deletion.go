// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// validateDeletion denies the deletion of protected objects. It decodes only their metadata. It takes the
// name from the object, because a request from a deletecollection has no name.
func validateDeletion(_ context.Context, req *webhook.Request[metav1.PartialObjectMetadata]) error {
	old, err := req.OldObject()
	if err != nil {
		return err
	}
	_, protected := old.Labels[ProtectedLabel]
	if !protected || old.Annotations[AllowDeletionAnnotation] == "true" {
		return nil
	}
	return webhook.Denyf("%s %q has the label %s; to delete it, annotate it with %s=true first",
		req.Kind.Kind, old.Name, ProtectedLabel, AllowDeletionAnnotation)
}

// validateEviction denies an eviction that shortens the grace period of the Pod.
func validateEviction(_ context.Context, req *webhook.Request[policyv1.Eviction]) error {
	options := ptr.Deref(req.Object.DeleteOptions, metav1.DeleteOptions{})
	if grace := options.GracePeriodSeconds; grace != nil && *grace == 0 {
		return webhook.Deny("an eviction with gracePeriodSeconds 0 kills the Pod without a graceful shutdown: omit gracePeriodSeconds, so that the Pod's terminationGracePeriodSeconds applies")
	}
	return nil
}
