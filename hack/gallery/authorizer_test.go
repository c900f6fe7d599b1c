// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"errors"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/restmapper"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	authorizationapi "k8s.io/kubernetes/pkg/apis/authorization"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install" // its conversions
	authorizationutil "k8s.io/kubernetes/pkg/registry/authorization/util"
	rbacvalidation "k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// rolesOnly is the RBAC authorizer of Kubernetes. It allows everything for the group system:masters. For the user
// unlucky it fails, as an authorizer outside of the API server can fail.
type rolesOnly struct{ *rbac.RBACAuthorizer }

// authorizerFor returns an authorizer with the roles and bindings among the objects.
func authorizerFor(objects []runtime.Object) authorizer.Authorizer {
	_, list := rbacvalidation.NewTestRuleResolver(only[*rbacv1.Role](objects), only[*rbacv1.RoleBinding](objects),
		only[*rbacv1.ClusterRole](objects), only[*rbacv1.ClusterRoleBinding](objects))
	return rolesOnly{rbac.New(list, list, list, list)}
}

// only returns the objects of one type.
func only[T runtime.Object](objects []runtime.Object) (list []T) {
	for _, object := range objects {
		if o, ok := object.(T); ok {
			list = append(list, o)
		}
	}
	return list
}

func (r rolesOnly) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	switch {
	case slices.Contains(a.GetUser().GetGroups(), "system:masters"):
		return authorizer.DecisionAllow, "", nil
	case a.GetUser().GetName() == unlucky:
		return authorizer.DecisionNoOpinion, "", errors.New("the authorizer does not answer")
	}
	return r.RBACAuthorizer.Authorize(ctx, a)
}

// simulate makes the client answer access reviews as the authorizer does. It also sets the kinds that the client
// discovers.
func simulate(client *fake.Clientset, a authorizer.Authorizer) {
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		var spec authorizationapi.SubjectAccessReviewSpec
		if err := legacyscheme.Scheme.Convert(&review.Spec, &spec, nil); err != nil {
			return true, nil, err
		}
		attributes := authorizationutil.AuthorizationAttributesFrom(spec)
		decision, reason, err := a.Authorize(context.Background(), attributes)
		review.Status = authorizationv1.SubjectAccessReviewStatus{
			Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason,
			EvaluationError: authorizationutil.BuildEvaluationError(err, attributes),
		}
		return true, review, nil
	})
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "Node"}, {Name: "pods", Namespaced: true, Kind: "Pod"}, {Name: "pods/status", Namespaced: true, Kind: "Pod"},
			{Name: "replicationcontrollers", Namespaced: true, Kind: "ReplicationController"},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Namespaced: true, Kind: "Deployment"}, {Name: "daemonsets", Namespaced: true, Kind: "DaemonSet"}}},
		{GroupVersion: "rbac.authorization.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "clusterroles", Kind: "ClusterRole"}}},
	}
}

// pairKind is a kind that belongs to two resources: to Pods and to Nodes.
const pairKind = "Pair"

// kinds returns a mapper of the kinds that the API server serves, and of pairKind.
func (c cluster) kinds() meta.RESTMapper {
	return pairs{restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))}
}

type pairs struct{ meta.RESTMapper }

func (p pairs) RESTMappings(kind schema.GroupKind, versions ...string) (all []*meta.RESTMapping, err error) {
	if kind.Kind != pairKind {
		return p.RESTMapper.RESTMappings(kind, versions...)
	}
	for _, name := range []string{"Pod", "Node"} {
		mappings, err := p.RESTMapper.RESTMappings(schema.GroupKind{Group: kind.Group, Kind: name}, versions...)
		if err != nil {
			return nil, err
		}
		all = append(all, mappings...)
	}
	return all, nil
}
