// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/pkg/access"
)

// TestAnswersAreThoseOfTheAPIServer compares the answers with those that the API server gives when the test
// impersonates the user.
func TestAnswersAreThoseOfTheAPIServer(t *testing.T) {
	server := apiservertest.Start(t, nil)
	admin, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shop", "other"} {
		if _, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	grantTo := func(name, namespace string, subject rbacv1.Subject, rule rbacv1.PolicyRule) {
		t.Helper()
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
		if err == nil && namespace == "" {
			_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject}, RoleRef: ref}, metav1.CreateOptions{})
		} else if err == nil {
			_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject}, RoleRef: ref}, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}
	}
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: name}
	}
	grantTo("a", "", user("ada"), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "update"}})
	grantTo("b", "shop", user("ben"), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/finalizers", "secrets"}, Verbs: []string{"*"}})
	grantTo("c", "", group("dev"), rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"get"}})
	grantTo("d", "other", group("dev"), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"web"}, Verbs: []string{"update"}})
	grantTo("e", "", user("system:serviceaccount:shop:robot"), rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics/*"}, Verbs: []string{"get"}})

	authorizers := map[string]*access.Authorizer{}
	for _, namespace := range []string{"", "shop"} {
		a, err := access.New(access.Options{Client: admin.AuthorizationV1(), Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		authorizers[namespace] = a
	}

	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	allowed := 0
	for i := range 300 {
		info := authenticationv1.UserInfo{Username: pick("ada", "ben", "eve", "system:serviceaccount:shop:robot"), UID: pick("", "u-1")}
		info.Groups = []string{pick("dev", "ops"), "system:authenticated"} // the API server adds the second group to every user
		if random.IntN(3) == 0 {
			info.Extra = map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}}
		}
		spec := authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: pick("shop", "other", ""), Verb: pick("get", "update", "delete"), Group: pick("", "", "apps"),
			Resource: pick("pods", "secrets", "deployments"), Subresource: pick("", "", "finalizers"), Name: pick("", "web"),
		}}
		if random.IntN(8) == 0 {
			spec = authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: pick("/metrics", "/metrics/cpu", "/version"), Verb: "get"}}
		}
		want := asUser(t, server.Config, info, spec)
		got := map[string]bool{}
		ask := func(name string, a *access.Authorizer) {
			var answer access.Answer
			var err error
			if spec.ResourceAttributes != nil {
				answer, err = a.May(t.Context(), info, *spec.ResourceAttributes)
			} else {
				answer, err = a.MayRequest(t.Context(), info, *spec.NonResourceAttributes)
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got[name] = answer.Allowed
		}
		ask("cluster", authorizers[""])
		if spec.ResourceAttributes != nil && spec.ResourceAttributes.Namespace == "shop" {
			ask("shop", authorizers["shop"])
		}
		for name, is := range got {
			if is != want {
				t.Errorf("seed %d, question %d, %s: %s %+v %+v: got %t, want %t", seed, i, name, info.Username, spec.ResourceAttributes, spec.NonResourceAttributes, is, want)
			}
		}
		if want {
			allowed++
		}
	}
	if allowed < 15 || allowed > 285 {
		t.Errorf("seed %d: %d of 300 answers are allowed, so the questions prove little", seed, allowed)
	}
}

// asUser impersonates the user and asks the API server what the user may do.
func asUser(t *testing.T, config *rest.Config, info authenticationv1.UserInfo, spec authorizationv1.SelfSubjectAccessReviewSpec) bool {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: info.Username, UID: info.UID, Groups: info.Groups, Extra: map[string][]string{}}
	for name, values := range info.Extra {
		config.Impersonate.Extra[name] = values
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(fmt.Errorf("as %s: %w", info.Username, err))
	}
	return review.Status.Allowed
}
