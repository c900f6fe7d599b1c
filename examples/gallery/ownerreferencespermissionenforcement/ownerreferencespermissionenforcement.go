// SPDX-License-Identifier: Apache-2.0

// Package ownerreferencespermissionenforcement reimplements Kubernetes' admission controller
// OwnerReferencesPermissionEnforcement as a hook. A user who changes the owner references of an object must be allowed
// to delete the object, because the garbage collector deletes it with its owners. A user who sets blockOwnerDeletion
// must be allowed to update the finalizers of the owner, because the reference delays the owner's deletion.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/gc. The hook differs from it as follows:
//
//   - The hook asks the API server for the permissions of users, and keeps the answers: those that allow for 5 minutes,
//     and others for 30 s. For that time, the hook does not notice a changed role. The original asks every time.
//   - If the API server does not answer such a question, the hook fails and the failurePolicy decides.
//   - The hook discovers the kinds of owners itself, before the program is ready. Like the original, it may not know a
//     new kind for up to 30 s.
//   - For a new object, the API server calls the hook only if an owner reference blocks, because no other can be denied.
//   - The API server never calls webhooks for webhook configurations, admission policies or their bindings. So the
//     owner references of these objects are not checked.
//   - The API server does not call the hook for objects in kube-system or in the namespace of the webhook, so that a
//     cluster can repair itself while the webhook is down.
package ownerreferencespermissionenforcement

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/access"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hook returns the hook that checks changes of owner references. The matchCondition keeps the API server from calling it
// for every other write. On CREATE, only references that block the deletion of an owner can be denied. So the API server
// does not call the hook when a node creates its Lease or CSINode, and a cluster whose nodes are all new can start the
// webhook.
func Hook(users *access.Authorizer, kinds Mapper) *webhook.Hook {
	p := &policy{users, kinds}
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "ownerreferencespermissionenforcement.example.com",
		Rules: webhook.Rules(webhook.OnWrite("*", "*", "*/*")),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "owner-references-change",
			Expression: `request.operation == "CREATE" ? object.?metadata.?ownerReferences.orValue([]).exists(r, r.?blockOwnerDeletion.orValue(false))` +
				` : object.?metadata.?ownerReferences != oldObject.?metadata.?ownerReferences`,
		}},
	}, p.validate)
}

// A Mapper returns the resources of a kind. The methods of a meta.RESTMapper fit. An error for which
// meta.IsNoMatchError is true denies. Any other error fails the call.
type Mapper interface {
	RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error)
}

type policy struct {
	users *access.Authorizer
	kinds Mapper
}

// A request is for an object of any kind, and contains only its metadata.
type request = webhook.Request[metav1.PartialObjectMetadata]

// validate checks the permissions that a change of the owner references needs. A user may give a new object any owners.
// But to set blockOwnerDeletion, the user needs the permission there, too.
func (p *policy) validate(ctx context.Context, req *request) error {
	before, err := ownersBefore(req)
	owners := req.Object.OwnerReferences
	if err != nil || isPodStatus(req) || equality.Semantic.DeepEqual(owners, before) {
		return err
	}
	if req.Operation != admissionv1.Create {
		if err := p.mayDelete(ctx, req); err != nil {
			return err
		}
	}
	blocking := newlyBlocking(owners, before)
	if len(blocking) == 0 {
		return nil
	}
	everything, err := p.users.May(ctx, req.UserInfo, finalizers("*", "*", "*", "*"))
	if err != nil || everything.Allowed {
		return err
	}
	for _, owner := range blocking {
		if err := p.mayBlock(ctx, req, owner); err != nil {
			return err
		}
	}
	return nil
}

// ownersBefore returns the owner references of the old object, or nil on CREATE.
func ownersBefore(req *request) ([]metav1.OwnerReference, error) {
	old, err := req.OldObject()
	if err != nil || old == nil {
		return nil, err
	}
	return old.OwnerReferences, nil
}

// isPodStatus reports whether the request is for the status of a Pod. Such a request cannot change owner references,
// although old kubelets send different ones.
func isPodStatus(req *request) bool {
	return req.Resource.Group == "" && req.Resource.Resource == "pods" && req.SubResource == "status"
}

// newlyBlocking returns the owner references that block the deletion of an owner whose deletion was not blocked before.
func newlyBlocking(owners, before []metav1.OwnerReference) (list []metav1.OwnerReference) {
	blocked := map[types.UID]bool{}
	for _, owner := range before {
		blocked[owner.UID] = ptr.Deref(owner.BlockOwnerDeletion, false)
	}
	for _, owner := range owners {
		if ptr.Deref(owner.BlockOwnerDeletion, false) && !blocked[owner.UID] {
			list = append(list, owner)
		}
	}
	return list
}

// mayDelete denies the request unless its user may delete the object.
func (p *policy) mayDelete(ctx context.Context, req *request) error {
	return p.require(ctx, req, "cannot set an ownerRef on a resource you can't delete", authorizationv1.ResourceAttributes{
		Verb: "delete", Namespace: req.Namespace, Name: req.Name,
		Group: req.Resource.Group, Version: req.Resource.Version, Resource: req.Resource.Resource, Subresource: req.SubResource,
	})
}

// mayBlock denies the request unless its user may update the finalizers of the owner. If the owner's kind belongs to
// several resources, the user needs the permission for each.
func (p *policy) mayBlock(ctx context.Context, req *request, owner metav1.OwnerReference) error {
	mappings, err := p.resources(owner)
	switch {
	case errors.As(err, new(*unknownKind)):
		return deny(req, fmt.Sprintf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: %v", owner.APIVersion, owner.Kind, err))
	case err != nil:
		return fmt.Errorf("looking up the kind of an owner: %s", err.Error()) // without an API status
	}
	for _, m := range mappings {
		what := finalizers(m.Resource.Group, m.Resource.Version, m.Resource.Resource, owner.Name)
		if m.Scope.Name() == meta.RESTScopeNameNamespace {
			what.Namespace = req.Namespace // an owner is in the namespace of its dependents
		}
		if err := p.require(ctx, req, "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on", what); err != nil {
			return err
		}
	}
	return nil
}

// unknownKind is the error for a kind that the API server does not serve.
type unknownKind struct{ error }

// resources returns the resources that the kind of the owner belongs to. If there are none, the error is an
// unknownKind.
func (p *policy) resources(owner metav1.OwnerReference) ([]*meta.RESTMapping, error) {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return nil, &unknownKind{err}
	}
	mappings, err := p.kinds.RESTMappings(schema.GroupKind{Group: version.Group, Kind: owner.Kind}, version.Version)
	if meta.IsNoMatchError(err) {
		return nil, &unknownKind{err}
	}
	return mappings, err
}

func finalizers(group, version, resource, name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: "update", Group: group, Version: version, Resource: resource, Subresource: "finalizers", Name: name}
}

// require denies the request unless its user has the permission. As in the original, the message ends with the reason
// and the error of the authorizers.
func (p *policy) require(ctx context.Context, req *request, problem string, what authorizationv1.ResourceAttributes) error {
	answer, err := p.users.May(ctx, req.UserInfo, what)
	if err != nil || answer.Allowed {
		return err
	}
	return deny(req, fmt.Sprintf("%s: %s, %s", problem, answer.Reason, cmp.Or(answer.EvaluationError, "<nil>")))
}

func deny(req *request, reason string) error {
	return forbidden.Error(req.AdmissionRequest(), req.Object, reason)
}
