// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	originalaccount "k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/serviceaccount"
	"github.com/admitkit/admitkit/examples/gallery/sources"
	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// accountControllers returns the controllers that depend on ServiceAccounts.
func accountControllers() []*controller {
	return []*controller{{
		name: originalaccount.PluginName, register: originalaccount.Register, clusters: [][]runtime.Object{serviceAccounts()},
		hooks: func(t *testing.T, in cluster, _ string) []*webhook.Hook {
			accounts, err := reads.New(sources.ServiceAccounts(in.client, in.factory))
			if err != nil {
				t.Fatal(err)
			}
			return serviceaccount.Hooks(accounts)
		},
		edges: (*generator).accountEdges, generate: (*generator).accountRequest,
		differences: []*difference{deniedWith403(), failsToRead()}, plain: withoutRandomNames,
		broken: []brokenLaw{{law: idempotence.L5, reason: "as in the original, a volume whose name has the prefix is used as the token volume"}},
	}}
}

// withoutRandomNames removes the ends of the names of token volumes, which differ between the original and the hook.
func withoutRandomNames(r result) result {
	pod, ok := r.object.(*corev1.Pod)
	if !ok {
		return r
	}
	pod = pod.DeepCopy()
	rename := func(name *string) {
		*name = tokenVolumes.ReplaceAllString(*name, "kube-api-access")
	}
	for i := range pod.Spec.Volumes {
		rename(&pod.Spec.Volumes[i].Name)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for j := range list[i].VolumeMounts {
				rename(&list[i].VolumeMounts[j].Name)
			}
		}
	}
	r.object = pod
	return r
}

// accountNamespaces have ServiceAccounts. Those of the Namespace notCached are in no cache.
var accountNamespaces = []string{"plain", "empty", "ns-0", "ns-1", notCached}

// accountNames are the ServiceAccounts of a Namespace, and one that does not exist. Names that appear several times are
// picked more often.
var accountNames = []string{serviceaccount.DefaultName, "strict", "strict", "strict", "relaxed", "odd", "manual", "automatic", notCached, "gone"}

func serviceAccounts() (all []runtime.Object) {
	secrets := []corev1.ObjectReference{{Name: "listed"}, {Name: "other-listed"}}
	pull := []corev1.LocalObjectReference{{Name: "pull"}, {Name: "other-pull"}}
	for _, namespace := range accountNamespaces {
		add := func(name string, change func(*corev1.ServiceAccount)) {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{}}}
			change(account)
			all = append(all, account)
		}
		add(serviceaccount.DefaultName, func(*corev1.ServiceAccount) {})
		for name, enforced := range map[string]string{"strict": "true", "relaxed": "false", "odd": "yes", notCached: "1"} {
			add(name, func(a *corev1.ServiceAccount) {
				a.Annotations[serviceaccount.EnforceAnnotation] = enforced
				a.Secrets, a.ImagePullSecrets = secrets, pull
			})
		}
		add("manual", func(a *corev1.ServiceAccount) { a.AutomountServiceAccountToken = ptr.To(false) })
		add("automatic", func(a *corev1.ServiceAccount) {
			a.AutomountServiceAccountToken, a.ImagePullSecrets = ptr.To(true), pull[:1]
			a.Annotations[serviceaccount.EnforceAnnotation] = "T"
		})
	}
	return all
}

// defaultAccounts returns the ServiceAccounts that a controller creates in Namespaces, except for those of
// serviceAccounts. The Namespace gone has one, too, so that requests for it need not wait.
func defaultAccounts(namespaces []*corev1.Namespace) []runtime.Object {
	account := func(namespace string) runtime.Object {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceaccount.DefaultName}}
	}
	all := []runtime.Object{account("gone")}
	for _, ns := range namespaces {
		if !slices.Contains(accountNamespaces, ns.Name) {
			all = append(all, account(ns.Name))
		}
	}
	return all
}

// plainPod returns a Pod that uses the ServiceAccount, with an init container and a container.
func plainPod(account string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "plain"},
		Spec: corev1.PodSpec{
			ServiceAccountName: account,
			InitContainers:     []corev1.Container{{Name: "init", Image: "a"}},
			Containers:         []corev1.Container{{Name: "app", Image: "a"}},
		},
	}
}

// accountEdges returns requests for fixed variants of Pods. Only two of the requests wait for a ServiceAccount with the
// name default.
func (g *generator) accountEdges() (all []*request) {
	waiting := plainPod("")
	waiting.Namespace = "null"
	named := plainPod(serviceaccount.DefaultName)
	named.Namespace = "gone"
	hidden := plainPod("strict")
	hidden.Namespace = unreadable
	all = append(all, onPods(admission.Create, "", waiting, nil), onPods(admission.Create, "", named, nil), onPods(admission.Create, "", hidden, nil))
	for _, account := range append(accountNames, "") {
		for _, mirror := range []bool{false, true} {
			for _, change := range g.secretChanges() {
				pod := plainPod(account)
				if mirror {
					pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
				}
				change(&pod.Spec)
				old := pod.DeepCopy()
				old.Spec.EphemeralContainers = nil
				all = append(all, onPods(admission.Create, "", pod, nil), onPods(admission.Update, "ephemeralcontainers", pod.DeepCopy(), old), onPods(admission.Update, "", pod.DeepCopy(), old))
			}
		}
	}
	return all
}

// secretChanges returns changes that refer to Secrets in every way, and changes that concern the token volume.
func (g *generator) secretChanges() []func(*corev1.PodSpec) {
	all := []func(*corev1.PodSpec){
		func(*corev1.PodSpec) {},
		func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = ptr.To(true) },
		func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = ptr.To(false) },
		func(s *corev1.PodSpec) { s.DeprecatedServiceAccount = "relaxed" },
		func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "kube-api-access-mine"}} },
		func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "kube-api-access"}, {Name: "kube-api-access-1"}, {Name: "kube-api-access-2"}}
		},
		func(s *corev1.PodSpec) { mountAt(&s.Containers[0], serviceaccount.MountPath) },
		func(s *corev1.PodSpec) {
			mountAt(&s.Containers[0], serviceaccount.MountPath)
			mountAt(&s.InitContainers[0], serviceaccount.MountPath)
		},
		func(s *corev1.PodSpec) { mountAt(&s.InitContainers[0], serviceaccount.MountPath+"/") },
		func(s *corev1.PodSpec) { s.Containers = nil },
		func(s *corev1.PodSpec) { s.Containers, s.InitContainers = nil, nil },
	}
	for _, secret := range []string{"", "listed", "pull", "unlisted"} {
		env, from := references(secret)
		all = append(all,
			func(s *corev1.PodSpec) {
				s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}, {Name: secret}}
			},
			func(s *corev1.PodSpec) { s.InitContainers[0].Env = env },
			func(s *corev1.PodSpec) { s.InitContainers[0].EnvFrom = from },
			func(s *corev1.PodSpec) { s.Containers[0].Env, s.Containers[0].EnvFrom = env, from },
			func(s *corev1.PodSpec) { s.Containers[0].EnvFrom = from },
			func(s *corev1.PodSpec) { s.EphemeralContainers = ephemeral(env, nil) },
			func(s *corev1.PodSpec) { s.EphemeralContainers = ephemeral(nil, from) },
		)
		for _, source := range secretVolumes(secret) {
			all = append(all, func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} })
		}
	}
	return all
}

// references returns two lists for the environment of a container. One entry of each refers to the Secret.
func references(secret string) ([]corev1.EnvVar, []corev1.EnvFromSource) {
	ref := corev1.LocalObjectReference{Name: secret}
	return []corev1.EnvVar{{Name: "PLAIN", Value: "a"}, {Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "a"}}}},
		[]corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}}}
}

func ephemeral(env []corev1.EnvVar, from []corev1.EnvFromSource) []corev1.EphemeralContainer {
	return []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "a", Env: env, EnvFrom: from}}}
}

func mountAt(c *corev1.Container, path string) {
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: path})
}

// secretVolumes returns a volume of each type that can refer to a Secret, and some that have no reference or two types.
func secretVolumes(secret string) []corev1.VolumeSource {
	ref := &corev1.LocalObjectReference{Name: secret}
	projected := func(p ...corev1.VolumeProjection) *corev1.ProjectedVolumeSource {
		return &corev1.ProjectedVolumeSource{Sources: p}
	}
	own := corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: *ref}}
	token := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}
	return []corev1.VolumeSource{
		{Secret: &corev1.SecretVolumeSource{SecretName: secret}}, {Projected: projected(own)}, {Projected: projected(token, own)}, {Projected: projected(token)},
		{AzureFile: &corev1.AzureFileVolumeSource{SecretName: secret}}, {CephFS: &corev1.CephFSVolumeSource{SecretRef: ref}},
		{Cinder: &corev1.CinderVolumeSource{SecretRef: ref}}, {FlexVolume: &corev1.FlexVolumeSource{SecretRef: ref}}, {RBD: &corev1.RBDVolumeSource{SecretRef: ref}},
		{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: secret}}}, {ISCSI: &corev1.ISCSIVolumeSource{SecretRef: ref}},
		{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: ref}}, {CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: ref}},
		{RBD: &corev1.RBDVolumeSource{}}, {CSI: &corev1.CSIVolumeSource{}}, {FlexVolume: &corev1.FlexVolumeSource{}},
		{RBD: &corev1.RBDVolumeSource{}, Secret: &corev1.SecretVolumeSource{SecretName: secret}},
		{AzureFile: &corev1.AzureFileVolumeSource{SecretName: secret}, CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: ref}},
	}
}

func (g *generator) accountRequest() *request {
	pod := plainPod(pick(g, append(accountNames, "", "", "")...))
	pod.Namespace = pick(g, accountNamespaces...)
	switch g.IntN(6) {
	case 0:
		pod.Name, pod.GenerateName = "", "shop-"
	case 1:
		pod.Name = ""
	}
	if g.oneIn(8) {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "a"}
	}
	if g.oneIn(2) {
		pod.Spec.InitContainers = nil
	}
	for i := range g.IntN(3) {
		c := corev1.Container{Name: fmt.Sprintf("more-%d", i), Image: "a"}
		if g.oneIn(3) {
			mountAt(&c, pick(g, "/data", serviceaccount.MountPath))
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	if g.oneIn(6) {
		pod.Spec.AutomountServiceAccountToken = ptr.To(g.oneIn(2))
	}
	g.referToSecrets(&pod.Spec)
	return g.accountOperation(pod)
}

// accountOperation returns a request for the Pod.
func (g *generator) accountOperation(pod *corev1.Pod) *request {
	old := pod.DeepCopy()
	old.Spec.EphemeralContainers = nil
	switch n := g.IntN(100); {
	case n < 65:
		return onPods(admission.Create, "", pod, nil)
	case n < 85:
		env, from := references(pick(g, "listed", "unlisted"))
		pod.Spec.EphemeralContainers = ephemeral(pick(g, nil, env), pick(g, nil, from))
		return onPods(admission.Update, "ephemeralcontainers", pod, old)
	case n < 92:
		return onPods(admission.Update, pick(g, "", "status", "resize"), pod, old)
	case n < 95:
		return onPods(admission.Delete, "", nil, old)
	}
	return g.other(pod, "podtemplates", "", "PodTemplate", &corev1.PodTemplate{ObjectMeta: pod.ObjectMeta, Template: corev1.PodTemplateSpec{Spec: pod.Spec}})
}

// referToSecrets adds up to three references to Secrets.
func (g *generator) referToSecrets(spec *corev1.PodSpec) {
	for i := range g.IntN(4) {
		secret := pick(g, "listed", "listed", "other-listed", "unlisted")
		env, from := references(secret)
		switch g.IntN(7) {
		case 0:
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: pick(g, "pull", "other-pull", "unlisted")})
		case 1:
			spec.Containers[0].Env = env
		case 2:
			spec.Containers[len(spec.Containers)-1].EnvFrom = from
		case 3:
			for i := range spec.InitContainers {
				spec.InitContainers[i].Env, spec.InitContainers[i].EnvFrom = env, from
			}
		case 4:
			spec.EphemeralContainers = ephemeral(pick(g, nil, env), pick(g, nil, from))
		case 5:
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprintf("secret-%d", i), VolumeSource: secretVolumes(secret)[0]})
		default:
			name := fmt.Sprintf(pick(g, "v-%d", "kube-api-access-mine-%d"), i)
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: pick(g, secretVolumes(secret)...)})
		}
	}
}
