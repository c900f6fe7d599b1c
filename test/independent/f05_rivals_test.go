// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const pullDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: catalog, namespace: retail}
spec:
  selector:
    matchLabels: {app: catalog}
  template:
    metadata:
      labels: {app: catalog}
    spec:
      containers:
        - name: catalog
          image: registry.northwind.io/retail/catalog:6.1.0
`

var _ = add(hookCase{
	Name:    "F05b1-pull-secret-is-tidied-up",
	Summary: "For the registry team, Deployments with an image of the company registry get the pull secret regcred. If no image is from there any more, the secret is taken out again.",
	Why:     "An image mirror that rewrites the images, and needs the same secret, makes the webhook remove it. An author who uses regcred for another registry loses it too.",
	Webhook: register("pullsecret.northwind.io", "apps", "v1", "deployments", create, update),
	Samples: []string{pullDeployment},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			private := false
			for _, list := range []string{"initContainers", "containers"} {
				for _, c := range objects(e.get("spec", "template", "spec", list)) {
					private = private || strings.HasPrefix(str(c["image"]), "registry.northwind.io/")
				}
			}
			path := under(templateSpec, "imagePullSecrets")
			var rest []any
			there := false
			for _, s := range objects(e.get(path...)) {
				if str(s["name"]) == "regcred" {
					there = true
					continue
				}
				rest = append(rest, s)
			}
			switch {
			case private && !there:
				e.push(map[string]any{"name": "regcred"}, path...)
			case !private && there && len(rest) == 0:
				e.drop(path...)
			case !private && there:
				e.set(rest, path...)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(pullDeployment))
		mirrored := copyOf(live)
		reach(mirrored, "spec", "template", "spec", "containers", "0").(map[string]any)["image"] = "mirror.northwind.io/retail/catalog:6.1.0"
		out := p.updated(live, mirrored)
		if len(objects(reach(out, "spec", "template", "spec", "imagePullSecrets"))) == 0 {
			return "the pull secret is gone after the mirror has changed the image"
		}
		return ""
	},
})

const pullPod = `
apiVersion: v1
kind: Pod
metadata: {name: reindex, namespace: retail}
spec:
  initContainers:
    - name: fetch
      image: mirror.northwind.io/retail/fetch:1.0.0
  containers:
    - name: reindex
      image: docker.io/library/busybox:1.36
      command: ["sh", "-c", "ls /data"]
`

var _ = add(hookCase{
	Name:    "F05c1-pull-secret-is-only-added",
	Summary: "For the registry team, Pods with an image of the company registry or of its mirror get the pull secret regcred if they do not list it. It is never taken out.",
	Why:     "The registry and its mirror count alike, and the entry is found by its name. So a mirror between the calls changes nothing.",
	Webhook: notInSystem(register("podpull.northwind.io", "", "v1", "pods", create)),
	Samples: []string{pullPod},
	New: func() http.Handler {
		return serve(func(r *admissionv1.AdmissionRequest) ([]byte, error) {
			var pod corev1.Pod
			if err := json.Unmarshal(r.Object.Raw, &pod); err != nil {
				return nil, err
			}
			ours := false
			for _, c := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
				ours = ours || strings.HasPrefix(c.Image, "registry.northwind.io/") || strings.HasPrefix(c.Image, "mirror.northwind.io/")
			}
			if !ours {
				return nil, nil
			}
			for _, s := range pod.Spec.ImagePullSecrets {
				if s.Name == "regcred" {
					return nil, nil
				}
			}
			secret := map[string]any{"name": "regcred"}
			if pod.Spec.ImagePullSecrets == nil {
				return operations([]patchOp{{Op: "add", Path: "/spec/imagePullSecrets", Value: []any{secret}}})
			}
			return operations([]patchOp{{Op: "add", Path: "/spec/imagePullSecrets/-", Value: secret}})
		})
	},
	Proof: func(p *prover) string {
		for _, image := range []string{"registry.northwind.io/retail/fetch:1.0.0", "mirror.northwind.io/retail/fetch:1.0.0", "docker.io/x/fetch:1"} {
			object := p.created(p.object(pullPod))
			reach(object, "spec", "initContainers", "0").(map[string]any)["image"] = image
			if out := p.created(object); len(objects(reach(out, "spec", "imagePullSecrets"))) != 1 {
				return "lost or doubled with " + image
			}
		}
		for _, list := range []any{nil, []any{}, []any{map[string]any{"name": "theirs"}}} {
			object := p.object(pullPod)
			set(object, list, "spec", "imagePullSecrets")
			if got := names(reach(p.created(object), "spec", "imagePullSecrets")); count(got, "regcred") != 1 {
				return fmt.Sprint(got)
			}
		}
		return ""
	},
})

const egressPolicy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: quotes, namespace: trading}
spec:
  podSelector:
    matchLabels: {app: quotes}
  policyTypes: [Egress]
  egress:
    - to:
        - podSelector:
            matchLabels: {app: quotes-db}
      ports:
        - {protocol: TCP, port: 5432}
`

var _ = add(hookCase{
	Name:    "F05b2-annotation-says-rule-is-there",
	Summary: "The observability team wants each egress policy to let pods reach the collector. The webhook appends a rule, and notes the rule's hash in an annotation to know that it is done.",
	Why:     "If another party removes the annotation, the rule is added twice. When the author applies the manifest again, the list of rules is the author's but the annotation is still there, so the rule is missing.",
	Webhook: register("collector.northwind.io", "networking.k8s.io", "v1", "networkpolicies", create, update),
	Samples: []string{egressPolicy},
	New: func() http.Handler {
		rule := map[string]any{
			"to":    []any{map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "observability"}}}},
			"ports": []any{map[string]any{"protocol": "TCP", "port": 4317}},
		}
		text, _ := json.Marshal(rule)
		sum := sha256.Sum256(text)
		hash := hex.EncodeToString(sum[:8])
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			egress := false
			types, _ := e.get("spec", "policyTypes").([]any)
			for _, t := range types {
				egress = egress || str(t) == "Egress"
			}
			if !egress || str(e.get("metadata", "annotations", "policy.northwind.io/collector-rule")) == hash {
				return nil
			}
			e.push(rule, "spec", "egress")
			e.set(hash, "metadata", "annotations", "policy.northwind.io/collector-rule")
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(egressPolicy))
		stripped := copyOf(live)
		delete(stripped["metadata"].(map[string]any), "annotations")
		twice := len(objects(reach(p.updated(live, stripped), "spec", "egress")))
		applied := copyOf(live)
		set(applied, reach(p.object(egressPolicy), "spec", "egress"), "spec", "egress")
		missing := len(objects(reach(p.updated(live, applied), "spec", "egress")))
		if twice != 2 || missing != 2 {
			return fmt.Sprintf("%d rules without the annotation, %d after another apply, instead of 2", twice, missing)
		}
		return ""
	},
})

const ingressPolicy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: cart, namespace: retail}
spec:
  podSelector:
    matchLabels: {app: cart}
  policyTypes: [Ingress, Egress]
  ingress:
    - from:
        - podSelector:
            matchLabels: {app: storefront}
      ports:
        - {protocol: TCP, port: 8080}
`

var _ = add(hookCase{
	Name:    "F05c2-annotation-is-for-people",
	Summary: "The observability team wants each ingress policy to let the monitoring namespace reach port 9102. The webhook appends a rule unless another one allows this, and writes an annotation for people.",
	Why:     "The annotation is written but never read. Rules are compared by what they allow, so a rule that another party has sorted or widened counts.",
	Webhook: register("allowmonitoring.northwind.io", "networking.k8s.io", "v1", "networkpolicies", create, update),
	Samples: []string{ingressPolicy},
	New: func() http.Handler {
		monitoring := labels.Set{"kubernetes.io/metadata.name": "monitoring"}
		allows := func(rule networkingv1.NetworkPolicyIngressRule) bool {
			source, port := len(rule.From) == 0, len(rule.Ports) == 0
			for _, peer := range rule.From {
				if peer.IPBlock != nil || peer.NamespaceSelector == nil {
					continue
				}
				if s := peer.PodSelector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
					continue
				}
				selector, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
				source = source || err == nil && selector.Matches(monitoring)
			}
			for _, p := range rule.Ports {
				if p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP {
					continue
				}
				port = port || p.Port == nil || p.Port.StrVal == "" && p.Port.IntVal == 9102 ||
					p.EndPort != nil && p.Port.StrVal == "" && p.Port.IntVal <= 9102 && *p.EndPort >= 9102
			}
			return source && port
		}
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			var policy networkingv1.NetworkPolicy
			if err := json.Unmarshal(r.Object.Raw, &policy); err != nil {
				return err
			}
			applies := len(policy.Spec.PolicyTypes) == 0
			for _, t := range policy.Spec.PolicyTypes {
				applies = applies || t == networkingv1.PolicyTypeIngress
			}
			if !applies {
				return nil
			}
			allowed := false
			for _, rule := range policy.Spec.Ingress {
				allowed = allowed || allows(rule)
			}
			if !allowed {
				e.push(map[string]any{
					"from":  []any{map[string]any{"namespaceSelector": map[string]any{"matchLabels": monitoring}}},
					"ports": []any{map[string]any{"protocol": "TCP", "port": 9102}},
				}, "spec", "ingress")
			}
			if str(e.get("metadata", "annotations", "policy.northwind.io/monitoring")) != "allowed" {
				e.set("allowed", "metadata", "annotations", "policy.northwind.io/monitoring")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(ingressPolicy))
		stripped := copyOf(live)
		delete(stripped["metadata"].(map[string]any), "annotations")
		if out := p.updated(live, stripped); !same(out, live) {
			return "the rule is there twice without the annotation"
		}
		applied := copyOf(live)
		set(applied, reach(p.object(ingressPolicy), "spec", "ingress"), "spec", "ingress")
		if out := p.updated(live, applied); !same(out, live) {
			return "the rule is missing after another apply"
		}
		wider := copyOf(live)
		set(wider, []any{
			map[string]any{
				"ports": []any{map[string]any{"port": 9000, "endPort": 9200}},
				"from":  []any{map[string]any{"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "kubernetes.io/metadata.name", "operator": "In", "values": []any{"web", "monitoring"}}}}}},
			},
		}, "spec", "ingress")
		if out := p.updated(live, wider); !same(normal(out), normal(wider)) {
			return "a rule that allows more is not recognised"
		}
		return ""
	},
})
