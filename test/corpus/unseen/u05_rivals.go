// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"cmp"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func rivalBugs() []Case {
	return []Case{{
		Name:    "U05b1-agent-by-image",
		Kind:    "Pod",
		Summary: "adds a metrics agent, and recognises it by its image",
		Why: "CREATE a Pod; another webhook rewrites all images to a mirror; the second call does not recognise the agent " +
			"and adds it again, under the same name. The API server rejects the Pod.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			isAgent := func(c corev1.Container) bool { return c.Image == metricsAgent.Image }
			return addAgent(req.Object, slices.ContainsFunc(req.Object.Spec.Containers, isAgent))
		}),
		Sample: agentPod,
		Proof:  wrongAfter(mirrorImages, containersRepeat),
	}, {
		Name:    "U05b2-pod-ip-first",
		Kind:    "Deployment",
		Summary: "puts POD_IP in front of the variables that refer to it",
		Why: "CREATE a Deployment; another webhook sorts the variables by name; the webhook looks at the first variable " +
			"only and puts a second POD_IP in front.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			return podIPFirst(req.Object, func(env []corev1.EnvVar) bool { return env[0].Name == "POD_IP" })
		}),
		Sample: advertiseDeployment,
		Proof:  wrongAfter(sortEnv, envRepeats),
	}, {
		Name:    "U05b3-vault-env-wrapper",
		Kind:    "Pod",
		Summary: "starts commands through vault-env, so that they get their secrets",
		Why: "CREATE a Pod; another webhook starts commands through tini; the second call looks at the first word, finds " +
			"tini and wraps again: vault-env runs twice and fails in the inner run, where its token is used up.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			return wrapCommands(pod, func(command []any) bool { return command[0] == vaultEnv })
		}),
		Sample: wrappedPod,
		Proof:  wrongAfter(throughTini, vaultEnvRepeats),
	}, {
		Name:    "U05b4-overhead-annotation",
		Kind:    "StatefulSet",
		Summary: "adds 256Mi for an agent to the memory limits, and marks the StatefulSet in an annotation",
		Why: "CREATE a StatefulSet; a webhook that keeps only known annotations strips the mark; with the second call, and " +
			"each UPDATE by a client that does not know the mark, the limits grow by 256Mi.",
		Webhook: statefulSetsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.StatefulSet]) error {
			set := req.Object
			if set.Labels["sizing"] != "with-agent" || set.Annotations["sizing.example.com/overhead"] == "added" {
				return nil
			}
			for _, c := range set.Spec.Template.Spec.Containers {
				if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok {
					limit.Add(resource.MustParse("256Mi"))
					c.Resources.Limits[corev1.ResourceMemory] = limit
				}
			}
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, "sizing.example.com/overhead", "added")
			return nil
		}),
		Sample: sizedStatefulSet,
		Proof: wrongAfter(func(o object) { delete(dict(o, "metadata"), "annotations") }, func(o object) string {
			if got := text(o, append(slices.Clone(inTemplate), 0, "resources", "limits", "memory")...); got != "1280Mi" {
				return "the limit is " + got + " instead of 1280Mi"
			}
			return ""
		}),
	}, {
		Name:    "U05b5-spread-over-zones",
		Kind:    "Deployment",
		Summary: "spreads the Pods of a Deployment over zones, unless exactly this constraint is there",
		Why: "CREATE a Deployment; another webhook fills nodeTaintsPolicy in all constraints that lack it; the second call " +
			"finds no equal constraint and appends one with the same topologyKey, which the API server rejects.",
		Webhook: deploymentsOnWrite,
		Sample:  spreadDeployment,
		Proof:   wrongAfter(fillTaintsPolicy, constraintsRepeat),
	}}
}

const (
	vaultEnv   = "/vault/vault-env"
	scrapeMark = "metrics.example.com/scrape-with"
)

var metricsAgent = corev1.Container{Name: "metrics-agent", Image: "registry.example.com/metrics/agent:0.30"}

func addAgent(pod *corev1.Pod, there bool) error {
	if pod.Annotations[scrapeMark] == "agent" && !there {
		pod.Spec.Containers = append(pod.Spec.Containers, metricsAgent)
	}
	return nil
}

func podIPFirst(d *appsv1.Deployment, there func([]corev1.EnvVar) bool) error {
	if d.Spec.Template.Annotations["net.example.com/advertise"] != "pod-ip" {
		return nil
	}
	podIP := corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}}
	eachContainer(&d.Spec.Template.Spec, func(c *corev1.Container) {
		if len(c.Env) == 0 || !there(c.Env) {
			c.Env = slices.Insert(c.Env, 0, podIP)
		}
	})
	return nil
}

func wrapCommands(pod object, wrapped func([]any) bool) ([]operation, error) {
	if annotation(pod, "vault.example.com/env") != "true" {
		return nil, nil
	}
	var ops []operation
	for i, c := range list(pod, "spec", "containers") {
		if command := list(c, "command"); len(command) > 0 && !wrapped(command) {
			ops = append(ops, replace(pointer("spec", "containers", i, "command"), append([]any{vaultEnv, "--"}, command...)))
		}
	}
	return ops, nil
}

// mirrorImages puts the host of a mirror in front of all images.
func mirrorImages(o object) {
	for _, c := range list(o, "spec", "containers") {
		put(c, "mirror.example.net/"+text(c, "image"), "image")
	}
}

func sortEnv(o object) {
	for _, c := range list(o, inTemplate...) {
		slices.SortFunc(list(c, "env"), func(a, b any) int { return cmp.Compare(text(a, "name"), text(b, "name")) })
	}
}

func envRepeats(o object) string {
	for _, c := range list(o, inTemplate...) {
		if s := repeated("variable", names(list(c, "env"))); s != "" {
			return s
		}
	}
	return ""
}

func throughTini(o object) {
	for _, c := range list(o, "spec", "containers") {
		put(c, append([]any{"/sbin/tini", "--"}, list(c, "command")...), "command")
	}
}

func vaultEnvRepeats(o object) string {
	var words []string
	for _, word := range list(o, "spec", "containers", 0, "command") {
		if word == vaultEnv {
			words = append(words, vaultEnv)
		}
	}
	return repeated("the wrapper", words)
}

func fillTaintsPolicy(o object) {
	for _, c := range list(o, "spec", "template", "spec", "topologySpreadConstraints") {
		if at(c, "nodeTaintsPolicy") == nil {
			put(c, "Honor", "nodeTaintsPolicy")
		}
	}
}

func constraintsRepeat(o object) string {
	var keys []string
	for _, c := range list(o, "spec", "template", "spec", "topologySpreadConstraints") {
		keys = append(keys, fmt.Sprint(text(c, "topologyKey"), " ", text(c, "whenUnsatisfiable")))
	}
	return repeated("the constraint", keys)
}

const (
	agentPod = podHead + `
metadata: {name: cart, namespace: shop, annotations: {metrics.example.com/scrape-with: agent}}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	advertiseDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: gossip, namespace: shop}
spec:
  selector: {matchLabels: {app: gossip}}
  template:
    metadata: {labels: {app: gossip}, annotations: {net.example.com/advertise: pod-ip}}
    spec:
      containers:
      - name: gossip
        image: registry.example.com/shop/gossip:1.1
        env: [{name: ADVERTISE, value: "http://$(POD_IP):7946"}]
`
	wrappedPod = podHead + `
metadata: {name: cart, namespace: shop, annotations: {vault.example.com/env: "true"}}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0", command: [/bin/cart, --port=8080]}]}
`
	sizedStatefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: index, namespace: shop, labels: {sizing: with-agent}}
spec:
  serviceName: index
  selector: {matchLabels: {app: index}}
  template:
    metadata: {labels: {app: index}}
    spec:
      containers:
      - {name: index, image: "registry.example.com/shop/index:6.0", resources: {limits: {memory: 1Gi}}}
`
	spreadDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop, labels: {availability: high}}
spec:
  replicas: 6
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
)
