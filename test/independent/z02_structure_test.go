// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	javaAgent = "-javaagent:/opt/apm/agent.jar"
	javaPod   = `
apiVersion: v1
kind: Pod
metadata:
  generateName: orders-7d9f-
  namespace: shop
  labels: {app: orders, apm.acme.io/java: "true"}
spec:
  containers:
  - name: orders
    image: registry.acme.io/shop/orders:4.0.1
    env:
    - name: JAVA_TOOL_OPTIONS
      value: -Xmx512m
`
)

func javaBroken(req *admissionv1.AdmissionRequest) ([]byte, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
		return nil, err
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "JAVA_TOOL_OPTIONS" })
		if at < 0 {
			c.Env = append(c.Env, corev1.EnvVar{Name: "JAVA_TOOL_OPTIONS", Value: javaAgent})
			continue
		}
		if e := &c.Env[at]; e.ValueFrom == nil && !strings.HasSuffix(e.Value, javaAgent) {
			e.Value = strings.TrimSpace(e.Value + " " + javaAgent)
		}
	}
	return difference(req.Object.Raw, pod)
}

func javaCorrect(req *admissionv1.AdmissionRequest) ([]byte, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
		return nil, err
	}
	hasAgent := func(options string) bool {
		return slices.ContainsFunc(strings.Fields(options), func(o string) bool {
			return o == javaAgent || strings.HasPrefix(o, javaAgent+"=")
		})
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		var last *corev1.EnvVar // the last of several wins
		for j := range c.Env {
			if c.Env[j].Name == "JAVA_TOOL_OPTIONS" {
				last = &c.Env[j]
			}
		}
		switch {
		case last == nil:
			c.Env = append(c.Env, corev1.EnvVar{Name: "JAVA_TOOL_OPTIONS", Value: javaAgent})
		case last.ValueFrom != nil || hasAgent(last.Value):
		case last.Value == "":
			last.Value = javaAgent
		default:
			last.Value += " " + javaAgent
		}
	}
	return difference(req.Object.Raw, pod)
}

func javaProof(p *prover) string {
	first := p.created(p.object(javaPod))
	// Another webhook appends an option of its own.
	env := objects(objects(nested(first, "spec")["containers"])[0]["env"])[0]
	env["value"] = str(env["value"]) + " -Dotel.service.name=orders"
	second := p.created(first)
	value := str(objects(objects(nested(second, "spec")["containers"])[0]["env"])[0]["value"])
	if n := strings.Count(value, javaAgent); n != 1 {
		return fmt.Sprintf("the agent is loaded %d times: %s", n, value)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z02b1-java-agent-suffix",
		Summary: "JAVA_TOOL_OPTIONS gets the agent again if something was appended after it.",
		Why: "CREATE appends -javaagent to JAVA_TOOL_OPTIONS. Another webhook appends -Dotel.service.name=orders. On reinvocation the value no longer ends " +
			"with the agent, so it is appended again: the JVM loads the agent twice, and instruments all classes twice.",
		Webhook: onlyLabelled(register("java.apm.acme.io", "", "v1", "pods", create), "apm.acme.io/java", "true"),
		New:     func() http.Handler { return serve(javaBroken) },
		Samples: []string{javaPod},
		Proof:   javaProof,
	})
	_ = add(hookCase{
		Name:    "Z02c1-java-agent-fields",
		Summary: "JAVA_TOOL_OPTIONS is split into options before the agent is appended.",
		Why:     "The agent is found anywhere in the value, also if it has options (=...). If several variables have the name, the last one counts, as for the kubelet. A variable with valueFrom is not changed.",
		Webhook: onlyLabelled(register("java.apm.acme.io", "", "v1", "pods", create), "apm.acme.io/java", "true"),
		New:     func() http.Handler { return serve(javaCorrect) },
		Samples: []string{javaPod},
		Proof:   javaProof,
	})
)

const proxyDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: crawler
  namespace: search
  labels: {egress.acme.io/proxied: "true"}
spec:
  replicas: 2
  selector: {matchLabels: {app: crawler}}
  template:
    metadata: {labels: {app: crawler}}
    spec:
      containers:
      - name: crawler
        image: registry.acme.io/search/crawler:0.9
        env:
        - {name: HTTPS_PROXY, value: "http://proxy.acme.io:3128"}
        - {name: NO_PROXY, value: "localhost,127.0.0.1"}
`

// noProxy are the hosts that must not be reached through the proxy.
var noProxy = []string{".svc", "169.254.169.254"}

type proxyBroken struct{}

func (*proxyBroken) Default(_ context.Context, d *appsv1.Deployment) error {
	if d.Labels["egress.acme.io/proxied"] != "true" {
		return nil
	}
	for i := range d.Spec.Template.Spec.Containers {
		for j := range d.Spec.Template.Spec.Containers[i].Env {
			e := &d.Spec.Template.Spec.Containers[i].Env[j]
			if e.Name != "NO_PROXY" || e.ValueFrom != nil {
				continue
			}
			for _, host := range noProxy {
				if !strings.Contains(e.Value, host) {
					e.Value += "," + host
				}
			}
			e.Value = strings.TrimPrefix(e.Value, ",")
		}
	}
	return nil
}

type proxyCorrect struct{}

func (*proxyCorrect) Default(_ context.Context, d *appsv1.Deployment) error {
	if d.Labels["egress.acme.io/proxied"] != "true" {
		return nil
	}
	for i := range d.Spec.Template.Spec.Containers {
		for j := range d.Spec.Template.Spec.Containers[i].Env {
			e := &d.Spec.Template.Spec.Containers[i].Env[j]
			if e.Name != "NO_PROXY" || e.ValueFrom != nil {
				continue
			}
			have := map[string]bool{}
			for host := range strings.SplitSeq(e.Value, ",") {
				have[strings.ToLower(strings.TrimSpace(host))] = true
			}
			for _, host := range noProxy {
				switch {
				case have["*"], have[host]:
				case strings.TrimSpace(e.Value) == "":
					e.Value = host
				default:
					e.Value += "," + host
				}
			}
		}
	}
	return nil
}

func proxyProof(p *prover) string {
	end := func(before, after string) []string {
		d := p.object(proxyDeployment)
		env := func(d map[string]any) map[string]any {
			return objects(objects(nested(d, "spec", "template", "spec")["containers"])[0]["env"])[1]
		}
		env(d)["value"] = "localhost" + before
		d = p.created(d)
		env(d)["value"] = str(env(d)["value"]) + after
		d = p.created(d)
		return strings.Split(str(env(d)["value"]), ",")
	}
	early, late := end(",.svc.cluster.local", ""), end("", ",.svc.cluster.local")
	if !slices.Contains(early, ".svc") || !slices.Contains(late, ".svc") {
		return fmt.Sprintf("another webhook before this one: %v; after it: %v", early, late)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z02b2-no-proxy-substring",
		Summary: "An entry such as .svc.cluster.local counts as .svc, because it contains that text.",
		Why: "If another webhook (or the author) puts .svc.cluster.local into NO_PROXY before the call, strings.Contains finds \".svc\" and the entry is not added: " +
			"requests to db.shop.svc go to the proxy and fail. If it does so after the call, both are there. The result depends on the order.",
		Webhook: register("noproxy.egress.acme.io", "apps", "v1", "deployments", create, update),
		New:     func() http.Handler { return admission.WithDefaulter(clientgoscheme.Scheme, &proxyBroken{}) },
		Samples: []string{proxyDeployment},
		Proof:   proxyProof,
	})
	_ = add(hookCase{
		Name:    "Z02c2-no-proxy-entries",
		Summary: "Entries of NO_PROXY are compared one by one.",
		Why: "The list is split and trimmed; missing entries are appended, and nothing is moved or written in another form. " +
			"A value that is empty, has a valueFrom or excludes everything with * is handled.",
		Webhook: register("noproxy.egress.acme.io", "apps", "v1", "deployments", create, update),
		New:     func() http.Handler { return admission.WithDefaulter(clientgoscheme.Scheme, &proxyCorrect{}) },
		Samples: []string{proxyDeployment},
		Proof:   proxyProof,
	})
)

const (
	networksKey = "k8s.v1.cni.cncf.io/networks"
	networksPod = `
apiVersion: v1
kind: Pod
metadata:
  name: osd-0
  namespace: storage
  labels: {storage.acme.io/fabric: "true"}
  annotations: {k8s.v1.cni.cncf.io/networks: infra/backup}
spec:
  containers:
  - name: osd
    image: registry.acme.io/ceph/osd:18.2
`
)

func networksBroken(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var pod map[string]any
	if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
		return nil, err
	}
	metadata := nested(pod, "metadata")
	if str(nested(metadata, "labels")["storage.acme.io/fabric"]) != "true" {
		return nil, nil
	}
	annotations := nested(metadata, "annotations")
	if annotations == nil {
		return operations([]patchOp{{"add", "/metadata/annotations", map[string]any{networksKey: "infra/storage-fabric"}}})
	}
	value := str(annotations[networksKey])
	if value == "" {
		value = "infra/storage-fabric"
	} else if !slices.Contains(strings.Split(strings.ReplaceAll(value, " ", ""), ","), "infra/storage-fabric") {
		value += ",infra/storage-fabric"
	} else {
		return nil, nil
	}
	return operations([]patchOp{{"add", "/metadata/annotations/" + escape(networksKey), value}})
}

// networksCorrect reads both forms of the annotation: a JSON list, and namespace/name@interface separated by commas.
func networksCorrect(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var pod map[string]any
	if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
		return nil, err
	}
	metadata := nested(pod, "metadata")
	if str(nested(metadata, "labels")["storage.acme.io/fabric"]) != "true" {
		return nil, nil
	}
	annotations := nested(metadata, "annotations")
	if annotations == nil {
		return operations([]patchOp{{"add", "/metadata/annotations", map[string]any{networksKey: "infra/storage-fabric"}}})
	}
	isOurs := func(namespace, name string) bool {
		if namespace == "" {
			namespace = req.Namespace
		}
		return namespace == "infra" && name == "storage-fabric"
	}
	value := strings.TrimSpace(str(annotations[networksKey]))
	switch {
	case value == "":
		value = "infra/storage-fabric"
	case strings.HasPrefix(value, "["):
		var items []json.RawMessage
		if json.Unmarshal([]byte(value), &items) != nil {
			return nil, nil // Multus reports it
		}
		for _, item := range items {
			var network struct{ Name, Namespace string }
			if json.Unmarshal(item, &network) == nil && isOurs(network.Namespace, network.Name) {
				return nil, nil
			}
		}
		items = append(items, json.RawMessage(`{"name":"storage-fabric","namespace":"infra"}`))
		list, err := json.Marshal(items)
		if err != nil {
			return nil, err
		}
		value = string(list)
	default:
		for item := range strings.SplitSeq(value, ",") {
			item, _, _ = strings.Cut(strings.TrimSpace(item), "@")
			namespace, name, ok := strings.Cut(item, "/")
			if !ok {
				namespace, name = "", item
			}
			if isOurs(namespace, name) {
				return nil, nil
			}
		}
		value += ",infra/storage-fabric"
	}
	return operations([]patchOp{{"add", "/metadata/annotations/" + escape(networksKey), value}})
}

func networksProof(p *prover) string {
	pod := p.created(p.object(networksPod))
	// Another webhook writes the same networks in the other form, with an interface.
	set(pod, `[{"name":"backup","namespace":"infra"},{"name":"storage-fabric","namespace":"infra","interface":"net1"}]`, "metadata", "annotations", networksKey)
	pod = p.created(pod)
	value := str(nested(pod, "metadata", "annotations")[networksKey])
	if !json.Valid([]byte(value)) {
		return "neither a JSON list nor a list with commas: " + value
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z02b3-networks-two-forms",
		Summary: "An annotation that may be a JSON list gets a comma and a name appended.",
		Why: "CREATE appends infra/storage-fabric to k8s.v1.cni.cncf.io/networks. Another webhook rewrites the value as the equal JSON list, so the webhook is called again: " +
			"it does not find its network, and writes '[...],infra/storage-fabric', which Multus cannot parse. The pod never starts. " +
			"With infra/storage-fabric@net1 in the other form, the network is attached twice.",
		Webhook: register("networks.storage.acme.io", "", "v1", "pods", create),
		New:     func() http.Handler { return serve(networksBroken) },
		Samples: []string{networksPod},
		Proof:   networksProof,
	})
	_ = add(hookCase{
		Name:    "Z02c3-networks-two-forms",
		Summary: "Both forms of the annotation are parsed, and extended in their own form.",
		Why: "The network is recognised in both forms, with and without interface and namespace; the value keeps its form. " +
			"A value that is in neither form is left as it is.",
		Webhook: register("networks.storage.acme.io", "", "v1", "pods", create),
		New:     func() http.Handler { return serve(networksCorrect) },
		Samples: []string{networksPod},
		Proof:   networksProof,
	})
)
