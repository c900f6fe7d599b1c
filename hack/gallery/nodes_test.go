// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	original "k8s.io/kubernetes/plugin/pkg/admission/noderestriction"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/noderestriction"
	"github.com/admitkit/admitkit/pkg/access"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func nodeControllers() []*controller {
	return []*controller{{
		name: original.PluginName, register: original.Register,
		clusters: [][]runtime.Object{nodeObjects()},
		hooks: func(t *testing.T, in cluster, _ string) []*webhook.Hook {
			return noderestriction.Hooks(in.forNodes(t))
		},
		edges: (*generator).nodeEdges, generate: (*generator).nodeRequest, prepare: (*server).prepareForNode,
		differences: []*difference{readsWhatIsNotCached(), deletesWhatIsSent(), knowsDrivers(), showsJSON()},
	}}
}

func readsWhatIsNotCached() *difference {
	asComplete := asInCompleteCluster()
	return &difference{
		name:   "live lookups",
		reason: "the original denies with 404 if its cache does not have a Pod yet; the hook asks the API server",
		is: func(c *comparison) bool {
			return c.original.code == http.StatusNotFound && strings.HasSuffix(c.original.message, `pod "`+notCached+`" not found`) && asComplete(c)
		},
	}
}

func deletesWhatIsSent() *difference {
	return &difference{
		name:   "deletion of a Pod",
		reason: "the original looks the Pod up by name and denies with 404 if its cache lacks the Pod or the request has no name; the hook checks the Pod that the API server sends",
		is: func(c *comparison) bool {
			if c.request.operation != admission.Delete || c.original.code != http.StatusNotFound || !strings.HasPrefix(c.original.message, `pod "`) {
				return false
			}
			node := strings.TrimPrefix(c.request.from().GetName(), "system:node:")
			if c.request.old.(*corev1.Pod).Spec.NodeName == node {
				return c.ours.verdict == allowed
			}
			return c.ours.verdict == denied && c.ours.code == http.StatusForbidden &&
				strings.HasSuffix(c.ours.message, fmt.Sprintf("is forbidden: node %q can only delete pods with spec.nodeName set to itself", node))
		},
	}
}

func knowsDrivers() *difference {
	asComplete := asInCompleteCluster()
	return &difference{
		name:   "volumes that cannot be translated",
		reason: "the original translates in-tree volumes and denies if that fails; the hook only looks up the driver",
		is: func(c *comparison) bool {
			return c.original.verdict == denied && strings.Contains(c.original.message, "failed to translate") && asComplete(c)
		},
	}
}

// asInCompleteCluster returns a function that reports whether the hooks decided as the original does in a cluster where
// it has all Pods in its cache and can translate all volumes.
func asInCompleteCluster() func(c *comparison) bool {
	var complete *variant
	return func(c *comparison) bool {
		if complete == nil {
			objects := nodeObjects()
			for _, pod := range only[*corev1.Pod](objects) {
				for _, v := range pod.Spec.Volumes {
					if v.AWSElasticBlockStore != nil {
						v.AWSElasticBlockStore.VolumeID = "vol-1"
					}
				}
			}
			in := newCluster(c.T, nil, objects)
			complete = nodeControllers()[0].variant(c.T, in, "")
			in.start(c.T)
		}
		want, ok := complete.original(c.T, c.request.encoded(c.T), true)
		if c.onServers && want.verdict == allowed {
			return c.ours.verdict == allowed // the stored object has other defaults
		}
		return ok && c.ours.equal(want)
	}
}

func showsJSON() *difference {
	return &difference{
		name:   "text of a diff",
		reason: "the original shows the difference between its internal types, the hook between those of the API",
		is: func(c *comparison) bool {
			original, ours := c.original, c.ours
			originalText, _, diff := strings.Cut(original.message, "status.quantity and status.conditions:")
			ourText, _, ourDiff := strings.Cut(ours.message, "status.quantity and status.conditions:")
			return diff && ourDiff && originalText == ourText && original.code == ours.code && original.reason == ours.reason
		},
	}
}

// forNodes returns the readers of the hook. Without an API server, access reviews allow only the audience "granted".
func (c cluster) forNodes(t *testing.T) noderestriction.Cluster {
	t.Helper()
	if client, ok := c.client.(*fake.Clientset); ok {
		client.PrependReactor("create", "subjectaccessreviews", reviewToken)
	}
	reviews, err := access.New(access.Options{Client: c.client.AuthorizationV1()})
	if err != nil {
		t.Fatal(err)
	}
	core := c.factory.Core().V1()
	lister := core.Pods().Lister()
	pods, err := reads.New(reads.Options[*corev1.Pod]{
		Resource: "pods",
		Cached:   func(namespace, name string) (*corev1.Pod, error) { return lister.Pods(namespace).Get(name) },
		Live: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return c.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return noderestriction.Cluster{
		Pods: pods, Access: reviews,
		Nodes: reader(t, "nodes", core.Nodes().Lister().Get, func(ctx context.Context, name string) (*corev1.Node, error) {
			return c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		}),
		Claims: core.PersistentVolumeClaims().Lister(), Volumes: core.PersistentVolumes().Lister(), Drivers: c.factory.Storage().V1().CSIDrivers().Lister(),
	}
}

// tokenVerb is the verb of the permission to request tokens for an audience that the Pod does not need.
const tokenVerb = "request-serviceaccounts-token-audience"

// reviewToken answers the access reviews for token requests.
func reviewToken(action clienttesting.Action) (bool, runtime.Object, error) {
	object := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
	what := object.Spec.ResourceAttributes
	object.Status.Allowed = what.Verb == tokenVerb && what.Resource == "granted" && what.Namespace == "plain" && what.Name == "robot"
	if what.Resource == "broken" {
		object.Status.EvaluationError = "no such role"
	}
	return what.Verb == tokenVerb, object, nil
}

// nodeUsers lists the users who send the requests. The first one is the most frequent.
var nodeUsers = []user.Info{
	&user.DefaultInfo{Name: "system:node:node-a", Groups: []string{"system:nodes", "system:authenticated"}},
	&user.DefaultInfo{Name: "system:node:node-b", Groups: []string{"system:authenticated", "system:nodes"}},
	&user.DefaultInfo{Name: "system:node:node-c", Groups: []string{"system:nodes"}},            // there is no such Node
	&user.DefaultInfo{Name: "system:node:node-a", Groups: []string{"system:authenticated"}},    // not in the group
	&user.DefaultInfo{Name: "system:node:", Groups: []string{"system:nodes"}},                  // without the name of a node
	&user.DefaultInfo{Name: "system:nodes:node-a", Groups: []string{"system:nodes", "others"}}, // not the name of a node
	nil,
}

// withUID returns metadata with the UID by which requests refer to the object.
func withUID(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": name}}
}

// nodeObjects returns the objects to which the requests refer. Their UIDs are "uid-" and the name.
func nodeObjects() []runtime.Object {
	all := []runtime.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "nodes"}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list", "create", "update", "delete"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			{Verbs: []string{tokenVerb}, APIGroups: []string{""}, Resources: []string{"granted"}, ResourceNames: []string{"robot"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "nodes"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "nodes"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"}},
		},
		&corev1.ServiceAccount{ObjectMeta: withUID("plain", "robot")},
		&storagev1.CSIDriver{ObjectMeta: withUID("", "ebs.csi.aws.com"), Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "disk"}}}},
		&storagev1.CSIDriver{ObjectMeta: withUID("", "csi.example.com"), Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "csi"}, {Audience: "more"}}}},
	}
	for _, name := range []string{"node-a", "node-b"} {
		node := &corev1.Node{ObjectMeta: withUID("", name), Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}}}
		node.Labels["example.k8s.io/old"], node.Labels["kubernetes.io/hostname"] = "yes", name
		all = append(all, node, &storagev1.CSINode{ObjectMeta: withUID("", name), Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{}}},
			&coordinationv1.Lease{ObjectMeta: withUID("kube-node-lease", name)}, &coordinationv1.Lease{ObjectMeta: withUID("plain", name)}, slice("slice-of-"+name, name))
	}
	for i, source := range []corev1.PersistentVolumeSource{
		{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}, {NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/"}},
		{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "a"}}, {CSI: &corev1.CSIPersistentVolumeSource{Driver: "gone.example.com", VolumeHandle: "a"}},
	} {
		all = append(all, &corev1.PersistentVolume{ObjectMeta: withUID("", []string{"ebs", "nfs", "csi", "other"}[i]), Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: source, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: quantities(corev1.ResourceStorage, "1Gi"),
		}})
	}
	for _, bound := range [][2]string{{"ebs", "ebs"}, {"nfs", "nfs"}, {"csi", "csi"}, {"other", "other"}, {"lost", "gone"}, {"unbound", ""}, {"ephemeral-scratch", "csi"}} {
		all = append(all, &corev1.PersistentVolumeClaim{
			ObjectMeta: withUID("plain", bound[0]),
			Spec: corev1.PersistentVolumeClaimSpec{
				VolumeName: bound[1], AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To(""),
				Resources: corev1.VolumeResourceRequirements{Requests: quantities(corev1.ResourceStorage, "1Gi")},
			},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: quantities(corev1.ResourceStorage, "1Gi")},
		})
	}
	for _, pod := range nodePods() {
		all = append(all, pod)
	}
	return all
}

func slice(name, node string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: withUID("", name), Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
	}}
}

// nodePods returns Pods on node-a, on node-b and on no node. Their volumes have different audiences.
func nodePods() []*corev1.Pod {
	pod := func(name, node string, volumes ...corev1.VolumeSource) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: withUID("plain", name), Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: "robot", Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}},
		}}
		for i, source := range volumes {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: string(rune('a' + i)), VolumeSource: source})
		}
		return p
	}
	claim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	token := func(audience string) corev1.VolumeSource {
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: ptr.To[int64](3600), Path: "token"},
		}}}}
	}
	ebs := func(id string) corev1.VolumeSource {
		return corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}
	}
	inline := corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}}
	claimed := pod("claimed", "node-a")
	claimed.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpu")}}
	claimed.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To("gpu-1")}}
	ephemeral := pod("ephemeral", "node-a")
	ephemeral.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: quantities(corev1.ResourceStorage, "1Gi")},
		}},
	}}}}
	inTree := pod("in-tree", "node-a", corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "a"}},
		corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "a", DataDiskURI: "/subscriptions/a", Kind: ptr.To(corev1.AzureManagedDisk)}},
		corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "a", ShareName: "a"}}, corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "a"}},
		corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "a"}}, corev1.VolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "a"}})
	return []*corev1.Pod{
		inTree, pod("plain-a", "node-a"), pod("plain-b", "node-b"), pod("unscheduled", ""), pod(notCached, "node-a"), claimed, ephemeral,
		pod("token", "node-a", token("vault")), pod("default-token", "node-a", token("")), pod("token-b", "node-b", token("vault")),
		pod("claims", "node-a", claim("nfs"), claim("ebs"), claim("csi")), pod("lost", "node-a", claim("lost"), claim("missing"), claim("unbound")),
		pod("inline", "node-a", inline, ebs("vol-1")), pod("broken", "node-a", ebs("aws://zone/not-an-id")), pod("other", "node-a", claim("other"), token("vault")),
	}
}
