// SPDX-License-Identifier: Apache-2.0

// Package noderestriction reimplements Kubernetes' admission controller NodeRestriction as hooks: a node, that is, a
// user system:node:NAME in the group system:nodes, may change only what belongs to it. This covers its Node, its Lease,
// its CSINode, its ResourceSlices, the status of its Pods and of their claims, mirror Pods, evictions, and tokens for
// its Pods. A node may not set labels with which it could attract Pods, nor change its taints.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/noderestriction. The hooks are mutating webhooks that change
// nothing, because the original runs in the mutating phase, too: it checks what the node sent. In the validating phase,
// a token request without audiences already has the default audiences of the API server. The hooks differ as follows:
//
//   - Requests in kube-system, and in the namespace of the webhook, are not checked. Otherwise a cluster could not
//     repair itself while the webhook is down: a node could not get tokens for the Pods there. So a stolen credential
//     of a node is more powerful than with the original. Use the original where you can.
//   - The API server does not call the hooks for other users. Nor does it call them for what a node needs to join and
//     to stay ready, if that cannot be denied: its own Lease and CSINode, its registration with usual labels, and its
//     status. So nodes can join, and the webhook can start on them, while the webhook is down.
//   - Pods and Nodes that the caches do not have yet are read from the API server. The original denies with 404.
//   - If the API server does not answer such a read, or an access review, the hook fails and the failurePolicy decides.
//   - For DELETE of a Pod, the hook checks the Pod that the API server sends. The original looks the Pod up by name. So
//     the original denies with 404 if the Pod is not in its cache, or if the request deletes a collection.
//   - The drivers of in-tree volumes come from a table. The original translates the whole volume, and denies the token
//     if the volume cannot be translated.
//   - The message of a denied change of a claim's status shows the difference as API JSON. The original shows Go field
//     names.
//
// The hooks behave as the original does with its default feature gates, so a node cannot create a
// PodCertificateRequest.
package noderestriction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/access"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Cluster contains the readers that the hooks need. All fields are required.
type Cluster struct {
	Pods    *reads.Reader[*corev1.Pod]
	Nodes   *reads.Reader[*corev1.Node]
	Claims  corelisters.PersistentVolumeClaimLister
	Volumes corelisters.PersistentVolumeLister
	Drivers storagelisters.CSIDriverLister
	// Access reports whether a node may request tokens for an audience that no volume of the Pod has.
	Access *access.Authorizer
}

// Hooks returns the hook that checks requests of nodes, and a hook that denies all requests of the user "system:node:"
// in the group system:nodes, because that names no node.
func Hooks(in Cluster) []*webhook.Hook {
	return []*webhook.Hook{
		webhook.MutatingKinds(admissionregistrationv1.MutatingWebhook{
			Name:            "noderestriction.example.com",
			Rules:           rules(),
			MatchConditions: []admissionregistrationv1.MatchCondition{sentByNode, notItsLease, notItsCSINode, notItsRegistration, notItsStatus},
		},
			ofNodes(in.pod), ofNodes(in.eviction), ofNodes(binding), ofNodes(node), ofNodes(claim), ofNodes(in.token),
			ofNodes(lease), ofNodes(csiNode), ofNodes(resourceSlice), ofNodes(signingRequest), ofNodes(podCertificateRequest),
		),
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:            "unnamed.noderestriction.example.com",
			Rules:           webhook.Rules(onAll("*", "*", "*/*")),
			MatchConditions: []admissionregistrationv1.MatchCondition{sentByUnnamedNode},
		}, unnamed),
	}
}

// rules lists everything that the original restricts for nodes.
func rules() []admissionregistrationv1.RuleWithOperations {
	return webhook.Rules(
		onAll("", "v1", "pods", "pods/status", "pods/eviction", "pods/binding", "pods/ephemeralcontainers", "pods/resize",
			"nodes", "nodes/status", "persistentvolumeclaims", "persistentvolumeclaims/status"),
		onAll("coordination.k8s.io", "v1", "leases"),
		onAll("storage.k8s.io", "v1", "csinodes"),
		onAll("certificates.k8s.io", "v1beta1", "podcertificaterequests", "podcertificaterequests/status"),
		webhook.OnCreate("", "v1", "serviceaccounts/token"),
		webhook.OnCreate("certificates.k8s.io", "v1", "certificatesigningrequests"),
		webhook.OnCreate("resource.k8s.io", "v1", "resourceslices"),
		webhook.OnDelete("resource.k8s.io", "v1", "resourceslices"),
	)
}

func onAll(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	rule := webhook.OnWrite(group, version, resources...)
	rule.Operations = append(rule.Operations, admissionregistrationv1.Delete)
	return rule
}

const (
	nodes      = "system:nodes" // the group
	namePrefix = "system:node:"
)

// nodeOf returns the name of the user's node, which may be empty. It returns false if the user is not a node.
func nodeOf(user authenticationv1.UserInfo) (name string, ok bool) {
	name, ok = strings.CutPrefix(user.Username, namePrefix)
	return name, ok && slices.Contains(user.Groups, nodes)
}

// ofNodes returns a handler that calls check for requests of nodes. The argument node of check is the name of the node.
func ofNodes[T any](check func(ctx context.Context, node string, req *webhook.Request[T]) error) webhook.KindHandler {
	return webhook.On(func(ctx context.Context, req *webhook.Request[T]) error {
		name, ok := nodeOf(req.UserInfo)
		if !ok || name == "" { // unnamed denies a node without a name
			return nil
		}
		return check(ctx, name, req)
	})
}

func unnamed(_ context.Context, req *webhook.Request[metav1.PartialObjectMetadata]) error {
	if name, ok := nodeOf(req.UserInfo); !ok || name != "" {
		return nil
	}
	return deny(req, "could not determine node from user %q", req.UserInfo.Username)
}

// deny returns a denial with the code 403.
func deny[T any, P interface {
	*T
	metav1.Object
}](req *webhook.Request[T], format string, args ...any) error {
	object := P(req.Object)
	if object == nil { // on DELETE
		object = new(T)
	}
	return forbidden.Error(req.AdmissionRequest(), object, fmt.Sprintf(format, args...))
}

// existing reads an object. If it does not exist, the error is a denial with the code 404.
func existing[T any](ctx context.Context, from *reads.Reader[T], kind, namespace, name string) (T, error) {
	found, err := from.Get(ctx, namespace, name)
	if errors.Is(err, reads.ErrNotFound) {
		err = apierrors.NewNotFound(corev1.Resource(kind), name)
	}
	return found, err
}
