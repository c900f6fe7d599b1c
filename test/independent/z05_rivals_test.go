// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const shipperPod = `
apiVersion: v1
kind: Pod
metadata:
  name: cart
  namespace: shop
  labels: {logs.acme.io/ship: "true"}
spec:
  containers:
  - name: cart
    image: docker.io/acme/cart:2.0
`

const shipperImage = "registry.acme.io/platform/log-shipper:2.3"

func shipperContainer() corev1.Container {
	return corev1.Container{Name: "log-shipper", Image: shipperImage, Args: []string{"--follow"}}
}

func shipperBroken(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
		return nil, err
	}
	for _, c := range pod.Spec.Containers {
		if c.Image == shipperImage {
			return nil, nil
		}
	}
	return operations([]patchOp{{"add", "/spec/containers/-", shipperContainer()}})
}

func shipperCorrect(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
		return nil, err
	}
	named := func(c corev1.Container) bool { return c.Name == "log-shipper" }
	if slices.ContainsFunc(pod.Spec.InitContainers, named) {
		return nil, errors.New("the container name log-shipper is reserved: rename the init container, or drop the label logs.acme.io/ship")
	}
	if slices.ContainsFunc(pod.Spec.Containers, named) {
		return nil, nil // with whatever image: a mirror may have renamed it
	}
	return operations([]patchOp{{"add", "/spec/containers/-", shipperContainer()}})
}

func shipperProof(p *prover) string {
	pod := p.created(p.object(shipperPod))
	for _, c := range objects(nested(pod, "spec")["containers"]) {
		c["image"] = "mirror.local/" + str(c["image"])
	}
	pod = p.created(pod)
	if all := names(nested(pod, "spec")["containers"]); count(all, "log-shipper") != 1 {
		return fmt.Sprintf("the API server rejects the containers %q", all)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z05b1-log-shipper-by-image",
		Summary: "The sidecar is recognised by its image, which a mirror rewrites.",
		Why: "CREATE adds container log-shipper. Another webhook rewrites all images to mirror.local/..., so the webhook is called again. It does not find its image and adds " +
			"log-shipper a second time: the API server rejects the Pod.",
		Webhook: notInSystem(register("shipper.logs.acme.io", "", "v1", "pods", create)),
		New:     func() http.Handler { return serve(shipperBroken) },
		Samples: []string{shipperPod},
		Proof:   shipperProof,
	})
	_ = add(hookCase{
		Name:    "Z05c1-log-shipper-by-name",
		Summary: "The sidecar is recognised by its name; the image is left as it is.",
		Why: "Names of containers are unique. Whatever image the container of this name has, it is not added again and not changed back. " +
			"An init container of the name is denied, because the API server would reject the result.",
		Webhook: notInSystem(onlyLabelled(register("shipper.logs.acme.io", "", "v1", "pods", create), "logs.acme.io/ship", "true")),
		New:     func() http.Handler { return serve(shipperCorrect) },
		Samples: []string{shipperPod},
		Proof:   shipperProof,
	})
)

const wrapCronJob = `
apiVersion: batch/v1
kind: CronJob
metadata:
  name: vacuum
  namespace: db
  annotations: {jobs.acme.io/metrics: "true"}
spec:
  schedule: "17 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - name: vacuum
            image: registry.acme.io/db/tools:9
            command: [vacuumdb, --all]
`

func wrapWith(wrapped func(command []any) bool) func(req *admissionv1.AdmissionRequest) ([]byte, error) {
	return func(req *admissionv1.AdmissionRequest) ([]byte, error) {
		var job map[string]any
		if err := json.Unmarshal(req.Object.Raw, &job); err != nil {
			return nil, err
		}
		if str(nested(job, "metadata", "annotations")["jobs.acme.io/metrics"]) != "true" {
			return nil, nil
		}
		var ops []patchOp
		for i, c := range objects(nested(job, "spec", "jobTemplate", "spec", "template", "spec")["containers"]) {
			command, _ := c["command"].([]any)
			if len(command) == 0 || wrapped(command) {
				continue // without a command, the image has its own entry point
			}
			ops = append(ops, patchOp{"replace", fmt.Sprintf("/spec/jobTemplate/spec/template/spec/containers/%d/command", i), append([]any{"/usr/local/bin/jobwrap", "--"}, command...)})
		}
		return operations(ops)
	}
}

func wrappedFirst(command []any) bool { return command[0] == "/usr/local/bin/jobwrap" }

func wrappedAnywhere(command []any) bool {
	for i := range len(command) - 1 {
		if command[i] == "/usr/local/bin/jobwrap" && command[i+1] == "--" {
			return true
		}
	}
	return false
}

func wrapProof(p *prover) string {
	job := p.created(p.object(wrapCronJob))
	container := func() map[string]any {
		return objects(nested(job, "spec", "jobTemplate", "spec", "template", "spec")["containers"])[0]
	}
	container()["command"] = append([]any{"/bin/tini", "-g", "--"}, container()["command"].([]any)...)
	job = p.created(job)
	n := 0
	for _, word := range container()["command"].([]any) {
		if word == "/usr/local/bin/jobwrap" {
			n++
		}
	}
	if n != 1 {
		return fmt.Sprintf("wrapped %d times: %q", n, container()["command"])
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z05b2-job-wrapper-outermost",
		Summary: "The webhook recognises its wrapper only if it is the outermost one.",
		Why: "CREATE makes the command [jobwrap -- vacuumdb]. Another webhook wraps it in [tini -g --], so the webhook is called again: command[0] is tini, so it wraps again, " +
			"[jobwrap -- tini -g -- jobwrap -- vacuumdb]. Each run is counted twice, and each update makes the command longer if the other webhook has the same fault.",
		Webhook: register("wrap.jobs.acme.io", "batch", "v1", "cronjobs", create, update),
		New:     func() http.Handler { return serve(wrapWith(wrappedFirst)) },
		Samples: []string{wrapCronJob},
		Proof:   wrapProof,
	})
	_ = add(hookCase{
		Name:    "Z05c2-job-wrapper-anywhere",
		Summary: "The wrapper of a command is found behind other wrappers too.",
		Why:     "The pair [jobwrap, --] is looked for in the whole command, so a further wrapper around it does not matter. A container without a command is not touched.",
		Webhook: register("wrap.jobs.acme.io", "batch", "v1", "cronjobs", create, update),
		New:     func() http.Handler { return serve(wrapWith(wrappedAnywhere)) },
		Samples: []string{wrapCronJob},
		Proof:   wrapProof,
	})
)

const tlsIngress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  namespace: shop
  annotations: {certs.acme.io/issue: "true"}
spec:
  ingressClassName: nginx
  rules:
  - host: shop.acme.io
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}
  - host: api.acme.io
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: api, port: {number: 80}}}}
`

func ingressTLS(req *admissionv1.AdmissionRequest) ([]byte, error) {
	ingress := &networkingv1.Ingress{}
	if err := json.Unmarshal(req.Object.Raw, ingress); err != nil {
		return nil, err
	}
	if ingress.Annotations["certs.acme.io/issue"] != "true" {
		return nil, nil
	}
	var hosts []string
	for _, rule := range ingress.Spec.Rules {
		if rule.Host != "" && !slices.Contains(hosts, rule.Host) {
			hosts = append(hosts, rule.Host)
		}
	}
	if len(hosts) == 0 {
		return nil, nil
	}
	want := networkingv1.IngressTLS{Hosts: hosts, SecretName: "acme-issued-tls"}
	for _, tls := range ingress.Spec.TLS {
		if reflect.DeepEqual(tls, want) {
			return nil, nil
		}
	}
	ingress.Spec.TLS = append(ingress.Spec.TLS, want)
	return difference(req.Object.Raw, ingress)
}

var _ = add(hookCase{
	Name:    "Z05b3-ingress-tls-deep-equal",
	Summary: "The webhook recognises its TLS entry only if the hosts have the same order.",
	Why: "CREATE adds tls {hosts: [shop, api], secretName}. Another webhook sorts hosts to [api, shop], so the webhook is called again and appends a second entry for the same hosts and secret. " +
		"So does each UPDATE that adds a rule by apply: entries pile up, the old ones with wrong hosts, and the certificate controller sees two claims to one secret.",
	Webhook: register("tls.certs.acme.io", "networking.k8s.io", "v1", "ingresses", create, update),
	New:     func() http.Handler { return serve(ingressTLS) },
	Samples: []string{tlsIngress},
	Proof: func(p *prover) string {
		ingress := p.created(p.object(tlsIngress))
		for _, tls := range objects(nested(ingress, "spec")["tls"]) {
			slices.SortFunc(tls["hosts"].([]any), func(a, b any) int {
				if str(a) < str(b) {
					return -1
				}
				return 1
			})
		}
		ingress = p.created(ingress)
		if tls := objects(nested(ingress, "spec")["tls"]); len(tls) != 1 {
			return fmt.Sprintf("%d entries: %v", len(tls), tls)
		}
		return ""
	},
})

const dnsPolicy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: default-deny
  namespace: shop
  annotations: {netpol.acme.io/allow-dns: "true"}
spec:
  podSelector: {}
  policyTypes: [Ingress, Egress]
`

// allowDNS opens port 53 in policies that restrict egress and ask for it.
func allowDNS(decoder admission.Decoder) admission.HandlerFunc {
	opens := func(rule networkingv1.NetworkPolicyEgressRule, protocol corev1.Protocol) bool {
		if len(rule.To) > 0 {
			return false
		}
		return len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
			if p.Protocol == nil && protocol != corev1.ProtocolTCP || p.Protocol != nil && *p.Protocol != protocol {
				return false
			}
			switch {
			case p.Port == nil:
				return true
			case p.Port.Type == intstr.String:
				return false
			case p.EndPort == nil:
				return p.Port.IntVal == 53
			}
			return p.Port.IntVal <= 53 && 53 <= *p.EndPort
		})
	}
	return func(_ context.Context, req admission.Request) admission.Response {
		policy := &networkingv1.NetworkPolicy{}
		if err := decoder.Decode(req, policy); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if policy.Annotations["netpol.acme.io/allow-dns"] != "true" || !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			return admission.Allowed("")
		}
		var missing []networkingv1.NetworkPolicyPort
		for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
			if !slices.ContainsFunc(policy.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return opens(r, protocol) }) {
				port := intstr.FromInt32(53)
				missing = append(missing, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &port})
			}
		}
		if missing == nil {
			return admission.Allowed("DNS is open")
		}
		policy.Spec.Egress = append(policy.Spec.Egress, networkingv1.NetworkPolicyEgressRule{Ports: missing})
		raw, err := json.Marshal(policy)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(req.Object.Raw, raw)
	}
}

var _ = add(hookCase{
	Name:    "Z05c3-network-policy-dns",
	Summary: "The webhook appends a rule for DNS, unless the policy already opens port 53 in any form.",
	Why: "Rules are judged by what they allow, so sorted ports, rules split or merged by others, ranges and the default protocol are recognised. Only what is missing is appended. " +
		"Policies without the annotation, or that do not restrict egress, are left alone.",
	Webhook: register("dns.netpol.acme.io", "networking.k8s.io", "v1", "networkpolicies", create, update),
	New: func() http.Handler {
		return &admission.Webhook{Handler: allowDNS(admission.NewDecoder(clientgoscheme.Scheme))}
	},
	Samples: []string{dnsPolicy},
	Proof: func(p *prover) string {
		policy := p.created(p.object(dnsPolicy))
		egress := objects(nested(policy, "spec")["egress"])
		slices.Reverse(egress[0]["ports"].([]any))
		edited := p.updated(policy, policy)
		if n := len(objects(nested(edited, "spec")["egress"])); n != 1 {
			return fmt.Sprintf("%d rules", n)
		}
		return ""
	},
})
