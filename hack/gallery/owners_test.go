// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	originalowners "k8s.io/kubernetes/plugin/pkg/admission/gc"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/ownerreferencespermissionenforcement"
	"github.com/admitkit/admitkit/pkg/access"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// ownerControllers returns the controller whose decision depends on owner references and the permissions of users.
func ownerControllers() []*controller {
	return []*controller{{
		name: originalowners.PluginName, register: originalowners.Register, clusters: [][]runtime.Object{roles()},
		hooks: func(t *testing.T, in cluster, _ string) []*webhook.Hook {
			users, err := access.New(access.Options{Client: in.client.AuthorizationV1()})
			if err != nil {
				t.Fatal(err)
			}
			return []*webhook.Hook{ownerreferencespermissionenforcement.Hook(users, in.kinds())}
		},
		edges: (*generator).ownerEdges, generate: (*generator).ownerRequest,
	}}
}

// unlucky is a user for whom the authorizer of the simulated API server fails.
const unlucky = "unlucky"

// users returns the users of the generated requests. A nil user may do everything.
func users() (all []user.Info) {
	for _, name := range []string{"writer", "deleter", "finalizer", "keeper", "local", "lost", unlucky} {
		all = append(all, &user.DefaultInfo{Name: name, Groups: []string{"writers", "system:authenticated"}})
	}
	all = append(all, &user.DefaultInfo{Name: "member", Groups: []string{"writers", "deleters", "system:authenticated"}})
	return append(all, nil, &user.DefaultInfo{Name: "system:serviceaccount:plain:robot", Groups: []string{"writers", "system:serviceaccounts", "system:authenticated"}})
}

// roles returns the permissions of the users. On API servers, the writers need theirs to send requests.
func roles() []runtime.Object {
	rule := func(groups, resources string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{groups}, Resources: []string{resources}, Verbs: verbs}
	}
	named := func(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
		r.ResourceNames = names
		return r
	}
	var all []runtime.Object
	role := func(name string, rules ...rbacv1.PolicyRule) {
		all = append(all, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	}
	bind := func(role, kind, name string) {
		subject := rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		all = append(all, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role + "-" + name}, Subjects: []rbacv1.Subject{subject}, RoleRef: ref})
	}
	writing := []string{"get", "create", "update", "patch"}
	role("writers", rule("", "pods", writing...), rule("", "pods/status", writing...), rule("", "pods/ephemeralcontainers", writing...), rule("", "configmaps", writing...),
		rule("", "persistentvolumes", writing...), rule("", "persistentvolumes/status", writing...), rule("apps", "deployments", writing...))
	role("deleters", rule("", "pods", "delete"), rule("", "pods/ephemeralcontainers", "delete"), rule("", "configmaps", "delete"), rule("", "persistentvolumes", "delete"))
	role("finalizers", rule("*", "*/finalizers", "update"))
	role("keepers", named(rule("", "replicationcontrollers/finalizers", "update"), "web", "api"), rule("", "nodes/finalizers", "update"), rule("", "pods", "*"))
	role("locals", rule("apps", "deployments/finalizers", "update"), rule("", "pods/finalizers", "update"), rule("", "pods", "delete"), rule("", "nodes/finalizers", "update"))
	bind("writers", "Group", "writers")
	bind("deleters", "User", "deleter")
	bind("deleters", "Group", "deleters")
	bind("deleters", "User", "finalizer")
	bind("finalizers", "User", "finalizer")
	bind("keepers", "User", "keeper")
	bind("gone", "User", "lost")
	for _, subject := range []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "local"}, {Kind: "ServiceAccount", Name: "robot", Namespace: "plain"}} {
		all = append(all, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "locals-" + subject.Name, Namespace: "plain"}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "locals"},
		})
	}
	return all
}

func owner(apiVersion, kind, name, uid string, blocks *bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), BlockOwnerDeletion: blocks}
}

func (g *generator) ownerEdges() (all []*request) {
	yes, no := ptr.To(true), ptr.To(false)
	lists := [][]metav1.OwnerReference{
		nil, {}, {{}},
		{owner("v1", "ReplicationController", "web", "1", nil)},
		{owner("v1", "ReplicationController", "web", "1", no)},
		{owner("v1", "ReplicationController", "web", "1", yes)},
		{owner("v1", "ReplicationController", "web", "2", yes)},
		{owner("v1", "ReplicationController", "web", "1", yes), owner("v1", "ReplicationController", "web", "1", no)}, // one UID
		{owner("v1", "ReplicationController", "web", "1", yes), owner("v1", "Node", "a", "2", yes)},
		{owner("v1", "Node", "a", "2", yes), owner("v1", "ReplicationController", "web", "1", yes)},
		{owner("apps/v1", "Deployment", "shop", "3", yes)},
		{owner("v1", "Deployment", "shop", "3", yes)},
		{owner("v1", pairKind, "a", "4", yes)},
		{owner("v1", "node", "a", "2", yes)},
		{owner("", "Node", "a", "2", yes)},
		{owner("v1", "", "", "", yes)},
		{owner("a/b/c", "Node", "a", "2", yes)},
	}
	for _, from := range users() {
		for _, owners := range lists {
			all = append(all, owned(from, admission.Create, "", owners, nil))
			for _, before := range lists {
				all = append(all, owned(from, admission.Update, "", owners, before))
			}
			for _, subresource := range []string{"status", "ephemeralcontainers", "resize"} {
				all = append(all, owned(from, admission.Update, subresource, owners, nil))
			}
			all = append(all, owned(from, admission.Delete, "", nil, owners))
		}
	}
	return all
}

// owned returns a request for a Pod with these owners, from a user.
func owned(from user.Info, op admission.Operation, subresource string, owners, before []metav1.OwnerReference) *request {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "plain", OwnerReferences: owners}}
	old := pod.DeepCopy()
	old.OwnerReferences = before
	r := created(op, onPods(op, subresource, pod, old))
	if op == admission.Delete {
		r.object = nil
	}
	r.user = from
	return r
}

// owners returns up to three owner references. Most of them are valid.
func (g *generator) owners() (all []metav1.OwnerReference) {
	for range pick(g, 0, 1, 1, 1, 2, 3) {
		o := pick(g,
			owner("v1", "ReplicationController", pick(g, "web", "api", "other"), "", nil),
			owner("v1", "Node", pick(g, "a", "b"), "", nil),
			owner("apps/v1", "Deployment", "shop", "", nil),
			owner("apps/v1", "DaemonSet", "logs", "", nil),
			owner("rbac.authorization.k8s.io/v1", "ClusterRole", "writers", "", nil),
		)
		if g.oneIn(12) {
			o = owner(pick(g, "example.com/v1", "v1", "apps/v2"), pick(g, "Widget", "Deployment", "node"), "a", "", nil)
		}
		o.UID = pick[types.UID](g, "1", "2", "3")
		o.BlockOwnerDeletion = pick(g, nil, ptr.To(false), ptr.To(true), ptr.To(true))
		if len(all) == 0 {
			o.Controller = pick(g, nil, ptr.To(false), ptr.To(true))
		}
		all = append(all, o)
	}
	return all
}

// ownerRequest returns a request whose objects have random owner references, and differ at most in these.
func (g *generator) ownerRequest() *request {
	op := pick(g, admission.Create, admission.Create, admission.Update, admission.Update, admission.Update, admission.Delete)
	r := g.ownedObject(op)
	object, old := r.object.(metav1.Object), r.old.(metav1.Object)
	old.SetOwnerReferences(g.owners())
	switch g.IntN(4) {
	case 0:
		object.SetOwnerReferences(old.GetOwnerReferences())
	case 1:
		object.SetOwnerReferences(append(g.owners(), old.GetOwnerReferences()...))
	default:
		object.SetOwnerReferences(g.owners())
	}
	r.user, r.dryRun = pick(g, users()...), g.oneIn(20)
	switch op {
	case admission.Create:
		g.rename(object)
		r.name, r.old = object.GetName(), nil
	case admission.Delete:
		r.object = nil
	}
	return r
}

// ownedObject returns a request with an object and an old object without owner references.
func (g *generator) ownedObject(op admission.Operation) *request {
	at := metav1.ObjectMeta{Name: "shop", Namespace: pick(g, "plain", "plain", "empty")}
	labeled := metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "a"}}}
	sub := func(names ...string) string {
		if op != admission.Update {
			return ""
		}
		return pick(g, names...)
	}
	switch g.IntN(5) {
	case 0:
		o := &corev1.ConfigMap{ObjectMeta: at}
		return on(op, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps", "", o, o.DeepCopy())
	case 1:
		at.Namespace = ""
		o := &corev1.PersistentVolume{ObjectMeta: at}
		return on(op, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), "persistentvolumes", sub("", "", "status"), o, o.DeepCopy())
	case 2:
		o := &appsv1.Deployment{ObjectMeta: at, Spec: appsv1.DeploymentSpec{Selector: &labeled}}
		o.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labeled.MatchLabels}, Spec: pod}
		return on(op, appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", "", o, o.DeepCopy())
	}
	o := &corev1.Pod{ObjectMeta: at, Spec: pod}
	return onPods(op, sub("", "", "", "status", "ephemeralcontainers"), o, o.DeepCopy())
}
