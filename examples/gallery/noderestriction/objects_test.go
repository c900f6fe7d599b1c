// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

func newNodeObject(name string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"team": "a", "example.k8s.io/old": "b"}}}
	for _, change := range changes {
		change(n)
	}
	return n
}

func TestNodes(t *testing.T) {
	t.Parallel()
	const prefix = `nodes "a" is forbidden: `
	labelled := func(keys ...string) *corev1.Node {
		return newNodeObject("a", func(n *corev1.Node) {
			for _, key := range keys {
				n.Labels[key] = "new"
			}
		})
	}
	create := func(n *corev1.Node) call {
		delete(n.Labels, "example.k8s.io/old")
		return call{op: admissionv1.Create, kind: core("Node"), resource: "nodes", object: n}
	}
	update := func(n *corev1.Node) call {
		return call{op: admissionv1.Update, kind: core("Node"), resource: "nodes/status", object: n, old: newNodeObject("a")}
	}
	configured := func(n *corev1.Node) { n.Spec.ConfigSource = &corev1.NodeConfigSource{} } //nolint:staticcheck // deprecated
	tainted := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a"}} }
	owned := func(n *corev1.Node) { n.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} }
	permitted := []string{"team", "example.com/a", "kubernetes.io/hostname", "beta.kubernetes.io/os", "kubelet.kubernetes.io/a", "b.node.kubernetes.io/a", "notkubernetes.io/a", "k8s.io"}
	rows := []struct {
		reason string
		call   call
		want   string
	}{
		{"create", create(labelled(permitted...)), ""},
		{"create with taints", create(newNodeObject("a", tainted)), ""},
		{"create with restricted labels", create(labelled("z.k8s.io/a", "node-restriction.kubernetes.io/a")), prefix + `node "a" is not allowed to set the following labels: node-restriction.kubernetes.io/a, z.k8s.io/a`},
		{"create with configuration", create(newNodeObject("a", configured)), prefix + `node "a" is not allowed to create pods with a non-nil configSource`},
		{"update", update(labelled(permitted...)), ""},
		{"update restricted labels", update(labelled("k8s.io/a", "a.node-restriction.kubernetes.io/a")), prefix + `is not allowed to modify labels: a.node-restriction.kubernetes.io/a, k8s.io/a`},
		{"change a restricted label", update(labelled("example.k8s.io/old")), prefix + `is not allowed to modify labels: example.k8s.io/old`},
		{"remove a restricted label", update(newNodeObject("a", func(n *corev1.Node) { n.Labels = nil })), prefix + `is not allowed to modify labels: example.k8s.io/old`},
		{"update configuration", update(newNodeObject("a", configured)), prefix + `node "a" is not allowed to update configSource to a new non-nil configSource`},
		{"update taints", update(newNodeObject("a", tainted)), prefix + `node "a" is not allowed to modify taints`},
		{"update owners", update(newNodeObject("a", owned)), prefix + `node "a" is not allowed to modify ownerReferences`},
		{"delete", call{op: admissionv1.Delete, kind: core("Node"), resource: "nodes", old: newNodeObject("a")}, ""},
		{"another node", create(newNodeObject("b")), `nodes "b" is forbidden: node "a" is not allowed to modify node "b"`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) { row.call.check(t, row.want) })
	}
}

func TestLeasesAndCSINodes(t *testing.T) {
	t.Parallel()
	leaseOf := func(namespace, name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	const (
		elsewhere = `leases.coordination.k8s.io "a" is forbidden: can only access leases in the "kube-node-lease" system namespace`
		other     = `leases.coordination.k8s.io "b" is forbidden: can only access node lease with the same name as the requesting node`
		csi       = `csinodes.storage.k8s.io "b" is forbidden: can only access CSINode with the same name as the requesting node`
	)
	for _, op := range []admissionv1.Operation{admissionv1.Create, admissionv1.Delete} {
		check := func(resource string, object any, want string) {
			c := call{op: op, kind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), resource: resource, object: object}
			if resource == "csinodes" {
				c.kind = storagev1.SchemeGroupVersion.WithKind("CSINode")
			}
			if op == admissionv1.Delete {
				c.object, c.old = nil, object
			}
			c.check(t, want)
		}
		check("leases", leaseOf("kube-node-lease", "a"), "")
		check("leases", leaseOf("kube-node-lease", "b"), other)
		check("leases", leaseOf("team-a", "a"), elsewhere)
		check("csinodes", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, "")
		check("csinodes", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, csi)
	}
}

func TestResourceSlices(t *testing.T) {
	t.Parallel()
	kind := resourcev1.SchemeGroupVersion.WithKind("ResourceSlice")
	for name, node := range map[string]*string{"a": ptr.To("a"), "b": ptr.To("b"), "none": nil} {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{NodeName: node}}
		denial := func(verb string) string {
			if name == "a" {
				return ""
			}
			return `resourceslices.resource.k8s.io "` + name + `" is forbidden: can only ` + verb + ` ResourceSlice with the same NodeName as the requesting node`
		}
		call{op: admissionv1.Create, kind: kind, resource: "resourceslices", object: slice}.check(t, denial("create"))
		call{op: admissionv1.Delete, kind: kind, resource: "resourceslices", old: slice}.check(t, denial("delete"))
	}
}

// claimOf returns a claim that is bound to the volume with the same name.
func claimOf(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: name}}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	kind := core("PersistentVolumeClaim")
	expanded := claimOf("data")
	expanded.ResourceVersion, expanded.ManagedFields = "7", []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	expanded.Status = corev1.PersistentVolumeClaimStatus{
		Capacity:                  corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		AllocatedResources:        corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		AllocatedResourceStatuses: map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending},
		Conditions:                []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimResizing}},
	}
	call{op: admissionv1.Update, kind: kind, resource: "persistentvolumeclaims/status", object: expanded, old: claimOf("data")}.check(t, "")
	call{op: admissionv1.Update, kind: kind, resource: "persistentvolumeclaims", object: expanded, old: claimOf("data")}.check(t, `persistentvolumeclaims "data" is forbidden: may only update PVC status`)
	call{op: admissionv1.Create, kind: kind, resource: "persistentvolumeclaims/status", object: expanded}.check(t, `persistentvolumeclaims "data" is forbidden: unexpected operation "CREATE"`)

	bound := claimOf("data")
	bound.Status.Phase = corev1.ClaimBound
	c := call{op: admissionv1.Update, kind: kind, resource: "persistentvolumeclaims/status", object: bound, old: claimOf("data")}
	const want = `persistentvolumeclaims "data" is forbidden: node "a" is not allowed to update fields other than status.quantity and status.conditions: `
	if got := webhooktest.Decision(t, hooks(t)[0], c.request(t)); got.Allowed || !strings.HasPrefix(got.Result.Message, want) || !strings.Contains(got.Result.Message, `+  "phase": "Bound"`) {
		t.Errorf("got %+v", got.Result)
	}
}
