// SPDX-License-Identifier: Apache-2.0

package ownerreferencespermissionenforcement

import (
	"errors"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	authorizationfake "k8s.io/client-go/kubernetes/typed/authorization/v1/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/access"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// permission returns the name of a permission in these tests: "VERB NAMESPACE/RESOURCE.GROUP/SUBRESOURCE/NAME".
func permission(a *authorizationv1.ResourceAttributes) string {
	return a.Verb + " " + strings.Join([]string{a.Namespace, a.Resource + "." + a.Group, a.Subresource, a.Name}, "/")
}

// may returns a hook for a cluster in which every user has these permissions.
func may(t *testing.T, permissions ...string) *webhook.Hook {
	t.Helper()
	fake := &clienttesting.Fake{}
	fake.AddReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		switch review.Spec.User {
		case "unlucky":
			review.Status.EvaluationError = "the authorizer is down"
		case "silent":
			return true, nil, errors.New("timed out")
		default:
			review.Status.Allowed = slices.Contains(permissions, permission(review.Spec.ResourceAttributes))
			review.Status.Reason = "no role"
		}
		return true, review, nil
	})
	users, err := access.New(access.Options{Client: &authorizationfake.FakeAuthorizationV1{Fake: fake}})
	if err != nil {
		t.Fatal(err)
	}
	return Hook(users, kinds())
}

// kinds returns a mapper that maps the kind Pair to two resources.
func kinds() meta.RESTMapper {
	core := meta.NewDefaultRESTMapper(nil)
	core.Add(corev1.SchemeGroupVersion.WithKind("ReplicationController"), meta.RESTScopeNamespace)
	core.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	pair := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pair"}
	all := meta.MultiRESTMapper{core}
	for _, name := range []string{"lefts", "rights"} {
		m := meta.NewDefaultRESTMapper(nil)
		resource := pair.GroupVersion().WithResource(name)
		m.AddSpecific(pair, resource, resource, meta.RESTScopeNamespace)
		all = append(all, m)
	}
	return all
}

const (
	deletePod  = "delete team-a/pods.//shop"
	everything = "update /*.*/finalizers/*"
	web        = "update team-a/replicationcontrollers./finalizers/web"
	node       = "update /nodes./finalizers/a"
	left       = "update team-a/lefts.example.com/finalizers/p"
	right      = "update team-a/rights.example.com/finalizers/p"

	noDelete     = `pods "shop" is forbidden: cannot set an ownerRef on a resource you can't delete: no role, <nil>`
	noFinalizers = `pods "shop" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no role, <nil>`
	noKind       = `pods "shop" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion `
)

func owner(apiVersion, kind, name string, blocks *bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(kind + name), BlockOwnerDeletion: blocks}
}

func owned(by ...metav1.OwnerReference) *corev1.Pod {
	return gallerytest.Pod(func(p *corev1.Pod) { p.OwnerReferences = by })
}

func TestHook(t *testing.T) {
	var (
		free     = owner("v1", "ReplicationController", "web", nil)
		open     = owner("v1", "ReplicationController", "web", ptr.To(false))
		blocking = owner("v1", "ReplicationController", "web", ptr.To(true))
		onNode   = owner("v1", "Node", "a", ptr.To(true))
		pair     = owner("example.com/v1", "Pair", "p", ptr.To(true))
		unknown  = owner("example.com/v1", "Widget", "a", ptr.To(true))
		invalid  = owner("a/b/c", "Widget", "a", ptr.To(true))
	)
	rows := []struct {
		name     string
		may      []string
		pod, old *corev1.Pod
		denial   string
	}{
		{"a new Pod without owners", nil, owned(), nil, ""},
		{"a new Pod with an owner", nil, owned(free), nil, ""},
		{"a new Pod that blocks nothing", nil, owned(open), nil, ""},
		{"a new Pod that blocks", nil, owned(blocking), nil, noFinalizers},
		{"with the permission", []string{web}, owned(blocking), nil, ""},
		{"with the permission for everything", []string{everything}, owned(blocking, unknown), nil, ""},
		{"for one owner only", []string{web}, owned(blocking, onNode), nil, noFinalizers},
		{"an owner without a namespace", []string{node}, owned(onNode), nil, ""},
		{"a kind with two resources", []string{left, right}, owned(pair), nil, ""},
		{"one resource is not enough", []string{left}, owned(pair), nil, noFinalizers},
		{"an unknown kind", []string{web}, owned(unknown), nil, noKind + `example.com/v1 Kind Widget: no matches for kind "Widget" in version "example.com/v1"`},
		{"an unknown kind that does not block", nil, owned(owner("example.com/v1", "Widget", "a", nil)), nil, ""},
		{"an invalid version", []string{web}, owned(invalid), nil, noKind + `a/b/c Kind Widget: unexpected GroupVersion string: a/b/c`},

		{"an update without a change", nil, owned(blocking), owned(blocking), ""},
		{"an update of an empty list", nil, owned([]metav1.OwnerReference{}...), owned(), ""},
		{"a new owner", nil, owned(free), owned(), noDelete},
		{"a new owner, with the permission", []string{deletePod}, owned(free), owned(), ""},
		{"an owner is removed", nil, owned(), owned(free), noDelete},
		{"another order", nil, owned(free, onNode), owned(onNode, free), noDelete},
		{"blockOwnerDeletion is false instead of unset", nil, owned(open), owned(free), noDelete},
		{"it starts to block", []string{deletePod}, owned(blocking), owned(open), noFinalizers},
		{"it starts to block, with the permission", []string{deletePod, web}, owned(blocking), owned(free), ""},
		{"it blocked before", []string{deletePod}, owned(blocking, free), owned(blocking), ""},
		{"it stops blocking", []string{deletePod}, owned(free), owned(blocking), ""},
		{"a new owner that blocks", []string{deletePod}, owned(blocking, onNode), owned(blocking), noFinalizers},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			decision, _ := gallerytest.Call(t, may(t, row.may...), row.pod, row.old)
			gallerytest.Denied(t, decision, row.denial)
		})
	}
}

func update(t *testing.T, resource, user string) *admissionv1.AdmissionRequest {
	t.Helper()
	req := webhooktest.Request(t, admissionv1.Update, corev1.SchemeGroupVersion.WithKind("Pod"), resource, owned(owner("v1", "Node", "a", ptr.To(true))), owned())
	req.UserInfo = authenticationv1.UserInfo{Username: user}
	return req
}

func TestSubresources(t *testing.T) {
	gallerytest.Denied(t, webhooktest.Decision(t, may(t), update(t, "pods/status", "")), "")
	gallerytest.Denied(t, webhooktest.Decision(t, may(t, deletePod), update(t, "pods/resize", "")), noDelete)
	hook := may(t, "delete team-a/pods./resize/shop", everything)
	gallerytest.Denied(t, webhooktest.Decision(t, hook, update(t, "pods/resize", "")), "")
}

func TestAuthorizersThatFail(t *testing.T) {
	decision := webhooktest.Decision(t, may(t), update(t, "pods", "unlucky"))
	gallerytest.Denied(t, decision, strings.Replace(noDelete, "no role, <nil>", ", the authorizer is down", 1))
	req := update(t, "pods", "silent")
	for _, op := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
		if req.Operation = op; op == admissionv1.Create {
			req.OldObject.Raw = nil
		}
		if got := webhooktest.Failure(t, may(t), req).Message; !strings.Contains(got, "asking for the permissions of silent: timed out") {
			t.Errorf("%s: got %q", op, got)
		}
		req = update(t, "pods", "silent")
	}
}

func TestUpdateWithoutOldObject(t *testing.T) {
	req := update(t, "pods", "ada")
	req.OldObject.Raw = nil
	if got := webhooktest.Failure(t, may(t), req).Message; !strings.Contains(got, "the request is a UPDATE without an old object") {
		t.Errorf("got %q", got)
	}
}
