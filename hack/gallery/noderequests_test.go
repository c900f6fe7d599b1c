// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

// nodeEdges returns each fixed request once for each user.
func (g *generator) nodeEdges() (all []*request) {
	var list []*request
	for _, requests := range nodeRequests {
		list = append(list, requests(g, g.each)...)
	}
	for _, r := range list {
		for _, from := range nodeUsers {
			r := *r
			r.user = from
			all = append(all, &r)
		}
	}
	return all
}

// nodeRequest returns a request with random changes from a random user.
func (g *generator) nodeRequest() *request {
	r := pick(g, pick(g, nodeRequests...)(g, g.some)...)
	r.user, r.dryRun = pick(g, append(nodeUsers, nodeUsers[0], nodeUsers[0], nodeUsers[0], nodeUsers[0], nodeUsers[1])...), g.oneIn(2)
	return r
}

// A chooser selects from n possible changes of an object. It returns a list for each copy of the object to generate:
// the indexes of the changes in this copy.
type chooser func(n int) [][]int

// each is a chooser for one copy without a change, and one copy for each change.
func (g *generator) each(n int) (all [][]int) {
	all = append(all, nil)
	for i := range n {
		all = append(all, []int{i})
	}
	return all
}

// some is a chooser for one copy with at most two changes.
func (g *generator) some(n int) [][]int {
	var list []int
	for range g.IntN(3) {
		list = append(list, g.IntN(n))
	}
	return [][]int{list}
}

// changed returns a copy of the object for each list of changes that choose returns.
func changed[T any, P interface {
	*T
	DeepCopy() *T
}](choose chooser, object P, changes []func(P)) (all []P) {
	for _, chosen := range choose(len(changes)) {
		after := P(object.DeepCopy())
		for _, i := range chosen {
			changes[i](after)
		}
		all = append(all, after)
	}
	return all
}

// stored returns the objects of a type that the cluster has.
func stored[T runtime.Object]() (all []T) {
	for _, object := range nodeObjects() {
		if o, ok := object.(T); ok {
			all = append(all, o)
		}
	}
	return all
}

// nodeRequests lists functions that return related requests, such as all requests for the status of Pods.
var nodeRequests = []func(g *generator, choose chooser) []*request{
	mirrorPods, podStatuses, otherPodRequests, evictions, nodesAsNodes, claimStatuses, tokenRequests, ownObjects, certificateRequests,
}

func mirrorPods(_ *generator, choose chooser) (all []*request) {
	for _, node := range []string{"node-a", "node-c"} {
		mirror := &corev1.Pod{ObjectMeta: withUID("plain", "static"), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}}}}
		mirror.UID = ""
		mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
		mirror.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID("uid-" + node), Controller: ptr.To(true)}}
		for _, pod := range changed(choose, mirror, mirrorChanges()) {
			all = append(all, onPods(admission.Create, "", pod, nil))
		}
	}
	return all
}

// mirrorChanges returns changes that make a mirror Pod forbidden, and some harmless ones.
func mirrorChanges() []func(*corev1.Pod) {
	owner := func(change func(*metav1.OwnerReference)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for i := range p.OwnerReferences {
				change(&p.OwnerReferences[i])
			}
		}
	}
	list := []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Annotations = nil },
		func(p *corev1.Pod) { p.Annotations = merged(p.Annotations, corev1.MirrorPodAnnotationKey, "") },
		func(p *corev1.Pod) { p.Name, p.GenerateName = "", "static-" },
		func(p *corev1.Pod) { p.Spec.NodeName = "node-b" },
		func(p *corev1.Pod) { p.Spec.NodeName = "" },
		func(p *corev1.Pod) { p.OwnerReferences = nil },
		func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences...) },
		owner(func(o *metav1.OwnerReference) { o.APIVersion = "v2" }), owner(func(o *metav1.OwnerReference) { o.Kind = "Pod" }),
		owner(func(o *metav1.OwnerReference) { o.Name = "node-b" }), owner(func(o *metav1.OwnerReference) { o.UID = "another" }),
		owner(func(o *metav1.OwnerReference) { o.Controller = nil }), owner(func(o *metav1.OwnerReference) { o.Controller = ptr.To(false) }),
		owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = ptr.To(false) }), owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = ptr.To(true) }),
		func(p *corev1.Pod) { p.Spec.ServiceAccountName = "robot" },
		func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{}, {Name: "a"}} },
		func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: ptr.To("a")}}
		},
		func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug", Image: "a", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}}},
			}}}
		},
	}
	for _, from := range []*corev1.EnvVarSource{
		{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}, {SecretKeyRef: &corev1.SecretKeySelector{Key: "a"}},
		{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Key: "a"}},
		{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Key: "a"}},
	} {
		list = append(list, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "a", Env: []corev1.EnvVar{{Name: "A", ValueFrom: from}}}}
		})
	}
	for _, source := range volumeSources() {
		list = append(list, func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
		})
	}
	return list
}

// volumeSources returns a volume source of each type, with and without a Secret.
func volumeSources() []corev1.VolumeSource {
	secret := &corev1.LocalObjectReference{Name: "a"}
	named := corev1.LocalObjectReference{Name: "a"}
	list := []corev1.VolumeSource{
		{}, {HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}, {EmptyDir: &corev1.EmptyDirVolumeSource{}}, {GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "a"}},
		{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "a"}}, {GitRepo: &corev1.GitRepoVolumeSource{Repository: "a"}},
		{Secret: &corev1.SecretVolumeSource{}}, {Secret: &corev1.SecretVolumeSource{SecretName: "a"}}, {NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/"}},
		{ISCSI: &corev1.ISCSIVolumeSource{}}, {ISCSI: &corev1.ISCSIVolumeSource{SecretRef: secret}}, {Glusterfs: &corev1.GlusterfsVolumeSource{EndpointsName: "a"}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "ebs"}}, {RBD: &corev1.RBDVolumeSource{}}, {RBD: &corev1.RBDVolumeSource{SecretRef: secret}},
		{FlexVolume: &corev1.FlexVolumeSource{Driver: "a"}}, {FlexVolume: &corev1.FlexVolumeSource{SecretRef: secret}}, {Cinder: &corev1.CinderVolumeSource{}},
		{Cinder: &corev1.CinderVolumeSource{SecretRef: secret}}, {CephFS: &corev1.CephFSVolumeSource{}}, {CephFS: &corev1.CephFSVolumeSource{SecretRef: secret}},
		{Flocker: &corev1.FlockerVolumeSource{}}, {DownwardAPI: &corev1.DownwardAPIVolumeSource{}}, {FC: &corev1.FCVolumeSource{}},
		{AzureFile: &corev1.AzureFileVolumeSource{}}, {AzureFile: &corev1.AzureFileVolumeSource{SecretName: "a"}}, {ConfigMap: &corev1.ConfigMapVolumeSource{}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named}}, {VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}}, {Quobyte: &corev1.QuobyteVolumeSource{}},
		{AzureDisk: &corev1.AzureDiskVolumeSource{}}, {PhotonPersistentDisk: &corev1.PhotonPersistentDiskVolumeSource{}}, {PortworxVolume: &corev1.PortworxVolumeSource{}},
		{ScaleIO: &corev1.ScaleIOVolumeSource{}}, {ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: secret}}, {StorageOS: &corev1.StorageOSVolumeSource{}},
		{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: secret}}, {CSI: &corev1.CSIVolumeSource{Driver: "a"}}, {CSI: &corev1.CSIVolumeSource{Driver: "a", NodePublishSecretRef: secret}},
		{Ephemeral: &corev1.EphemeralVolumeSource{}}, {Image: &corev1.ImageVolumeSource{Reference: "a"}},
	}
	for _, sources := range [][]corev1.VolumeProjection{
		nil, {{}}, {{DownwardAPI: &corev1.DownwardAPIProjection{}}}, {{DownwardAPI: &corev1.DownwardAPIProjection{}}, {}},
		{{Secret: &corev1.SecretProjection{}}}, {{Secret: &corev1.SecretProjection{LocalObjectReference: named}}}, {{ConfigMap: &corev1.ConfigMapProjection{}}},
		{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named}}}, {{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "a"}}},
		{{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "a"}}}, {{PodCertificate: &corev1.PodCertificateProjection{}}},
	} {
		list = append(list, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}})
	}
	return list
}

func podStatuses(_ *generator, choose chooser) (all []*request) {
	changes := []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning },
		func(p *corev1.Pod) { p.Labels = map[string]string{} },
		func(p *corev1.Pod) { p.Labels["new"] = "label" },
		func(p *corev1.Pod) { p.Annotations = map[string]string{"new": "annotation"} },
		func(p *corev1.Pod) { p.Status.ResourceClaimStatuses = nil },
		func(p *corev1.Pod) { p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu"}} },
		func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To("gpu-2")}}
		},
		func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "tpu", ResourceClaimName: ptr.To("gpu-1")}}
		},
		func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "a"}
		},
		func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "app", ResourceName: "example.com/gpu", RequestName: "a"}}}
		},
	}
	for _, old := range stored[*corev1.Pod]() {
		for _, pod := range changed(choose, old, changes) {
			all = append(all, onPods(admission.Update, "status", pod, old))
		}
	}
	extended := stored[*corev1.Pod]()[0]
	changes[9](extended)
	for _, pod := range changed(choose, extended, changes) {
		all = append(all, onPods(admission.Update, "status", pod, extended))
	}
	return append(all, onPods(admission.Create, "status", extended, nil))
}

// otherPodRequests returns requests for Pods whose answer does not depend on the content of the Pod, and one for
// another resource.
func otherPodRequests(g *generator, _ chooser) (all []*request) {
	for _, node := range []string{"node-a", "node-b"} { // not in the cache
		all = append(all, onPods(admission.Delete, "", nil, &corev1.Pod{ObjectMeta: withUID("plain", "gone"), Spec: corev1.PodSpec{NodeName: node}}))
	}
	for _, pod := range stored[*corev1.Pod]() {
		collection := onPods(admission.Delete, "", nil, pod)
		collection.name = ""
		all = append(all, onPods(admission.Delete, "", nil, pod), onPods(admission.Update, "", pod, pod), onPods(admission.Update, "resize", pod, pod),
			onPods(admission.Update, "ephemeralcontainers", pod, pod), collection,
			g.other(pod, "pods", "binding", "Binding", &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-a"}}))
	}
	return append(all, on(admission.Create, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps", "", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plain", GenerateName: "a-"}}, nil))
}

func evictions(*generator, chooser) (all []*request) {
	for _, pod := range append(stored[*corev1.Pod](), &corev1.Pod{ObjectMeta: withUID("plain", "gone")}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "plain"}}) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "plain", Name: pod.Name}}
		r := on(admission.Create, policyv1.SchemeGroupVersion.WithKind("Eviction"), "pods", "eviction", eviction, nil)
		r.resource = corev1.SchemeGroupVersion.WithResource("pods")
		unnamed := *r
		unnamed.name = ""
		all = append(all, r, &unnamed)
	}
	return all
}

func nodesAsNodes(_ *generator, choose chooser) (all []*request) {
	changes := []func(*corev1.Node){
		func(n *corev1.Node) { n.Labels = nil },
		func(n *corev1.Node) { n.Labels = merged(n.Labels, "app", "other") },
		func(n *corev1.Node) { delete(n.Labels, "example.k8s.io/old") },
		func(n *corev1.Node) { n.Labels = merged(n.Labels, "example.k8s.io/old", "no") },
		func(n *corev1.Node) { n.Labels = merged(n.Labels, "example.k8s.io/old", "zero") },
		func(n *corev1.Node) { n.Spec.Taints = nil },
		func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "new", Effect: corev1.TaintEffectNoExecute})
		},
		func(n *corev1.Node) {
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-b", UID: "uid-node-b"}}
		},
		func(n *corev1.Node) {
			//nolint:staticcheck // the original still checks this field
			n.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "plain", Name: "a", KubeletConfigKey: "a"}}
		},
		func(n *corev1.Node) { n.Spec.ProviderID = "" },
	}
	for _, key := range []string{
		"kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region", "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "kubernetes.io/os", "kubernetes.io/arch",
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch", "kubelet.kubernetes.io/a", "a.kubelet.kubernetes.io/a", "node.kubernetes.io/a", "a.node.kubernetes.io/a",
		"node-restriction.kubernetes.io/a", "a.node-restriction.kubernetes.io/a", "a-node-restriction.kubernetes.io/a", "kubernetes.io/a", "k8s.io/a", "a.kubernetes.io/a",
		"a.k8s.io/a", "notk8s.io/a", "example.com/a", "k8s.io", "kubernetes.io", "mynode.kubernetes.io/a", "node-role.kubernetes.io/control-plane",
	} {
		changes = append(changes, func(n *corev1.Node) { n.Labels = merged(n.Labels, key, "new") })
	}
	kind := corev1.SchemeGroupVersion.WithKind("Node")
	for _, old := range stored[*corev1.Node]() {
		for _, node := range changed(choose, old, changes) {
			created := node.DeepCopy()
			delete(created.Labels, "example.k8s.io/old")
			all = append(all, on(admission.Create, kind, "nodes", "", created, nil), on(admission.Update, kind, "nodes", "", node, old), on(admission.Update, kind, "nodes", "status", node, old))
		}
		all = append(all, on(admission.Delete, kind, "nodes", "", nil, old))
	}
	configured := stored[*corev1.Node]()[0]
	changes[8](configured)
	remove := func(n *corev1.Node) { n.Spec.ConfigSource = nil } //nolint:staticcheck // the original still checks this field
	for _, node := range changed(choose, configured, append(changes, remove)) {
		all = append(all, on(admission.Update, kind, "nodes", "status", node, configured))
	}
	unknown := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-c"}}
	generated := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}
	return append(all, on(admission.Create, kind, "nodes", "", unknown, nil), on(admission.Create, kind, "nodes", "", generated, nil))
}

func merged(labels map[string]string, key, value string) map[string]string {
	after := map[string]string{key: value}
	for k, v := range labels {
		if k != key {
			after[k] = v
		}
	}
	return after
}

func claimStatuses(_ *generator, choose chooser) (all []*request) {
	changes := []func(*corev1.PersistentVolumeClaim){
		func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = quantities(corev1.ResourceStorage, "2Gi") },
		func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResources = quantities(corev1.ResourceStorage, "1Gi")
		},
		func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizeInProgress}
		},
		func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue}}
		},
		func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost },
		func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"new": "label"} },
		func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"example.com/a"} },
		func(c *corev1.PersistentVolumeClaim) {
			c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate}}
		},
		func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{} },
	}
	kind := corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	for _, old := range stored[*corev1.PersistentVolumeClaim]() {
		for _, claim := range changed(choose, old, changes) {
			all = append(all, on(admission.Update, kind, "persistentvolumeclaims", "status", claim, old), on(admission.Update, kind, "persistentvolumeclaims", "", claim, old))
		}
		unnamed := old.DeepCopy()
		unnamed.Name, unnamed.GenerateName, unnamed.UID = "", "data-", ""
		all = append(all, on(admission.Create, kind, "persistentvolumeclaims", "", unnamed, nil), on(admission.Delete, kind, "persistentvolumeclaims", "", nil, old),
			on(admission.Create, kind, "persistentvolumeclaims", "status", old, nil))
	}
	return all
}

func tokenRequests(_ *generator, choose chooser) (all []*request) {
	ref := func(change func(*authenticationv1.BoundObjectReference)) func(*authenticationv1.TokenRequest) {
		return func(r *authenticationv1.TokenRequest) {
			if r.Spec.BoundObjectRef != nil {
				change(r.Spec.BoundObjectRef)
			}
		}
	}
	changes := []func(*authenticationv1.TokenRequest){
		func(r *authenticationv1.TokenRequest) { r.Spec.BoundObjectRef = nil },
		ref(func(o *authenticationv1.BoundObjectReference) { o.Kind = "Node" }), ref(func(o *authenticationv1.BoundObjectReference) { o.APIVersion = "" }),
		ref(func(o *authenticationv1.BoundObjectReference) { o.Name = "" }), ref(func(o *authenticationv1.BoundObjectReference) { o.Name = "gone" }),
		ref(func(o *authenticationv1.BoundObjectReference) { o.UID = "" }), ref(func(o *authenticationv1.BoundObjectReference) { o.UID = "another" }),
	}
	for _, audiences := range [][]string{{""}, {"vault"}, {"disk"}, {"csi"}, {"more"}, {"granted"}, {"broken"}, {"other"}, {"vault", "vault"}} {
		changes = append(changes, func(r *authenticationv1.TokenRequest) { r.Spec.Audiences = audiences })
	}
	for _, pod := range stored[*corev1.Pod]() {
		token := &authenticationv1.TokenRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "plain", Name: "robot"}, Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}
		for _, r := range changed(choose, token, changes) {
			r := on(admission.Create, authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), "serviceaccounts", "token", r, nil)
			r.resource = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
			all = append(all, r)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "plain", GenerateName: "a-"}}
	return append(all, on(admission.Create, corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "serviceaccounts", "", account, nil))
}
