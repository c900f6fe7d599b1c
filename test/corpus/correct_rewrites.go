// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// V01 to V21: correct webhooks that change values of the user, read annotations of the user, or write
// a value only once. A careless harness flags them. Some may get advice.

func correctRewrites() []Case {
	return []Case{
		onPods("V01 injects the requested revision", injectsRevision),
		onPods("V02 raises the seconds of tolerations", raisesTolerationSeconds),
		onPods("V03 wraps the command", wrapsCommand),
		onPods("V04 enforces a flag", enforcesFlag).advice(),
		onPods("V05 gives hosts their full names", fullHostnames),
		onPods("V06 drops all capabilities", dropsAllCapabilities),
		onPods("V07 records the default container once", recordsDefaultContainer).advice(),
		onPods("V08 hashes at the first injection", hashesOnce).advice(),
		onPods("V09 configures one container, the first", configuresOne).advice(),
		onPods("V10 adds a pull secret where there is none", defaultPullSecret).advice(),
		onPods("V11 records that it set limits", recordsLimits),
		onDeployments("V11 records that it set limits", recordsLimits),
		onPods("V12 stamps once, declared", stampsOnce).except("/metadata/annotations/agent~1seen", "", "when it was"),
		onPods("V13 replaces TCP probes with probes of the agent", probesByAgent),
		onPods("V14 enforces its container", enforcesSidecar).advice(),
		onPods("V15 removes legacy annotations, declared", removesLegacyAnnotation).
			samples(simplePod(map[string]string{"legacy/on": "yes"})).except("/metadata/annotations/legacy~1on", "", "it is not read any more"),
		onWidgets("V16 sorts its steps", sortsSteps),
		onPods("V17 moves the port of the application", movesPort).advice(),
		onPods("V18 lets the user opt out", userOptsOut),
		onPods("V19 enforces a variable", enforcesMode).advice(),
		onPods("V21 points to a path that the user may have taken", pointsThere).advice(),
		onPods("V20 leaves the container of the user alone", respectsContainer).advice(),
	}
}

// injectsRevision injects the sidecar unless the annotation agent/revision requests a revision other than v1. If the
// annotation is missing, it sets v1.
func injectsRevision(_ *review.Request, p *corev1.Pod) error {
	revision := p.Annotations["agent/revision"]
	if revision == "" {
		revision = "v1"
		annotate(p, "agent/revision", revision)
	}
	if revision != "v1" {
		return nil // that revision has an agent on the node
	}
	if err := ensureVolume(p, token()); err != nil {
		return err
	}
	return sidecarInPlace(nil, p)
}

// raisesTolerationSeconds raises the seconds of tolerations to an hour. It never lowers them, so a
// second call changes nothing.
var raisesTolerationSeconds = changes(func(p *corev1.Pod) {
	for i := range p.Spec.Tolerations {
		if t := &p.Spec.Tolerations[i]; t.TolerationSeconds != nil && *t.TolerationSeconds < 3600 {
			t.TolerationSeconds = ptr.To[int64](3600)
		}
	}
})

const runner = "/agent/run"

// wrapsCommand puts its program before each command that does not contain it.
var wrapsCommand = changesContainers(func(c *corev1.Container) {
	if len(c.Command) > 0 && !slices.Contains(c.Command, runner) {
		c.Command = append([]string{runner, "--"}, c.Command...)
	}
})

// enforcesFlag replaces the port in an argument. It overwrites the user's value, always with the same constant.
var enforcesFlag = changesAppContainers(func(c *corev1.Container) {
	for j, arg := range c.Args {
		if strings.HasPrefix(arg, "--port=") {
			c.Args[j] = "--port=15001"
		}
	}
})

// fullHostnames adds a domain to host names without a dot. The results have dots.
var fullHostnames = changes(func(p *corev1.Pod) {
	for _, a := range p.Spec.HostAliases {
		for i, name := range a.Hostnames {
			if !strings.Contains(name, ".") {
				a.Hostnames[i] = name + ".shop.example.com"
			}
		}
	}
})

// dropsAllCapabilities replaces a list of one capability with ALL, which includes that capability.
var dropsAllCapabilities = changes(func(p *corev1.Pod) {
	for _, c := range everyContainer(p) {
		if s := c.SecurityContext; !isWindows(p) && s != nil && s.Capabilities != nil && len(s.Capabilities.Drop) == 1 {
			s.Capabilities.Drop = []corev1.Capability{"ALL"}
		}
	}
})

// recordsDefaultContainer records the name of the first container in an annotation, and then adds its own container. It
// does each only once.
func recordsDefaultContainer(_ *review.Request, p *corev1.Pod) error {
	const key = "kubectl.kubernetes.io/default-container"
	if _, ok := p.Annotations[key]; !ok && len(p.Spec.Containers) > 0 {
		annotate(p, key, p.Spec.Containers[0].Name)
	}
	return sidecarIfAbsent(nil, p)
}

// hashesOnce stores a hash in the first call and keeps it, although containers may be added later.
func hashesOnce(r *review.Request, p *corev1.Pod) error {
	if _, ok := p.Annotations["agent/injected-into"]; !ok {
		annotate(p, "agent/injected-into", hash(foreign(p, sidecar().Name)))
	}
	return sidecarIfAbsent(r, p)
}

// configuresOne sets a variable with its address in the first container, unless some container has that variable.
func configuresOne(_ *review.Request, p *corev1.Pod) error {
	for _, c := range appContainers(p) {
		if findEnv(c, "AGENT_ADDRESS") != nil {
			return nil
		}
	}
	return firstConfiguredWith(p, "AGENT_ADDRESS", "localhost:15000")
}

// firstConfiguredWith adds a variable to the first container.
func firstConfiguredWith(p *corev1.Pod, name, value string) error {
	if len(p.Spec.Containers) > 0 {
		ensureEnv(&p.Spec.Containers[0], name, value)
	}
	return nil
}

// defaultPullSecret adds a pull secret only if the Pod has none.
var defaultPullSecret = changes(func(p *corev1.Pod) {
	if len(p.Spec.ImagePullSecrets) == 0 {
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry-default"}}
	}
})

// recordsLimits sets missing limits and records that in an annotation, as the API server's LimitRanger
// does.
var recordsLimits = changes(func(p *corev1.Pod) {
	var set []string
	for _, c := range appContainers(p) {
		if _, ok := c.Resources.Limits[corev1.ResourceEphemeralStorage]; ok || c.Resources.Requests != nil {
			continue
		}
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
		set = append(set, c.Name)
	}
	if len(set) > 0 {
		if _, ok := p.Annotations["agent/limited"]; !ok {
			annotate(p, "agent/limited", "the ephemeral storage of some containers")
		}
	}
})

// stampsOnce writes a random value in the first call and keeps it. An exception of the case declares that the value may
// differ.
var stampsOnce = changes(func(p *corev1.Pod) {
	if p.Annotations["agent/seen"] == "" {
		annotate(p, "agent/seen", randomHex())
	}
})

// probesByAgent replaces TCP probes with HTTP probes of the agent. No TCP probe is left for a second
// call.
var probesByAgent = changesAppContainers(func(c *corev1.Container) {
	for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
		if probe == nil || probe.TCPSocket == nil {
			continue
		}
		probe.HTTPGet = &corev1.HTTPGetAction{Path: "/probe/" + c.Name, Port: probe.TCPSocket.Port}
		probe.TCPSocket = nil
	}
})

// enforcesSidecar resets its container in every call, even one that the user added.
func enforcesSidecar(r *review.Request, p *corev1.Pod) error {
	for _, c := range appContainers(p) {
		if c.Name == sidecar().Name {
			c.Image, c.SecurityContext = sidecar().Image, nil
			return nil
		}
	}
	return sidecarIfAbsent(r, p)
}

// removesLegacyAnnotation removes an annotation of the user. An exception of the case declares that this is intended.
var removesLegacyAnnotation = changes(func(p *corev1.Pod) {
	if delete(p.Annotations, "legacy/on"); len(p.Annotations) == 0 {
		p.Annotations = nil
	}
})

// sortsSteps sorts the steps by name. The order of the list has no meaning for this custom
// resource.
func sortsSteps(w *widget) error {
	slices.SortStableFunc(w.Spec.Steps, func(a, b step) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// movesPort changes the port named http from 8080 to 18080, so that the agent can listen on 8080.
var movesPort = unless(func(p *corev1.Pod) bool { return p.Spec.HostNetwork }, changesAppContainers(func(c *corev1.Container) {
	for j := range c.Ports {
		if port := &c.Ports[j]; port.ContainerPort == 8080 && port.Name == "http" {
			port.ContainerPort = 18080
		}
	}
}))

// userOptsOut injects the sidecar unless the user has set the annotation agent/inject to something other than
// "enabled". If the annotation is missing, it sets that value.
func userOptsOut(r *review.Request, p *corev1.Pod) error {
	switch p.Annotations["agent/inject"] {
	case "", "enabled":
		annotate(p, "agent/inject", "enabled")
		setKey(&p.Labels, "agent.example.com/injected", "true")
		return sidecarInPlace(r, p)
	}
	return nil
}

// enforcesMode overwrites the user's value of a variable with a constant.
var enforcesMode = changesAppContainers(func(c *corev1.Container) {
	setEnv(c, "MODE", "safe")
})

// respectsContainer leaves a container that has its name and another image, because it belongs to the
// user.
func respectsContainer(_ *review.Request, p *corev1.Pod) error {
	if c := container(p, sidecar().Name); c != nil && c.Image != sidecar().Image {
		return nil
	}
	annotate(p, injected, fmt.Sprint(len(sidecar().Image)))
	return sidecarIfAbsent(nil, p)
}

// pointsThere mounts a token unless the container has a mount at the path. It assumes that an existing mount contains a
// token.
var pointsThere = inOrder(ensuresVolume(token()), changesContainers(func(c *corev1.Container) {
	_ = ensureMount(c, corev1.VolumeMount{Name: token().Name, MountPath: "/tok"}) // fails if the path is taken
	ensureEnv(c, "TOKEN_FILE", "/tok/token")
}))
