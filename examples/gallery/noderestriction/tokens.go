// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// token lets a node request tokens that are bound to one of its Pods.
func (in Cluster) token(ctx context.Context, node string, req *webhook.Request[authenticationv1.TokenRequest]) error {
	ref := req.Object.Spec.BoundObjectRef
	switch {
	case ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "":
		return deny(req, "node requested token not bound to a pod")
	case ref.UID == "":
		return deny(req, "node requested token with a pod binding without a uid")
	}
	pod, err := existing(ctx, in.Pods, "pod", req.Namespace, ref.Name)
	switch {
	case err != nil:
		return err
	case ref.UID != pod.UID:
		return deny(req, "the UID in the bound object reference (%s) does not match the UID in record. "+
			"The object might have been deleted and then recreated", ref.UID)
	case pod.Spec.NodeName != node:
		return deny(req, "node requested token bound to a pod scheduled on a different node")
	}
	return in.audience(ctx, req, pod)
}

// audience denies a token for an audience that no volume of the Pod has, unless the node has the permission for the
// verb request-serviceaccounts-token-audience.
func (in Cluster) audience(ctx context.Context, req *webhook.Request[authenticationv1.TokenRequest], pod *corev1.Pod) error {
	audience := "" // the default audience of the API server
	switch list := req.Object.Spec.Audiences; len(list) {
	case 0:
	case 1:
		audience = list[0]
	default:
		return deny(req, "node may only request 0 or 1 audiences")
	}
	found, err := in.anyVolumeHas(pod, audience)
	switch {
	case err != nil:
		return deny(req, "error validating audience %q: %s", audience, err)
	case found:
		return nil
	}
	answer, err := in.Access.May(ctx, req.UserInfo, authorizationv1.ResourceAttributes{
		Verb: "request-serviceaccounts-token-audience", Version: "v1", Resource: audience, Namespace: req.Namespace, Name: req.Name,
	})
	user := req.UserInfo.Username
	switch {
	case err != nil || answer.Allowed:
		return err
	case answer.EvaluationError != "":
		return deny(req, "audience %q not found in pod spec volume, error authorizing %s to request tokens for this audience: %s", audience, user, answer.EvaluationError)
	}
	return deny(req, "audience %q not found in pod spec volume, %s is not authorized to request tokens for this audience", audience, user)
}
