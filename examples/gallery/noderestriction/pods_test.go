// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// onNode returns a Pod on this node, with the same name.
func onNode(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "app"}}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// mirrorPod returns a mirror Pod of Node a.
func mirrorPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	return onNode("a", append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "a", UID: "uid-a", Controller: ptr.To(true)}}
	}}, changes...)...)
}

func TestPods(t *testing.T) {
	t.Parallel()
	const prefix = `pods "a" is forbidden: `
	create := func(p *corev1.Pod) call {
		return call{op: admissionv1.Create, kind: core("Pod"), resource: "pods", object: p}
	}
	update := func(resource string, p, old *corev1.Pod) call {
		return call{op: admissionv1.Update, kind: core("Pod"), resource: resource, object: p, old: old}
	}
	remove := func(p *corev1.Pod) call {
		return call{op: admissionv1.Delete, kind: core("Pod"), resource: "pods", old: p}
	}
	owner := func(change func(*metav1.OwnerReference)) call {
		return create(mirrorPod(func(p *corev1.Pod) { change(&p.OwnerReferences[0]) }))
	}
	bind := call{op: admissionv1.Create, kind: core("Binding"), resource: "pods/binding", object: &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a"}}}
	const own = `node "a" can only create pods with an owner reference set to itself`
	rows := []struct {
		reason string
		call   call
		want   string
	}{
		{"a mirror Pod", create(mirrorPod()), ""},
		{"blockOwnerDeletion is false", owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = ptr.To(false) }), ""},
		{"not a mirror Pod", create(onNode("a")), prefix + `pod does not have "kubernetes.io/config.mirror" annotation, node "a" can only create mirror pods`},
		{"another node", create(mirrorPod(func(p *corev1.Pod) { p.Spec.NodeName = "b" })), prefix + `node "a" can only create pods with spec.nodeName set to itself`},
		{"two owners", create(mirrorPod(func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0]) })), prefix + `node "a" can only create pods with a single owner reference set to itself`},
		{"no owner", create(mirrorPod(func(p *corev1.Pod) { p.OwnerReferences = nil })), prefix + own},
		{"another version", owner(func(o *metav1.OwnerReference) { o.APIVersion = "v2" }), prefix + own},
		{"another kind", owner(func(o *metav1.OwnerReference) { o.Kind = "Pod" }), prefix + own},
		{"another owner", owner(func(o *metav1.OwnerReference) { o.Name = "b" }), prefix + own},
		{"not a controller", owner(func(o *metav1.OwnerReference) { o.Controller = nil }), prefix + `node "a" can only create pods with a controller owner reference set to itself`},
		{"blockOwnerDeletion", owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = ptr.To(true) }), prefix + `node "a" must not set blockOwnerDeletion on an owner reference`},
		{"another UID", owner(func(o *metav1.OwnerReference) { o.UID = "other" }), prefix + `node a UID mismatch: expected other got uid-a`},
		{"update", update("pods", mirrorPod(), mirrorPod()), prefix + `unexpected operation "UPDATE", node "a" can only create and delete mirror pods`},
		{"resize", update("pods/resize", mirrorPod(), mirrorPod()), prefix + `unexpected pod subresource "resize", only 'status' and 'eviction' are allowed`},
		{"binding", bind, prefix + `unexpected pod subresource "binding", only 'status' and 'eviction' are allowed`},
		{"delete", remove(onNode("a")), ""},
		{"delete the Pod of another node", remove(onNode("b")), `pods "b" is forbidden: node "a" can only delete pods with spec.nodeName set to itself`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) { row.call.check(t, row.want) })
	}
}

func TestPodStatus(t *testing.T) {
	t.Parallel()
	const prefix = `pods "a" is forbidden: node "a" cannot update `
	claimed := func(name string) *corev1.Pod {
		return onNode("a", func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To(name)}}
		})
	}
	extended := func(p *corev1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "a"}
	}
	rows := []struct {
		reason   string
		pod, old *corev1.Pod
		want     string
	}{
		{"the phase changes", onNode("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), onNode("a"), ""},
		{"the same claims", claimed("a"), claimed("a"), ""},
		{"empty labels instead of none", onNode("a", func(p *corev1.Pod) { p.Labels = map[string]string{} }), onNode("a", func(p *corev1.Pod) { p.Labels = nil }), ""},
		{"another node", onNode("b"), onNode("b"), `pods "b" is forbidden: node "a" can only update pod status for pods with spec.nodeName set to itself`},
		{"the labels change", onNode("a", func(p *corev1.Pod) { p.Labels = nil }), onNode("a"), prefix + "labels through pod status"},
		{"the claims change", claimed("a"), claimed("b"), prefix + "resource claim statues"},
		{"the claim for extended resources changes", onNode("a", extended), onNode("a"), prefix + "extended resource claim status"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			call{op: admissionv1.Update, kind: core("Pod"), resource: "pods/status", object: row.pod, old: row.old}.check(t, row.want)
		})
	}
	call{op: admissionv1.Create, kind: core("Pod"), resource: "pods/status", object: onNode("a")}.check(t, `pods "a" is forbidden: unexpected operation "CREATE"`)
}

// evict returns an eviction of a Pod.
func evict(name string) call {
	return call{
		op: admissionv1.Create, kind: policyv1.SchemeGroupVersion.WithKind("Eviction"), resource: "pods/eviction",
		object: &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}},
	}
}

func TestEvictions(t *testing.T) {
	t.Parallel()
	evict("a").check(t, "")
	evict("b").check(t, `pods "b" is forbidden: node a can only evict pods with spec.nodeName set to itself`)
	evict("").check(t, `pods "Unknown" is forbidden: could not determine pod from request data`)
	evict("gone").check(t, `pod "gone" not found`)
	inBody := evict("a")
	inBody.change = func(req *admissionv1.AdmissionRequest) { req.Name = "" }
	inBody.check(t, "")
	removed := evict("a")
	removed.op, removed.object, removed.old = admissionv1.Delete, nil, removed.object
	removed.check(t, `pods "a" is forbidden: unexpected operation DELETE`)
}

// TestReferences checks which references to objects a mirror Pod can have.
func TestReferences(t *testing.T) {
	t.Parallel()
	named := corev1.LocalObjectReference{Name: "a"}
	volume := func(s corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: s}} }
	}
	projected := func(p corev1.VolumeProjection) func(*corev1.PodSpec) {
		return volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{p}}})
	}
	env := func(s corev1.EnvVarSource) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &s}} }
	}
	from := func(s corev1.EnvFromSource) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "b", EnvFrom: []corev1.EnvFromSource{s}}}}
		}
	}
	rows := map[string][]func(*corev1.PodSpec){
		"": {
			env(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}),
			volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), projected(corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}}),
			func(spec *corev1.PodSpec) { spec.ImagePullSecrets = []corev1.LocalObjectReference{{}} },
		},
		"serviceaccounts": {func(spec *corev1.PodSpec) { spec.ServiceAccountName = "a" }},
		"resourceclaims":  {func(spec *corev1.PodSpec) { spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a"}} }},
		"secrets": {
			func(spec *corev1.PodSpec) { spec.ImagePullSecrets = []corev1.LocalObjectReference{named} },
			env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named}}),
			from(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named}}),
			volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}),
			projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: named}}),
		},
		"configmaps": {
			env(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named}}),
			from(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named}}),
			volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named}}),
			projected(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named}}),
		},
		"configmaps (via configmap volumes)":             {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}})},
		"secrets (via secret volumes)":                   {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}})},
		"csidrivers (via CSI volumes)":                   {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}})},
		"endpoints (via glusterFS volumes)":              {volume(corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{}})},
		"persistentvolumeclaims":                         {volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}})},
		"persistentvolumeclaims (via ephemeral volumes)": {volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})},
		"secrets (via azureFile volumes)":                {volume(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{}})},
		"configmaps (via projected volumes)":             {projected(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{}})},
		"secrets (via projected volumes)":                {projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{}})},
		"serviceaccounts (via projected volumes)":        {projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}})},
		"clustertrustbundles":                            {projected(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}})},
		"podcertificates":                                {projected(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}})},
		`error: unknown source for projected volume "v"`: {projected(corev1.VolumeProjection{})},
		`error: unknown volume type for volume  "v"`:     {volume(corev1.VolumeSource{})},
	}
	for want, changes := range rows {
		for i, change := range changes {
			got, err := referredTo(mirrorPod(func(p *corev1.Pod) { change(&p.Spec) }))
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != want {
				t.Errorf("%s, case %d: got %q", want, i, got)
			}
		}
	}
	mirror := func(change func(*corev1.PodSpec)) call {
		return call{op: admissionv1.Create, kind: core("Pod"), resource: "pods", object: mirrorPod(func(p *corev1.Pod) { change(&p.Spec) })}
	}
	mirror(rows["resourceclaims"][0]).check(t, `pods "a" is forbidden: node "a" can not create pods that reference resourceclaims`)
	mirror(volume(corev1.VolumeSource{})).check(t, `pods "a" is forbidden: error checking mirror pod for API references: unknown volume type for volume  "v"`)
}
