// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// B39 to B48, B61 and B62: webhooks that damage what the user configured, or do not expect that their own
// parts may be changed.

func userParts() []Case {
	return []Case{
		onPods("B39 sets a value beside valueFrom", setsValueBesideReference).breaks("L5", "L1"),
		onPods("B40 adds a second source to a volume", addsSecondSource).breaks("L5", "L1"),
		onPods("B41 replaces a security context without a user", securityReplaced).breaks("L5", "L10"),
		onPods("B42 denies containers without limits, such as its sidecar", deniesWithoutLimits).samples(limitedPod()).breaks("L2"),
		onPods("B43 counts its own container against its maximum", deniesManyContainers).breaks("L2"),
		onPods("B44 copies the ports only when it adds the sidecar", copiesPortsOnce).breaks("L4b"),
		onPods("B45 skips Pods that have its hash", trustsHash).breaks("L4b", "L5"),
		onPods("B46 trusts a label instead of looking for its sidecar", trustsLabel).breaks("L4a"),
		onPods("B47 adds probes to init containers", probesInitContainers).breaks("L1"),
		onPods("B48 sets shareProcessNamespace beside hostPID", sharesProcesses).breaks("L1", "L5"),
		onPods("B61 assumes that its sidecar has a variable", assumesVariable).breaks("L4a", "L2"),
		onPods("B62 lists the containers before each container", listsPeersBefore).breaks("L4b", "L5"),
	}
}

// setsValueBesideReference sets the value of its variable, even where the user has set valueFrom. A
// variable with both is invalid.
var setsValueBesideReference = changesAppContainers(func(c *corev1.Container) {
	if e := findEnv(c, "AGENT_HOST"); e != nil {
		e.Value = "agent.example.com"
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: "AGENT_HOST", Value: "agent.example.com"})
})

// addsSecondSource adds a Secret to any volume with its name. A volume of the user then has two
// sources, which is invalid.
func addsSecondSource(_ *review.Request, p *corev1.Pod) error {
	want := secretVolume("tok", "agent-token")
	i := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == want.Name })
	if i < 0 {
		addVolume(p, want)
		i = len(p.Spec.Volumes) - 1
	}
	if v := &p.Spec.Volumes[i]; v.Secret == nil {
		v.Secret = want.Secret
	} else {
		v.Secret.SecretName = want.Secret.SecretName
	}
	return mountEverywhere(p, want.Name, "/tok")
}

// securityReplaced replaces a security context that names no user. It removes the other settings of
// the user.
var securityReplaced = unless(isWindows, changesContainers(func(c *corev1.Container) {
	if c.SecurityContext == nil || c.SecurityContext.RunAsUser == nil {
		c.SecurityContext = userOf(agentUser)
	}
}))

// deniesWithoutLimits denies containers without a memory limit and then adds one. A second call denies
// its own output.
func deniesWithoutLimits(r *review.Request, p *corev1.Pod) error {
	for _, c := range appContainers(p) {
		if !hasLimit(c) {
			return denial("container " + c.Name + " has no memory limit")
		}
	}
	return sidecarIfAbsent(r, p)
}

// deniesManyContainers denies Pods with more than four containers and then adds one. A second call
// denies its own output.
func deniesManyContainers(r *review.Request, p *corev1.Pod) error {
	if len(p.Spec.Containers) > 4 {
		return denial("more than four containers")
	}
	return sidecarIfAbsent(r, p)
}

// copiesPortsOnce copies the ports of all containers into the sidecar when it adds it. Ports added
// later are missing.
var copiesPortsOnce = changes(func(p *corev1.Pod) {
	if nameTaken(p, "mesh-proxy") {
		return
	}
	var ports []string
	for _, c := range appContainers(p) {
		for _, port := range c.Ports {
			ports = append(ports, strconv.Itoa(int(port.ContainerPort)))
		}
	}
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
		Name: "mesh-proxy", Image: "registry.example.com/mesh/proxy:1.24", Args: []string{"--inbound", strings.Join(ports, ",")},
	})
})

// trustsHash skips Pods that have a hash of its settings. A container added after the first call gets
// no mount.
func trustsHash(r *review.Request, p *corev1.Pod) error {
	const key = "agent.example.com/settings-hash"
	want := hash(settings())
	if p.Annotations[key] == want {
		return nil
	}
	annotate(p, key, want)
	return tokenMounted(r, p)
}

// trustsLabel adds its container unless the Pod has a label. If the label is removed, it adds a second
// container of the same name.
func trustsLabel(r *review.Request, p *corev1.Pod) error {
	if p.Labels["agent.example.com/injected"] == "true" {
		return nil
	}
	setKey(&p.Labels, "agent.example.com/injected", "true")
	return blindSidecar(r, p)
}

// probesInitContainers adds liveness probes to all containers. Init containers must not have any.
var probesInitContainers = changesContainers(func(c *corev1.Container) {
	if c.LivenessProbe == nil {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}, PeriodSeconds: 30}
	}
})

// sharesProcesses sets shareProcessNamespace, which is invalid together with hostPID.
var sharesProcesses = changes(func(p *corev1.Pod) {
	if p.Spec.ShareProcessNamespace == nil {
		p.Spec.ShareProcessNamespace = ptr.To(true)
	}
})

// assumesVariable changes a variable of its sidecar. It panics if the sidecar lacks the variable.
var assumesVariable = changes(func(p *corev1.Pod) {
	if !nameTaken(p, "log-shipper") {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: "log-shipper", Image: "registry.example.com/fluent:3", Env: []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}},
		})
	}
	if c := container(p, "log-shipper"); c != nil {
		if level, ok := p.Annotations["log.example.com/level"]; ok {
			findEnv(c, "LOG_LEVEL").Value = level
		} else {
			findEnv(c, "LOG_LEVEL").Value = "info"
		}
	}
})

// listsPeersBefore gives each container the names of the containers before it, once. A container
// inserted later is missing there.
var listsPeersBefore = changes(func(p *corev1.Pod) {
	var before []string
	for _, c := range appContainers(p) {
		ensureEnv(c, "PEERS_BEFORE", strings.Join(before, ","))
		before = append(before, c.Name)
	}
})
