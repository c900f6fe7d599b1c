// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// TestUser checks that decisions which depend on unknown facts about the user are unknown.
func TestUser(t *testing.T) {
	const credential = `has(request.userInfo.extra) && "authentication.kubernetes.io/credential-id" in request.userInfo.extra`
	uid := "u-1"
	for _, row := range []struct {
		name, reason, expression, want string
		user                           *User
	}{
		{"default, extra", "the extra fields of admin are not given", credential, "m.example.com: unknown by MatchCondition: condition \"c\": the extra fields of user admin are unknown", nil},
		{"extra", "it was not given", credential, "m.example.com: unknown", &User{Name: "jane"}},
		{"extra given", "it is there", credential, "m.example.com: yes", &User{Name: "jane", Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {"X"}}}},
		{"extra known to be empty", "it is not there", credential, "m.example.com: no by MatchCondition", &User{Name: "jane", Extra: map[string][]string{}}},
		{"uid", "it was not given", `request.userInfo.uid == "u-1"`, "m.example.com: unknown by MatchCondition: condition \"c\": the uid of user jane is unknown", &User{Name: "jane"}},
		{"uid given", "it is that", `request.userInfo.uid == "u-1"`, "m.example.com: yes", &User{Name: "jane", UID: &uid}},
		{"the rest", "names are known", `request.userInfo.username == "jane"`, "m.example.com: yes", &User{Name: "jane"}},
		{"another uid", "it is not the user's", `object.?metadata.uid.orValue("") == ""`, "m.example.com: yes", &User{Name: "jane"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := summary(explainOne(t, configuration("Mutating", "m", "m.example.com", ", matchConditions: [{name: c, expression: '"+row.expression+"'}]"), aPod, Ask{User: row.user}))
			if !strings.Contains(got, row.want) {
				t.Errorf("%s\n got %s\nwant %s", row.reason, got, row.want)
			}
		})
	}
}

// explainOne explains one object from files.
func explainOne(t *testing.T, hooks, object string, ask Ask) Object {
	t.Helper()
	w, err := FromFiles(read(t, hooks), read(t, object))
	if err != nil {
		t.Fatal(err)
	}
	report, err := w.Explain(t.Context(), read(t, object), ask)
	if err != nil {
		t.Fatal(err)
	}
	return report.Objects[0]
}

// TestReview checks that all authorizer checks of a condition reach the cluster.
func TestReview(t *testing.T) {
	var asked []authorizationv1.SubjectAccessReviewSpec
	client := fake.NewClientset()
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		asked = append(asked, review.Spec)
		review.Status.Allowed = true
		return true, review, nil
	})
	w, err := FromFiles(read(t, configuration("Mutating", "m", "m.example.com", `, matchConditions: [
  {name: a, expression: 'authorizer.group("apps").resource("deployments").subresource("scale").namespace("shop").name("web").check("use").allowed()'},
  {name: b, expression: 'authorizer.group("").resource("pods").fieldSelector("spec.nodeName=a,status.phase!=Failed").labelSelector("app in (x, y),!z").check("list").allowed()'},
  {name: c, expression: 'authorizer.path("/healthz").check("get").allowed()'}]`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	uid := "u-1"
	w.authorizer = authorizer.AuthorizerFunc((&liveCluster{&rest.Config{}, client}).authorize)
	report, err := w.Explain(t.Context(), read(t, aPod), Ask{User: &User{Name: "jane", Groups: []string{"a"}, UID: &uid, Extra: map[string][]string{"scopes": {"x", "y"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(report.Objects[0]); !strings.Contains(got, "m.example.com: yes") {
		t.Error(got)
	}
	of := func(s authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewSpec {
		s.User, s.UID, s.Groups, s.Extra = "jane", uid, []string{"a", "system:authenticated"}, map[string]authorizationv1.ExtraValue{"scopes": {"x", "y"}}
		return s
	}
	want := []authorizationv1.SubjectAccessReviewSpec{
		of(authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "shop", Verb: "use", Group: "apps", Version: "*", Resource: "deployments", Subresource: "scale", Name: "web"}}),
		of(authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Version: "*", Resource: "pods",
			FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
				{Key: "spec.nodeName", Operator: metav1.FieldSelectorOpIn, Values: []string{"a"}}, {Key: "status.phase", Operator: metav1.FieldSelectorOpNotIn, Values: []string{"Failed"}}}},
			LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "y"}}, {Key: "z", Operator: metav1.LabelSelectorOpDoesNotExist}}}}}),
		of(authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "get"}}),
	}
	if diff := cmp.Diff(want, asked, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// TestAllow checks that a permission for one namespace or name does not apply elsewhere.
func TestAllow(t *testing.T) {
	question := `authorizer.group("apps").resource("deployments").namespace("shop").name("web").check("use").allowed()`
	for _, row := range []struct{ rule, want string }{
		{"use:deployments.apps", "yes"}, {"use:deployments.apps@shop", "yes"}, {"use:deployments.apps@other", "no"}, {"use:deployments.apps@shop/web", "yes"},
		{"use:deployments.apps@shop/db", "no"}, {"use:deployments.apps@*/web", "yes"}, {"use:deployments.apps/scale@shop", "no"}, {"*:*/*@shop", "yes"}, {"*:*@shop", "yes"},
	} {
		w, err := FromFiles(read(t, configuration("Mutating", "m", "m.example.com", ", matchConditions: [{name: c, expression: '"+question+"'}]")), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Allow([]string{row.rule}); err != nil {
			t.Fatal(err)
		}
		report, err := w.Explain(t.Context(), read(t, aPod), Ask{User: &User{Name: "jane"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := summary(report.Objects[0]); !strings.HasPrefix(got, "m.example.com: "+row.want) {
			t.Errorf("%s: %s", row.rule, got)
		}
	}
}
