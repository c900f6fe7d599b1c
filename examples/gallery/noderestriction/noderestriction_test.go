// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/access"
	"github.com/admitkit/admitkit/pkg/chain"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// reader returns a reader of objects. Reading the object with the name "unreadable" fails.
func reader[T metav1.Object](t *testing.T, resource string, objects ...T) *reads.Reader[T] {
	t.Helper()
	get := func(namespace, name string) (found T, err error) {
		for _, o := range objects {
			if o.GetNamespace() == namespace && o.GetName() == name {
				return o, nil
			}
		}
		if name == "unreadable" {
			return found, errors.New("timed out")
		}
		return found, apierrors.NewNotFound(corev1.Resource(resource), name)
	}
	r, err := reads.New(reads.Options[T]{
		Resource: resource, Cached: get,
		Live: func(_ context.Context, namespace, name string) (T, error) { return get(namespace, name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reviews returns an authorizer that allows the audience "granted". For "broken" it reports an evaluation error, and
// for "unreachable" the request fails.
func reviews(t *testing.T) *access.Authorizer {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		what := review.Spec.ResourceAttributes
		if what.Resource == "unreachable" {
			return true, nil, errors.New("timed out")
		}
		review.Status.Allowed = what.Resource == "granted" && what.Verb == "request-serviceaccounts-token-audience" &&
			what.Namespace == "team-a" && what.Name == "robot" && review.Spec.User == "system:node:a"
		if what.Resource == "broken" {
			review.Status.EvaluationError = "no such role"
		}
		return true, review, nil
	})
	a, err := access.New(access.Options{Client: client.AuthorizationV1()})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// hooks returns the hooks for a cluster with the Node a, two Pods on it, and a Pod on the node b.
func hooks(t *testing.T) []*webhook.Hook {
	t.Helper()
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "ebs.csi.aws.com"}, Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "disk"}}}}
	volumes := []runtime.Object{}
	for name, source := range sources() {
		volumes = append(volumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}})
	}
	return Hooks(Cluster{
		Pods:    reader(t, "pods", onNode("a"), onNode("b"), withVolumes()),
		Nodes:   reader(t, "nodes", newNodeObject("a")),
		Claims:  corelisters.NewPersistentVolumeClaimLister(gallerytest.Lister(t, claimOf("ebs"), claimOf("csi"), claimOf("disk"), claimOf("nothing"), claimOf("volumes-scratch"))),
		Volumes: corelisters.NewPersistentVolumeLister(gallerytest.Lister(t, volumes...)),
		Drivers: storagelisters.NewCSIDriverLister(gallerytest.Lister(t, driver)),
		Access:  reviews(t),
	})
}

// A call is a request of the user system:node:a in the group system:nodes, unless change sets another user.
type call struct {
	op          admissionv1.Operation
	kind        schema.GroupVersionKind
	resource    string
	object, old any
	change      func(*admissionv1.AdmissionRequest)
}

var nodeA = authenticationv1.UserInfo{Username: "system:node:a", Groups: []string{"system:nodes", "system:authenticated"}}

func (c call) request(t *testing.T) *admissionv1.AdmissionRequest {
	t.Helper()
	req := webhooktest.Request(t, c.op, c.kind, c.resource, c.object, c.old)
	req.UserInfo = nodeA
	if base, _, _ := strings.Cut(c.resource, "/"); base == "pods" || base == "serviceaccounts" {
		req.Resource = metav1.GroupVersionResource{Version: "v1", Resource: base}
	}
	if c.change != nil {
		c.change(req)
	}
	return req
}

// check calls the first hook and checks that it denies with the message want, or allows the request if want is empty.
func (c call) check(t *testing.T, want string) {
	t.Helper()
	decision := webhooktest.Decision(t, hooks(t)[0], c.request(t))
	if strings.HasSuffix(want, "not found") && !decision.Allowed && decision.Result.Code == http.StatusNotFound && decision.Result.Message == want {
		return
	}
	gallerytest.Denied(t, decision, want)
	if decision.Patch != nil {
		t.Errorf("the patch is %s", decision.Patch)
	}
}

func core(kind string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(kind) }

func TestUsers(t *testing.T) {
	t.Parallel()
	const elsewhere = `nodes "b" is forbidden: node "a" is not allowed to modify node "b"`
	rows := []struct {
		reason         string
		user           authenticationv1.UserInfo
		named, unnamed string // the denials
	}{
		{"a node", nodeA, elsewhere, ""},
		{"without the group", authenticationv1.UserInfo{Username: "system:node:a", Groups: []string{"system:authenticated"}}, "", ""},
		{"another name", authenticationv1.UserInfo{Username: "system:nodes:a", Groups: nodeA.Groups}, "", ""},
		{"without a name", authenticationv1.UserInfo{Username: "system:node:", Groups: nodeA.Groups}, "", `nodes "b" is forbidden: could not determine node from user "system:node:"`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			for i, want := range []string{row.named, row.unnamed} {
				c := call{op: admissionv1.Delete, kind: core("Node"), resource: "nodes", old: newNodeObject("b"), change: func(req *admissionv1.AdmissionRequest) { req.UserInfo = row.user }}
				gallerytest.Denied(t, webhooktest.Decision(t, hooks(t)[i], c.request(t)), want)
			}
		})
	}
}

// TestConditions checks for which requests the API server calls the hooks. It uses the API server's own matching code.
func TestConditions(t *testing.T) {
	t.Parallel()
	configuration, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "test", URL: "https://127.0.0.1"}, hooks(t)...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := chain.New(chain.Webhooks{Mutating: []*admissionregistrationv1.MutatingWebhookConfiguration{configuration}}, chain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nobody := authenticationv1.UserInfo{Username: "system:node:", Groups: nodeA.Groups}
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"NAMESPACE","name":"NAME"}}`
	resources := map[string]metav1.GroupVersionResource{
		"Lease":   {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
		"CSINode": {Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"},
		"Node":    {Version: "v1", Resource: "nodes"},
	}
	csiNode := `{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"NAME"},"spec":{"drivers":[]}}`
	node := func(labels, spec string) string {
		return `{"apiVersion":"v1","kind":"Node","metadata":{"name":"NAME","labels":{"kubernetes.io/hostname":"NAME","pool":"x"` + labels + `}},"spec":{` + spec + `}}`
	}
	for _, row := range []struct {
		reason      string
		op          admissionv1.Operation
		object, old string
		kind, name  string
		called      bool
	}{
		{"its CSINode", admissionv1.Create, csiNode, "", "CSINode", "a", false},
		{"an update of its CSINode", admissionv1.Update, csiNode, csiNode, "CSINode", "a", false},
		{"another CSINode", admissionv1.Create, csiNode, "", "CSINode", "b", true},
		{"its registration", admissionv1.Create, node("", ""), "", "Node", "a", false},
		{"the registration of another node", admissionv1.Create, node("", ""), "", "Node", "b", true},
		{"a registration with a restricted label", admissionv1.Create, node(`,"node-restriction.kubernetes.io/x":"y"`, ""), "", "Node", "a", true},
		{"a registration with a label that need not be restricted", admissionv1.Create, node(`,"kubelet.kubernetes.io/x":"y"`, ""), "", "Node", "a", true},
		{"a registration with a configSource", admissionv1.Create, node("", `"configSource":{}`), "", "Node", "a", true},
		{"its status", admissionv1.Update, node("", `"podCIDR":"10.0.0.0/24"`), node("", ""), "Node", "a", false},
		{"the status of another node", admissionv1.Update, node("", ""), node("", ""), "Node", "b", true},
		{"a new label", admissionv1.Update, node(`,"x":"y"`, ""), node("", ""), "Node", "a", true},
		{"a new taint", admissionv1.Update, node("", `"taints":[{"key":"x","effect":"NoSchedule"}]`), node("", ""), "Node", "a", true},
		{"a removed taint", admissionv1.Update, node("", ""), node("", `"taints":[{"key":"x","effect":"NoSchedule"}]`), "Node", "a", true},
		{"its deletion", admissionv1.Delete, "", node("", ""), "Node", "a", true},
	} {
		named := func(text string) []byte {
			if text == "" {
				return nil
			}
			return []byte(strings.ReplaceAll(text, "NAME", row.name))
		}
		explanation, err := c.Explain(t.Context(), chain.Request{
			Operation: row.op, Resource: resources[row.kind], Name: row.name, Object: named(row.object), OldObject: named(row.old), User: nodeA,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := isCalled(explanation.Webhooks[0]); got != row.called {
			t.Errorf("%s: called is %v: %+v", row.reason, got, explanation.Webhooks[0].Predicates)
		}
	}
	rows := []struct {
		reason          string
		user            authenticationv1.UserInfo
		op              admissionv1.Operation
		namespace, name string
		named, unnamed  bool // whether the hook is called
	}{
		{"another user", authenticationv1.UserInfo{Username: "ann", Groups: nodeA.Groups}, admissionv1.Update, "kube-node-lease", "a", false, false},
		{"another group", authenticationv1.UserInfo{Username: "system:node:a", Groups: nodeA.Groups[1:]}, admissionv1.Update, "kube-node-lease", "b", false, false},
		{"no group", authenticationv1.UserInfo{Username: "system:node:a"}, admissionv1.Update, "kube-node-lease", "b", false, false},
		{"a node without a name", nobody, admissionv1.Update, "kube-node-lease", "a", true, true},
		{"the node's own Lease", nodeA, admissionv1.Update, "kube-node-lease", "a", false, false},
		{"its creation", nodeA, admissionv1.Create, "kube-node-lease", "a", false, false},
		{"another Lease", nodeA, admissionv1.Update, "kube-node-lease", "b", true, false},
		{"another namespace", nodeA, admissionv1.Update, "team-a", "a", true, false},
	}
	for _, row := range rows {
		object := []byte(strings.NewReplacer("NAMESPACE", row.namespace, "NAME", row.name).Replace(lease))
		req := chain.Request{
			Operation: row.op, Resource: resources["Lease"],
			Namespace: row.namespace, Name: row.name, Object: object, User: row.user,
		}
		if row.op == admissionv1.Update {
			req.OldObject = object
		}
		explanation, err := c.Explain(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{row.named, row.unnamed} {
			if called := isCalled(explanation.Webhooks[i]); called != want {
				t.Errorf("%s: called is %v: %+v", row.reason, called, explanation.Webhooks[i].Predicates)
			}
		}
	}
}

func isCalled(w chain.Explained) bool {
	return !slices.ContainsFunc(w.Predicates, func(p chain.Predicate) bool { return p.Result != chain.Holds })
}

func TestFailures(t *testing.T) {
	t.Parallel()
	user := func(req *admissionv1.AdmissionRequest) { req.UserInfo.Username = "system:node:unreadable" }
	mirror := mirrorPod()
	mirror.Spec.NodeName, mirror.OwnerReferences[0].Name = "unreadable", "unreadable"
	rows := []struct {
		call call
		want string
	}{
		{call{op: admissionv1.Create, kind: core("Pod"), resource: "pods", object: mirror, change: user}, "reading nodes unreadable: timed out"},
		{evict("unreadable"), "reading pods team-a/unreadable: timed out"},
		{request("unreadable", "uid"), "reading pods team-a/unreadable: timed out"},
		{request("a", "uid-a", "unreachable"), "asking for the permissions of system:node:a: timed out"},
	}
	for _, row := range rows {
		if got := webhooktest.Failure(t, hooks(t)[0], row.call.request(t)).Message; got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
