// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	originallifecycle "k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	originalexists "k8s.io/kubernetes/plugin/pkg/admission/namespace/exists"

	"github.com/admitkit/admitkit/examples/gallery/namespaceexists"
	"github.com/admitkit/admitkit/examples/gallery/namespacelifecycle"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// lookUpNamespaces lists the admission controllers that do not admit an object if its Namespace does not exist.
var lookUpNamespaces = []string{originallifecycle.PluginName, "PodSecurity"}

// namespaceControllers returns the controllers whose decision depends only on the Namespace.
func namespaceControllers() []*controller {
	leaving := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}
	return []*controller{{
		name: originalexists.PluginName, register: originalexists.Register, hiddenBy: lookUpNamespaces,
		hooks: func(t *testing.T, in cluster, _ string) []*webhook.Hook {
			return []*webhook.Hook{namespaceexists.Hook(in.namespaces(t))}
		},
		edges: (*generator).namespaceEdges, generate: (*generator).namespaceRequest,
		differences: []*difference{failsInItsWords()},
	}, {
		name: originallifecycle.PluginName, register: originallifecycle.Register, hiddenBy: lookUpNamespaces,
		clusters: [][]runtime.Object{{leaving}}, partly: true,
		hooks: func(*testing.T, cluster, string) []*webhook.Hook {
			return []*webhook.Hook{namespacelifecycle.Hook(namespacelifecycle.Protected()...)}
		},
		edges: (*generator).namespaceEdges, generate: (*generator).lifecycleRequest,
		differences: []*difference{onlyProtected()},
	}}
}

// onlyProtected declares that the hook does not look at the namespaces of objects.
func onlyProtected() *difference {
	return &difference{
		name:   "objects in missing or terminating Namespaces",
		reason: "package namespaceexists denies the former; the replicas of a webhook do not all see a deletion in time to deny the latter",
		is: func(c *comparison) bool {
			original, ours := c.original, c.ours
			return original.verdict != allowed && !strings.Contains(original.message, "this namespace may not be deleted") && ours.verdict == allowed
		},
	}
}

// inValidation is an admission controller whose mutating part runs in the validating phase.
type inValidation struct{ admission.Interface }

// Validate calls the mutating part of the admission controller.

func (v inValidation) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return v.Interface.(admission.MutationInterface).Admit(ctx, a, o)
}

// errNoAnswer is the error for reading the Namespace unreadable.
var errNoAnswer = errors.New("the API server does not answer")

// failToRead makes the client fail to read the Namespace unreadable.
func failToRead(client *fake.Clientset) {
	client.PrependReactor("get", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.GetAction).GetName() == unreadable {
			return true, nil, errNoAnswer
		}
		return false, nil, nil
	})
}

// onNamespaces returns a request for a Namespace. The API server sets the namespace of such a request to the name.
func onNamespaces(op admission.Operation, name string) *request {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object, old := namespace, namespace.DeepCopy()
	switch op {
	case admission.Create:
		old = nil
	case admission.Delete:
		object = nil
	}
	r := on(op, corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", "", object, old)
	r.namespace = name
	return r
}

func (g *generator) namespaceEdges() (all []*request) {
	names := []string{"default", "kube-system", "kube-public", "kube-node-lease", "plain", notCached, "gone", unreadable, "leaving", "kube-public-2", "DEFAULT"}
	for _, op := range []admission.Operation{admission.Create, admission.Update, admission.Delete} {
		for _, name := range names {
			all = append(all, onNamespaces(op, name), g.inNamespace(op, name, "", "configmaps"))
			for _, subresource := range []string{"", "status", "ephemeralcontainers"} {
				all = append(all, g.inNamespace(op, name, subresource, "pods"))
			}
		}
		all = append(all, g.inNamespace(op, "", "", "persistentvolumes"))
	}
	for _, subresource := range []string{"status", "finalize"} {
		r := onNamespaces(admission.Update, "default")
		r.subresource = subresource
		all = append(all, r)
	}
	for _, name := range []string{"plain", "gone"} {
		review := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: name}}
		all = append(all, on(admission.Create, authorizationv1.SchemeGroupVersion.WithKind("LocalSubjectAccessReview"), "localsubjectaccessreviews", "", review, nil))
	}
	return all
}

// inNamespace returns a request for an object in a namespace. PersistentVolumes have none.
func (g *generator) inNamespace(op admission.Operation, namespace, subresource, resource string) *request {
	at := metav1.ObjectMeta{Name: "shop", Namespace: namespace}
	var r *request
	switch resource {
	case "pods":
		pod := &corev1.Pod{ObjectMeta: at, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "a"}}}}
		r = onPods(op, subresource, pod, pod.DeepCopy())
	case "configmaps":
		config := &corev1.ConfigMap{ObjectMeta: at}
		r = on(op, corev1.SchemeGroupVersion.WithKind("ConfigMap"), resource, subresource, config, config.DeepCopy())
	default:
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		r = on(op, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), "persistentvolumes", subresource, volume, volume.DeepCopy())
	}
	if op == admission.Delete {
		r.object = nil
	}
	return created(op, r)
}

// namespaceRequest returns a request for an object in a namespace that may not exist, or for a Namespace.
func (g *generator) namespaceRequest() *request {
	op := pick(g, admission.Create, admission.Create, admission.Update, admission.Delete)
	name := pick(g, g.namespaces...).Name
	switch g.IntN(10) {
	case 0, 1:
		name = "gone"
	case 2:
		name = unreadable
	}
	if g.oneIn(8) {
		return onNamespaces(op, name)
	}
	resource := pick(g, "pods", "pods", "configmaps", "configmaps", "persistentvolumes")
	subresource := ""
	if op == admission.Update && resource == "pods" {
		subresource = pick(g, "", "", "status", "ephemeralcontainers")
	}
	r := g.inNamespace(op, name, subresource, resource)
	r.dryRun = g.oneIn(10)
	return r
}

// lifecycleRequest returns a deletion of a Namespace, and sometimes a request for an object.
func (g *generator) lifecycleRequest() *request {
	if g.oneIn(4) {
		if g.oneIn(8) {
			return g.inNamespace(pick(g, admission.Create, admission.Update, admission.Delete), "leaving", "", "configmaps")
		}
		return g.namespaceRequest()
	}
	name := pick(g, g.namespaces...).Name
	if g.oneIn(2) {
		name = pick(g, "default", "kube-system", "kube-public", "kube-node-lease")
	}
	r := onNamespaces(admission.Delete, name)
	r.exists, r.dryRun = true, true // otherwise the API server would delete the Namespace
	return r
}
