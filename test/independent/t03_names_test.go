// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const t03IngressSample = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: web}
spec:
  ingressClassName: nginx
  rules:
    - host: shop.eu.fjord.example
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service: {name: shop, port: {number: 80}}
`

func t03WithHost(object map[string]any, host string) map[string]any {
	object = copyOf(object)
	spec := object["spec"].(map[string]any)
	rules := spec["rules"].([]any)
	rule := copyOf(rules[0].(map[string]any))
	rule["host"] = host
	spec["rules"] = append(rules, rule)
	return object
}

// t03Covered reports whether an entry of the TLS list has the host.
func t03Covered(tls map[string]any, host string) bool {
	hosts, _ := tls["hosts"].([]any)
	_, parent, _ := strings.Cut(host, ".")
	return len(hosts) == 0 || slices.Contains(hosts, any(host)) || slices.Contains(hosts, any("*."+parent))
}

func t03Proof(p *prover) string {
	live := p.created(p.object(t03IngressSample))
	out := p.updated(live, t03WithHost(live, "shop-eu.fjord.example"))
	for _, host := range []string{"shop.eu.fjord.example", "shop-eu.fjord.example"} {
		if !slices.ContainsFunc(objects(reach(out, "spec", "tls")), func(tls map[string]any) bool { return t03Covered(tls, host) }) {
			return "no certificate for " + host
		}
	}
	return ""
}

var _ = add(hookCase{
	Name:    "T03b1-tls-secret-by-dashed-host",
	Summary: "Each host of an Ingress gets a TLS entry. Its secret is called after the host, with dashes for dots. An entry with this secret means that the host is done.",
	Why:     "shop.eu.fjord.example and shop-eu.fjord.example give the same name. If the second is added later, the webhook finds the secret of the first and adds no entry, so the host has no certificate.",
	Webhook: register("tls.fjord.example", "networking.k8s.io", "v1", "ingresses", create, update),
	Samples: []string{t03IngressSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			for _, rule := range objects(e.get("spec", "rules")) {
				host := str(rule["host"])
				if host == "" {
					continue
				}
				secret := strings.NewReplacer(".", "-", "*", "wildcard").Replace(host) + "-tls"
				if !slices.ContainsFunc(objects(e.get("spec", "tls")), func(tls map[string]any) bool { return tls["secretName"] == secret }) {
					e.push(map[string]any{"hosts": []any{host}, "secretName": secret}, "spec", "tls")
				}
			}
			return nil
		})
	},
	Proof: t03Proof,
})

// t03Secret returns the name of the secret for a host.
func t03Secret(host string) string {
	sum := sha256.Sum256([]byte(host))
	name := strings.NewReplacer(".", "-", "*", "wildcard").Replace(host)
	return name[:min(len(name), 40)] + "-" + hex.EncodeToString(sum[:6])
}

var _ = add(hookCase{
	Name:    "T03c1-tls-secret-by-hash",
	Summary: "Each host of an Ingress that no TLS entry covers gets one, with a secret called after the host and its hash. Entries of the webhook for hosts that are gone are removed.",
	Why:     "The check is for the host and not for the name, and wildcards count. The names are derived from the host alone and do not collide. The author's entries are never changed.",
	Webhook: register("tls2.fjord.example", "networking.k8s.io", "v1", "ingresses", create, update),
	Samples: []string{t03IngressSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			var hosts []string
			for _, rule := range objects(e.get("spec", "rules")) {
				if host := str(rule["host"]); host != "" {
					hosts = append(hosts, host)
				}
			}
			have := objects(e.get("spec", "tls"))
			var want []map[string]any
			for _, tls := range have {
				listed, _ := tls["hosts"].([]any)
				if len(listed) == 1 && tls["secretName"] == t03Secret(str(listed[0])) && !slices.Contains(hosts, str(listed[0])) {
					continue
				}
				want = append(want, tls)
			}
			changed := len(want) != len(have)
			for _, host := range hosts {
				if !slices.ContainsFunc(want, func(tls map[string]any) bool { return t03Covered(tls, host) }) {
					want = append(want, map[string]any{"hosts": []any{host}, "secretName": t03Secret(host)})
					changed = true
				}
			}
			switch {
			case changed && len(want) == 0:
				e.drop("spec", "tls")
			case changed:
				e.set(want, "spec", "tls")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		if seen := t03Proof(p); seen != "" {
			return seen
		}
		live := p.created(p.object(t03IngressSample))
		if out := p.updated(live, p.object(t03IngressSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		two := p.updated(live, t03WithHost(live, "a.fjord.example"))
		if len(objects(reach(two, "spec", "tls"))) != 2 {
			return "the new host has no entry"
		}
		one := copyOf(two)
		one["spec"].(map[string]any)["rules"] = one["spec"].(map[string]any)["rules"].([]any)[:1]
		if out := p.updated(two, one); !same(out, live) {
			return "the entry for the host that is gone stays"
		}
		wild := copyOf(p.object(t03IngressSample))
		set(wild, []any{map[string]any{"hosts": []any{"*.eu.fjord.example"}, "secretName": "eu"}}, "spec", "tls")
		if out := p.created(wild); !same(out, wild) {
			return "an entry beside the wildcard"
		}
		return ""
	},
})

const t03ExporterSample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  replicas: 1
  selector:
    matchLabels: {app: cart}
  template:
    metadata:
      labels: {app: cart}
      annotations: {metrics.fjord.example/exporter: statsd}
    spec:
      containers:
        - name: cart
          image: registry.fjord.example/shop/cart:3.3.1
          ports:
            - {name: http, containerPort: 8080}
            - {name: admin, containerPort: 9102}
`

type t03Exporter struct{ decoder admission.Decoder }

func (x *t03Exporter) Handle(_ context.Context, req admission.Request) admission.Response {
	d := &appsv1.Deployment{}
	if err := x.decoder.Decode(req, d); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if d.Spec.Template.Annotations["metrics.fjord.example/exporter"] != "statsd" {
		return admission.Allowed("")
	}
	containers := d.Spec.Template.Spec.Containers
	taken := map[int32]bool{}
	at := len(containers)
	for i, c := range containers {
		if c.Name == "statsd-exporter" {
			at = i
			continue
		}
		for _, port := range c.Ports {
			taken[port.ContainerPort] = true
		}
	}
	for _, c := range d.Spec.Template.Spec.InitContainers { // sidecars keep running beside the containers
		for _, port := range c.Ports {
			taken[port.ContainerPort] = true
		}
	}
	if at == len(containers) {
		containers = append(containers, corev1.Container{Name: "statsd-exporter", Image: "registry.fjord.example/statsd-exporter:0.26"})
	}
	number := int32(9102)
	for taken[number] {
		number++
	}
	c := &containers[at]
	if i := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "exporter" }); i >= 0 {
		c.Ports[i].ContainerPort = number
	} else {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: "exporter", ContainerPort: number, Protocol: corev1.ProtocolTCP})
	}
	variable := corev1.EnvVar{Name: "EXPORTER_PORT", Value: strconv.Itoa(int(number))}
	if i := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == variable.Name }); i >= 0 {
		c.Env[i] = variable
	} else {
		c.Env = append(c.Env, variable)
	}
	d.Spec.Template.Spec.Containers = containers
	d.Spec.Template.Annotations["metrics.fjord.example/port"] = variable.Value
	raw, err := json.Marshal(d)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, raw)
}

var _ = add(hookCase{
	Name:    "T03c2-exporter-free-port",
	Summary: "Annotated Deployments get an exporter on the lowest port from 9102 that no other container has. The port is in the container, in a variable and in an annotation.",
	Why:     "The port is derived in each call from the ports of the other containers, and its own is not counted. All three places are written, not appended to. A container that takes the port later makes the exporter move once.",
	Webhook: register("exporter.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t03ExporterSample},
	New: func() http.Handler {
		return &admission.Webhook{Handler: &t03Exporter{admission.NewDecoder(clientgoscheme.Scheme)}}
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t03ExporterSample))
		ports := func(object map[string]any) string {
			var all []any
			for _, c := range objects(reach(object, "spec", "template", "spec", "containers")) {
				for _, port := range objects(c["ports"]) {
					all = append(all, port["containerPort"])
				}
			}
			return fmt.Sprintf("%v %v", all, reach(object, "spec", "template", "metadata", "annotations", "metrics.fjord.example/port"))
		}
		if got := ports(live); got != "[8080 9102 9103] 9103" {
			return got
		}
		front := p.updated(live, withFront(live, map[string]any{"name": "late", "image": "late:1", "ports": []any{map[string]any{"containerPort": 9103}}}))
		if got := ports(front); got != "[9103 8080 9102 9104] 9104" {
			return got
		}
		if again := p.updated(front, front); !same(again, front) {
			return "it moves again"
		}
		if out := p.updated(front, p.object(t03ExporterSample)); ports(out) != ports(live) {
			return "the author's manifest gives another port"
		}
		return ""
	},
})
