// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	originalsecurity "k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	securityadmission "k8s.io/pod-security-admission/admission"
	"k8s.io/pod-security-admission/api"
	fixtures "k8s.io/pod-security-admission/test"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/podsecurity"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func securityControllers() []*controller {
	return []*controller{{
		name: originalsecurity.PluginName, register: originalsecurity.Register,
		configurations: []string{"", securityConfiguration},
		clusters:       [][]runtime.Object{securityCluster(invalidLabels), securityCluster(nil)},
		hooks:          securityHooks,
		edges:          (*generator).securityEdges, generate: (*generator).securityRequest,
		differences: []*difference{failsInItsWords()},
	}}
}

func securityHooks(t *testing.T, in cluster, file string) []*webhook.Hook {
	t.Helper()
	config, err := podsecurity.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := podsecurity.Hooks(in.namespaces(t), securityadmission.PodListerFromInformer(in.factory.Core().V1().Pods().Lister()), config)
	if err != nil {
		t.Fatal(err)
	}
	return hooks
}

const securityConfiguration = `
apiVersion: pod-security.admission.config.k8s.io/v1
kind: PodSecurityConfiguration
defaults: {enforce: baseline, enforce-version: v1.30, audit: restricted, warn: restricted, warn-version: v1.25}
exemptions:
  usernames: [bob]
  namespaces: [security-exempt, team-exempt]
  runtimeClasses: [sandbox]
`

// securityLabels are the labels of the namespaces security-0, security-1 and so on.
var securityLabels = []map[string]string{
	{}, securityLabel("enforce", "baseline"), securityLabel("enforce", "restricted"), securityLabel("enforce", "restricted", "enforce-version", "v1.24"),
	securityLabel("enforce", "privileged"), securityLabel("enforce", "privileged", "warn", "privileged", "audit", "privileged"),
	securityLabel("enforce", "baseline", "warn", "privileged"), securityLabel("enforce", "privileged", "warn", "restricted", "audit", "baseline"),
	securityLabel("warn", "baseline", "warn-version", "v1.0"), securityLabel("audit", "restricted", "audit-version", "v1.19"),
	securityLabel("enforce-version", "v1.99", "warn-version", "latest"), securityLabel("enforce", "restricted", "warn-version", "v1.7", "audit", "restricted", "audit-version", "v1.18"),
}

// invalidLabels are labels that the original rejects when a namespace is created.
var invalidLabels = []map[string]string{
	securityLabel("enforce", "some"), securityLabel("enforce", "Baseline", "warn", "baseline"), securityLabel("enforce-version", "1.30"), securityLabel("warn", "", "audit", "other"),
	securityLabel("enforce", "restricted", "audit-version", "v1.01", "warn-version", "v2.0"),
}

// securityLabel returns labels with the prefix pod-security.kubernetes.io/.
func securityLabel(pairs ...string) map[string]string {
	labels := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		labels[api.AuditAnnotationPrefix+pairs[i]] = pairs[i+1]
	}
	return labels
}

// withPods is the name of a namespace with Pods. It is privileged, so that the Pods can be created.
const withPods = "security-pods"

// securityCluster returns namespaces with labels, and Pods in one of them.
func securityCluster(further []map[string]string) (all []runtime.Object) {
	named := func(name string, labels map[string]string) {
		all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	for i, labels := range append(append([]map[string]string{}, securityLabels...), further...) {
		named(fmt.Sprintf("security-%d", i), labels)
	}
	named("security-exempt", securityLabel("enforce", "restricted"))
	named(withPods, securityLabel("enforce", "privileged"))
	g := &generator{Rand: rand.New(rand.NewPCG(1, 4))}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop", UID: "a", Controller: ptr.To(true)}
	for i := range 12 {
		pod := g.securePod(withPods, violations[i%4])
		pod.Name = fmt.Sprintf("pod-%d", i)
		if i > 7 {
			pod.OwnerReferences = []metav1.OwnerReference{owner}
		}
		all = append(all, pod)
	}
	return all
}

// securityNamespace returns the name of a random namespace for a request. It never returns withPods, so that the Pods
// there stay the same.
func (g *generator) securityNamespace() string {
	switch g.IntN(10) {
	case 0:
		return pick(g, "security-exempt", "plain", notCached, "gone")
	default:
		return fmt.Sprintf("security-%d", g.IntN(len(securityLabels)+len(invalidLabels)))
	}
}

// securePod applies the changes to a Pod that satisfies the level restricted, and returns it.
func (g *generator) securePod(namespace string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod, err := fixtures.GetMinimalValidPod(api.LevelRestricted, api.MajorMinorVersion(1, 36))
	if err != nil {
		panic(err) // there is a fixture for each version
	}
	pod.Name, pod.Namespace = "shop", namespace
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// onContainer returns a change of the security context of the first container.
func onContainer(change func(*corev1.SecurityContext)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { change(p.Spec.Containers[0].SecurityContext) }
}

func onVolume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", len(p.Spec.Volumes)), VolumeSource: source})
	}
}

// violations are changes of a Pod. Most of them violate a level of some version. The first one does not.
var violations = []func(*corev1.Pod){
	func(*corev1.Pod) {},
	func(p *corev1.Pod) { p.Spec.HostNetwork = true },
	func(p *corev1.Pod) { p.Spec.HostPID, p.Spec.HostIPC = true, true },
	func(p *corev1.Pod) { p.Spec.SecurityContext = nil },
	func(p *corev1.Pod) {
		p.Spec.Containers[0].SecurityContext, p.Spec.InitContainers = &corev1.SecurityContext{}, nil
	},
	func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To("sandbox") },
	func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To("other") },
	func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = ptr.To[int64](0) },
	func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsNonRoot = ptr.To(false) },
	func(p *corev1.Pod) {
		p.Spec.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t", User: "a"}
	},
	func(p *corev1.Pod) {
		p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}, {Name: "net.ipv4.tcp_rmem", Value: "1"}}
	},
	func(p *corev1.Pod) {
		p.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	},
	func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Linux} },
	func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}, {ContainerPort: 81}}
	},
	func(p *corev1.Pod) {
		p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1", Port: intOrString(80)}}}
	},
	func(p *corev1.Pod) {
		p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/container1": "unconfined"}
	},
	onContainer(func(c *corev1.SecurityContext) { c.AllowPrivilegeEscalation, c.Privileged = nil, ptr.To(true) }),
	onContainer(func(c *corev1.SecurityContext) { c.AllowPrivilegeEscalation = ptr.To(true) }),
	onContainer(func(c *corev1.SecurityContext) {
		c.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_RAW", "CHOWN"}}
	}),
	onContainer(func(c *corev1.SecurityContext) { c.Capabilities = nil }),
	onContainer(func(c *corev1.SecurityContext) { c.RunAsUser = ptr.To[int64](0) }),
	onContainer(func(c *corev1.SecurityContext) {
		c.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	}),
	onVolume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
	onVolume(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/"}}),
	onVolume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
}

// securityUsers are ann, an exempt user, and another one. All may do everything.
var securityUsers = []user.Info{nil, nil, nil, nil, &user.DefaultInfo{Name: "bob", Groups: ann.Groups}, &user.DefaultInfo{Name: "carol", Groups: ann.Groups}}

func (g *generator) securityRequest() *request {
	r := g.securedRequest()
	r.user = pick(g, securityUsers...)
	r.dryRun = r.exists || g.oneIn(10)
	return r
}

func (g *generator) securedRequest() *request {
	var changes []func(*corev1.Pod)
	for range g.IntN(4) {
		changes = append(changes, pick(g, violations...))
	}
	pod := g.securePod(g.securityNamespace())
	for _, change := range changes {
		if pod.Spec.SecurityContext == nil {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
		}
		change(pod)
	}
	g.rename(pod)
	switch n := g.IntN(100); {
	case n < 40:
		return onPods(admission.Create, "", pod, nil)
	case n < 60:
		return g.securedUpdate(pod)
	case n < 80:
		return g.workload(pod)
	case n < 95:
		return g.labelledNamespaceRequest()
	case n < 97:
		return onPods(admission.Delete, "", nil, pod)
	}
	return g.other(pod, "pods", "binding", "Binding", &corev1.Binding{ObjectMeta: pod.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: "a"}})
}

// securedUpdate returns an UPDATE. The original looks only at new images and new containers.
func (g *generator) securedUpdate(pod *corev1.Pod) *request {
	old := pod.DeepCopy()
	switch g.IntN(5) {
	case 0:
		pod.Labels = map[string]string{"a": "b"}
	case 1:
		pod.Spec.Containers[0].Image = "other"
	case 2:
		if len(pod.Spec.InitContainers) > 0 {
			pod.Spec.InitContainers[0].Image = "other"
		}
	case 3:
		debug := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(*pod.Spec.Containers[0].DeepCopy())}
		debug.Name, debug.TargetContainerName = "debug", pod.Spec.Containers[0].Name
		if g.oneIn(2) {
			old.Spec.EphemeralContainers = []corev1.EphemeralContainer{debug}
			debug.Image = pick(g, debug.Image, "other")
		}
		debug.SecurityContext = pick(g, debug.SecurityContext, nil)
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{debug}
		return onPods(admission.Update, pick(g, "", "ephemeralcontainers", "ephemeralcontainers"), pod, old)
	default:
		pod.Spec.InitContainers = nil
	}
	return onPods(admission.Update, pick(g, "", "", "", "status", "resize"), pod, old)
}

// labelledNamespaceRequest returns a CREATE or an UPDATE of a Namespace, sometimes of one with Pods.
func (g *generator) labelledNamespaceRequest() *request {
	labels := func() map[string]string {
		if g.oneIn(4) {
			return pick(g, invalidLabels...)
		}
		return pick(g, securityLabels...)
	}
	switch g.IntN(4) {
	case 0:
		return onLabelledNamespaces(admission.Create, "", pick(g, "team", "team-exempt"), labels(), nil)
	case 1:
		return onLabelledNamespaces(admission.Update, pick(g, "", "", "status"), pick(g, "team", "team-exempt"), labels(), labels())
	}
	r := onLabelledNamespaces(admission.Update, "", pick(g, withPods, withPods, withPods, "security-exempt"), labels(), securityLabel("enforce", "privileged"))
	r.exists = true
	return r
}

func onLabelledNamespaces(op admission.Operation, subresource, name string, labels, old map[string]string) *request {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	before := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: old}}
	r := created(op, on(op, corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", subresource, object, before))
	r.namespace = name // as the API server sets it
	return r
}

func (g *generator) securityEdges() (all []*request) {
	for i := range len(securityLabels) + len(invalidLabels) {
		for _, change := range violations {
			pod := g.securePod(fmt.Sprintf("security-%d", i), change)
			updated := pod.DeepCopy()
			updated.Spec.Containers[0].Image = "other"
			all = append(all, onPods(admission.Create, "", pod, nil), onPods(admission.Update, "", updated, pod), onPods(admission.Update, "", pod, pod))
			all = append(all, workloadsOf(pod)[len(all)%len(workloadsOf(pod))])
		}
	}
	for _, name := range []string{"security-exempt", "plain", notCached, "gone", withPods} {
		for _, change := range violations[:6] {
			pod := g.securePod(name, change)
			for _, r := range append(workloadsOf(pod), onPods(admission.Create, "", pod, nil)) {
				for _, from := range securityUsers[3:] {
					as := *r
					as.user = from
					all = append(all, &as)
				}
			}
		}
	}
	return append(all, namespaceEdges()...)
}

// namespaceEdges returns a CREATE for each set of labels, and an UPDATE for each pair of sets.
func namespaceEdges() (all []*request) {
	labels := append(append([]map[string]string{}, securityLabels...), invalidLabels...)
	for _, name := range []string{withPods, "security-exempt", "team"} {
		for _, new := range labels {
			all = append(all, onLabelledNamespaces(admission.Create, "", name, new, nil))
			for _, old := range labels {
				all = append(all, onLabelledNamespaces(admission.Update, "", name, new, old))
			}
		}
		all = append(all, onLabelledNamespaces(admission.Update, "status", name, invalidLabels[0], nil), onLabelledNamespaces(admission.Update, "finalize", name, invalidLabels[0], nil))
	}
	return all
}
