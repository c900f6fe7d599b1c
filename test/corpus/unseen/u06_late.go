// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func lateBugs() []Case {
	return []Case{{
		Name:    "U06b1-probes-rewritten-once",
		Kind:    "Pod",
		Summary: "sends HTTP probes through the agent on port 15021, and marks the Pod",
		Why: "CREATE a Pod; another webhook adds a container with a probe of its own; because of the mark its probe is not " +
			"rewritten, fails behind the mesh, and the container is killed again and again.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			pod := req.Object
			if pod.Labels["mesh"] != "on" || pod.Annotations["mesh.example.com/probes"] == "rewritten" {
				return nil
			}
			for i := range pod.Spec.Containers {
				rewriteProbes(&pod.Spec.Containers[i])
			}
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "mesh.example.com/probes", "rewritten")
			return nil
		}),
		Sample: probedPod,
		Proof:  againAfter(addContainer(probedContainer)),
	}, {
		Name:    "U06b2-socket-of-agent",
		Kind:    "Pod",
		Summary: "mounts the socket of a tracing agent in each container and says where it is",
		Why: "CREATE a Pod; another webhook adds a container that mounts the socket itself; the webhook takes it for one that " +
			"it has handled, so the container has no AGENT_SOCKET.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			return agentSocket(pod, func(mounted, _ bool) (mount, env bool) { return !mounted, !mounted })
		}),
		Sample: socketPod,
		Proof:  wrongAfter(addContainer(socketContainer), socketUnknown),
	}, {
		Name:    "U06b3-wrapped-by-index",
		Kind:    "Deployment",
		Summary: "runs commands under a launcher that limits their threads, and notes the indexes of the containers",
		Why: "CREATE a Deployment with one container; UPDATE it with another one in front: index 0 is noted, so the new " +
			"container stays as it is, and the old one, now at index 1, is wrapped a second time.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			if req.Object.Labels["threads"] == "limited" {
				wrapByIndex(req.Object)
			}
			return nil
		}),
		Sample: launchedDeployment,
		Proof: wrongAfter(func(o object) {
			late := object{"name": "late", "image": "late:1", "command": []any{"/bin/late"}}
			put(o, append([]any{late}, list(o, inTemplate...)...), inTemplate...)
		}, notLaunchedOnce),
	}, {
		Name:    "U06b4-agents-refreshed-by-image",
		Kind:    "Pod",
		Summary: "replaces what it takes for an old profiling agent by the current one",
		Why: "CREATE a Pod; another webhook adds a copy of the agent under the name profiler-debug; the second call removes " +
			"all containers with the agent's image, so the container of the other webhook is gone.",
		Webhook: podsOnCreate,
		Sample:  profiledPod,
		Proof:   wrongAfter(copyProfiler, copyGone),
	}, {
		Name:    "U06b5-admin-port-by-index",
		Kind:    "StreamJob",
		Summary: "gives each container of a StreamJob an admin port of its own",
		Why: "CREATE a StreamJob with one container, which gets port 9000; UPDATE it with another one in front, which has " +
			"index 0 now and gets 9000 too. Both listen in one Pod, and the second one fails.",
		Webhook: streamJobsOnWrite,
		build: templates(func(req *webhook.Request[corev1.PodTemplateSpec]) error {
			if req.Object.Annotations["streams.example.com/admin"] == "on" {
				for i := range req.Object.Spec.Containers {
					defaultEnv(&req.Object.Spec.Containers[i], "ADMIN_PORT", strconv.Itoa(9000+i))
				}
			}
			return nil
		}, streamJobWorkload),
		Sample: adminStreamJob,
		CRDs:   []string{streamJobCRD},
		Proof: wrongAfter(func(o object) {
			put(o, append([]any{clone(lateContainer)}, list(o, inTemplate...)...), inTemplate...)
		}, adminPortsRepeat),
	}}
}

// rewriteProbes sends the probes of a container to the agent. The path of a probe names the original port and path.
func rewriteProbes(c *corev1.Container) {
	for kind, probe := range map[string]*corev1.Probe{"live": c.LivenessProbe, "ready": c.ReadinessProbe, "start": c.StartupProbe} {
		if probe == nil || probe.HTTPGet == nil || strings.HasPrefix(probe.HTTPGet.Path, "/app-probe/") {
			continue
		}
		get := probe.HTTPGet
		get.Path = fmt.Sprintf("/app-probe/%s/%s/%s/%s", c.Name, kind, get.Port.String(), strings.TrimPrefix(get.Path, "/"))
		get.Port = intstr.FromInt32(15021)
	}
}

// agentSocket mounts the socket and sets the variable in each container. wants decides which of the two the container
// needs.
func agentSocket(pod object, wants func(mounted, told bool) (mount, env bool)) ([]operation, error) {
	if annotation(pod, "tracing.example.com/socket") != "true" {
		return nil, nil
	}
	after := clone(pod)
	socket := object{"name": "agent-socket", "hostPath": object{"path": "/run/agent", "type": "Directory"}}
	if i := named(list(pod, "spec", "volumes"), "agent-socket"); i < 0 {
		push(after, socket, "spec", "volumes")
	} else if text(list(pod, "spec", "volumes")[i], "hostPath", "path") != "/run/agent" {
		return nil, fmt.Errorf("%w: the volume agent-socket is something else", errDenied)
	}
	for _, field := range []string{"initContainers", "containers"} {
		for i, c := range list(pod, "spec", field) {
			j := slices.IndexFunc(list(c, "volumeMounts"), func(m any) bool { return text(m, "mountPath") == "/run/agent" })
			if j >= 0 && text(c, "volumeMounts", j, "name") != "agent-socket" {
				return nil, fmt.Errorf("%w: something else is mounted on /run/agent", errDenied)
			}
			mount, env := wants(j >= 0, named(list(c, "env"), "AGENT_SOCKET") >= 0)
			if mount {
				push(after, object{"name": "agent-socket", "mountPath": "/run/agent"}, "spec", field, i, "volumeMounts")
			}
			if env {
				push(after, object{"name": "AGENT_SOCKET", "value": "/run/agent/trace.sock"}, "spec", field, i, "env")
			}
		}
	}
	var ops []operation
	for _, field := range []string{"initContainers", "containers", "volumes"} {
		if string(encode(at(after, "spec", field))) != string(encode(at(pod, "spec", field))) {
			ops = append(ops, add(pointer("spec", field), at(after, "spec", field)))
		}
	}
	return ops, nil
}

const launcher = "/platform/launch"

func wrapByIndex(d *appsv1.Deployment) {
	const key = "threads.example.com/wrapped"
	var done []string
	if have := d.Annotations[key]; have != "" {
		done = strings.Split(have, ",")
	}
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		if len(c.Command) > 0 && !slices.Contains(done, strconv.Itoa(i)) {
			c.Command = append([]string{launcher, "--"}, c.Command...)
			done = append(done, strconv.Itoa(i))
		}
	}
	if len(done) > 0 {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, strings.Join(done, ","))
	}
}
