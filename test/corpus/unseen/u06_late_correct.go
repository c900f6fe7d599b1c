// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"fmt"
	"slices"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func lateDoneRight() []Case {
	return []Case{{
		Name:    "U06c1-probes-rewritten-each",
		Kind:    "Pod",
		Summary: "sends HTTP probes through the agent on port 15021",
		Why:     "Each probe is recognised by its own path, which also holds the original port and path.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			if req.Object.Labels["mesh"] == "on" {
				for i := range req.Object.Spec.Containers {
					rewriteProbes(&req.Object.Spec.Containers[i])
				}
			}
			return nil
		}),
		Sample: probedPod,
		Proof:  allSteps(twice, againAfter(addContainer(probedContainer))),
	}, {
		Name:    "U06c2-socket-and-variable",
		Kind:    "Pod",
		Summary: "mounts the socket of a tracing agent in each container and says where it is",
		Why:     "Volume, mount and variable are looked for one by one. What conflicts is denied.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			return agentSocket(pod, func(mounted, told bool) (mount, env bool) { return !mounted, !told })
		}),
		Sample: socketPod,
		Proof:  allSteps(twice, againAfter(addContainer(lateContainer)), wrongAfter(addContainer(socketContainer), socketUnknown)),
	}, {
		Name:    "U06c3-wrapped-by-command",
		Kind:    "Deployment",
		Summary: "runs commands under a launcher that limits their threads",
		Why:     "A command that has the launcher among its words is left alone, wherever its container is in the list.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			for i := range req.Object.Spec.Template.Spec.Containers {
				c := &req.Object.Spec.Template.Spec.Containers[i]
				if req.Object.Labels["threads"] == "limited" && len(c.Command) > 0 && !slices.Contains(c.Command, launcher) {
					c.Command = append([]string{launcher, "--"}, c.Command...)
				}
			}
			return nil
		}),
		Sample: launchedDeployment,
		Proof: allSteps(twice, wrongAfter(func(o object) {
			late := object{"name": "late", "image": "late:1", "command": []any{"/bin/late"}}
			put(o, append([]any{late}, list(o, inTemplate...)...), inTemplate...)
		}, notLaunchedOnce)),
	}, {
		Name:    "U06c4-agent-configured-in-place",
		Kind:    "Pod",
		Summary: "adds a profiling agent, and tells the agent where to send its profiles",
		Why:     "Only the container of that name is the agent. Copies under other names stay.",
		Webhook: podsOnCreate,
		Sample:  profiledPod,
		Proof:   allSteps(twice, wrongAfter(copyProfiler, copyGone)),
	}, {
		Name:    "U06c5-name-of-own-container",
		Kind:    "StreamJob",
		Summary: "tells each container of a StreamJob its name",
		Why:     "The value depends on the container alone, not on its index.",
		Webhook: streamJobsOnWrite,
		build: templates(func(req *webhook.Request[corev1.PodTemplateSpec]) error {
			if req.Object.Annotations["streams.example.com/admin"] == "on" {
				eachContainer(&req.Object.Spec, func(c *corev1.Container) { setEnv(c, "CONTAINER_NAME", c.Name) })
			}
			return nil
		}, streamJobWorkload),
		Sample: adminStreamJob,
		CRDs:   []string{streamJobCRD},
		Proof:  allSteps(twice, againAfter(addContainer(lateContainer, inTemplate...))),
	}, {
		Name:    "U06c6-no-privilege-escalation",
		Kind:    "Deployment",
		Summary: "forbids privilege escalation in containers that do not say anything about it",
		Why:     "It fills one field of each container where it is nil, and late containers get it too.",
		Webhook: deploymentsOnWrite,
		build: templates(func(req *webhook.Request[corev1.PodTemplateSpec]) error {
			eachContainer(&req.Object.Spec, noEscalation)
			return nil
		}),
		Sample: launchedDeployment,
		Proof:  allSteps(twice, againAfter(addContainer(lateContainer, inTemplate...))),
	}, {
		Name:    "U06c7-foreign-containers-counted",
		Kind:    "Pod",
		Summary: "adds a metrics agent, and notes how many containers it has to scrape",
		Why:     "The number leaves the agent out, so the agent does not change it, and it follows late containers.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			if req.Object.Annotations[scrapeMark] != "agent" {
				return nil
			}
			others := 0
			for _, c := range req.Object.Spec.Containers {
				if c.Name != metricsAgent.Name {
					others++
				}
			}
			metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, "metrics.example.com/targets", strconv.Itoa(others))
			return addAgent(req.Object, hasContainer(&req.Object.Spec, metricsAgent.Name))
		}),
		Sample: agentPod,
	}, {
		Name:    "U06c8-log-format-variable",
		Kind:    "Pod",
		Summary: "sets LOG_FORMAT in all containers that have no such variable",
		Why:     "Containers and init containers get it one by one, in each call.",
		Webhook: podsOnCreate,
		Sample:  loggingPod,
		Proof:   allSteps(twice, againAfter(addContainer(lateContainer))),
	}}
}

func noEscalation(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	// The API server rejects allowPrivilegeEscalation: false in privileged containers and with CAP_SYS_ADMIN.
	s := c.SecurityContext
	privileged := s.Privileged != nil && *s.Privileged
	admin := s.Capabilities != nil && slices.ContainsFunc(s.Capabilities.Add,
		func(c corev1.Capability) bool { return c == "CAP_SYS_ADMIN" || c == "SYS_ADMIN" || c == "ALL" })
	if s.AllowPrivilegeEscalation == nil && !privileged && !admin {
		no := false
		s.AllowPrivilegeEscalation = &no
	}
}

var (
	// probedContainer is a late container with a probe.
	probedContainer = object{"name": "late", "image": "registry.example.com/tools/late:1.4",
		"livenessProbe": object{"httpGet": object{"path": "/live", "port": 8099.0}}}
	// socketContainer is a late container that mounts the socket itself.
	socketContainer = object{"name": "late", "image": "registry.example.com/tools/late:1.4",
		"volumeMounts": []any{object{"name": "agent-socket", "mountPath": "/run/agent", "readOnly": true}}}
)

func socketUnknown(o object) string {
	for _, c := range list(o, "spec", "containers") {
		if named(list(c, "env"), "AGENT_SOCKET") < 0 {
			return fmt.Sprintf("container %s has no AGENT_SOCKET", text(c, "name"))
		}
	}
	return ""
}

func notLaunchedOnce(o object) string {
	for _, c := range list(o, inTemplate...) {
		command := list(c, "command")
		if n := len(slices.DeleteFunc(slices.Clone(command), func(w any) bool { return w != launcher })); n != 1 {
			return fmt.Sprintf("container %s has the launcher %d times", text(c, "name"), n)
		}
	}
	return ""
}

// copyProfiler adds a copy of the agent under another name.
func copyProfiler(o object) {
	containers := list(o, "spec", "containers")
	agent := clone(containers[named(containers, "profiler")].(object))
	agent["name"] = "profiler-debug"
	push(o, agent, "spec", "containers")
}

func copyGone(o object) string {
	if named(list(o, "spec", "containers"), "profiler-debug") < 0 {
		return "the container profiler-debug is gone"
	}
	return ""
}

func adminPortsRepeat(o object) string {
	var ports []string
	for _, c := range list(o, inTemplate...) {
		if i := named(list(c, "env"), "ADMIN_PORT"); i >= 0 {
			ports = append(ports, text(c, "env", i, "value"))
		}
	}
	return repeated("the admin port", ports)
}

const (
	probedPod = podHead + `
metadata: {name: cart, namespace: shop, labels: {mesh: "on"}}
spec:
  containers:
  - name: cart
    image: registry.example.com/shop/cart:5.0
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {path: /ready, port: http}}
`
	socketPod = podHead + `
metadata: {name: cart, namespace: shop, annotations: {tracing.example.com/socket: "true"}}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	launchedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop, labels: {threads: limited}}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0", command: [/bin/cart]}]}
`
	profiledPod = podHead + `
metadata: {name: cart, namespace: shop, annotations: {profiler.example.com/agent: "v3"}}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	adminStreamJob = `
apiVersion: streams.example.com/v1
kind: StreamJob
metadata: {name: clicks, namespace: shop}
spec:
  parallelism: 4
  template:
    metadata: {annotations: {streams.example.com/admin: "on"}}
    spec: {containers: [{name: main, image: "registry.example.com/streams/clicks:12"}]}
`
)
