// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"encoding/base64"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

const spreadSample = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: storefront
  namespace: retail
  annotations:
    northwind.io/spread: zone
spec:
  replicas: 4
  selector:
    matchLabels: {app: storefront}
  template:
    metadata:
      labels: {app: storefront}
    spec:
      containers:
        - name: web
          image: registry.northwind.io/retail/storefront:4.2.0
          ports:
            - {name: http, containerPort: 8080}
`

var _ = add(hookCase{
	Name:    "F01b1-moved-spread-key",
	Summary: "For the SRE team, Deployments that ask for it are spread over zones or hosts. The old annotation is renamed to the new one, and a new one that is already there wins.",
	Why:     "The renamed annotation stays in the cluster. An author who changes the old annotation in the manifest and applies it loses the change.",
	Webhook: register("spread.northwind.io", "apps", "v1", "deployments", create, update),
	Samples: []string{spreadSample},
	New: func() http.Handler {
		const before, now = "northwind.io/spread", "placement.northwind.io/spread"
		keys := map[string]string{"zone": "topology.kubernetes.io/zone", "host": "kubernetes.io/hostname"}
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			annotations := nested(e.root, "metadata", "annotations")
			if old, ok := annotations[before]; ok {
				if _, taken := annotations[now]; !taken {
					e.set(old, "metadata", "annotations", now)
				}
				e.drop("metadata", "annotations", before)
			}
			key := keys[str(annotations[now])]
			if key == "" {
				return nil
			}
			path := under(templateSpec, "topologySpreadConstraints")
			for _, c := range objects(e.get(path...)) {
				if str(c["topologyKey"]) == key {
					return nil
				}
			}
			e.push(map[string]any{
				"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway",
				"labelSelector": e.get("spec", "selector"),
			}, path...)
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(spreadSample))
		// The author changes zone to host, and applies: what the webhook has added stays.
		applied := copyOf(live)
		set(applied, "host", "metadata", "annotations", "northwind.io/spread")
		out := p.updated(live, applied)
		for _, c := range objects(reach(out, "spec", "template", "spec", "topologySpreadConstraints")) {
			if str(c["topologyKey"]) == "kubernetes.io/hostname" {
				return ""
			}
		}
		return fmt.Sprint("the author's new value is gone: ", reach(out, "metadata", "annotations"))
	},
})

const gatewaySample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: quotes, namespace: trading}
spec:
  selector:
    matchLabels: {app: quotes}
  template:
    metadata:
      labels: {app: quotes}
      annotations: {gateway.northwind.io/inject: "true"}
    spec:
      containers:
        - name: quotes
          image: registry.northwind.io/trading/quotes:1.9.1
          ports:
            - {name: http, containerPort: 8080}
            - {name: metrics, containerPort: 9090}
`

var _ = add(hookCase{
	Name:    "F01b2-renamed-port-comes-back",
	Summary: "The security team puts a gateway before each application: it takes over the port name http, and the application's port is renamed. If the gateway is there, all is taken as done.",
	Why:     "When the author applies the manifest again, the application's port is called http again and the gateway is still there. Then a Service with targetPort http goes around the gateway.",
	Webhook: register("gateway.northwind.io", "apps", "v1", "deployments", create, update),
	Samples: []string{gatewaySample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "template", "metadata", "annotations", "gateway.northwind.io/inject")) != "true" {
				return nil
			}
			path := under(templateSpec, "containers")
			containers := objects(e.get(path...))
			for _, c := range containers {
				if str(c["name"]) == "gateway" {
					return nil
				}
			}
			var upstream any
			for i, c := range containers {
				for j, port := range objects(c["ports"]) {
					if str(port["name"]) == "http" {
						e.set("app-http", under(path, index(i), "ports", index(j), "name")...)
						upstream = port["containerPort"]
					}
				}
			}
			if upstream != nil {
				e.push(map[string]any{
					"name": "gateway", "image": "registry.northwind.io/security/gateway:2.3.0",
					"args":  []any{fmt.Sprintf("--upstream=127.0.0.1:%v", upstream)},
					"ports": []any{map[string]any{"name": "http", "containerPort": 15080, "protocol": "TCP"}},
				}, path...)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(gatewaySample))
		// kubectl apply merges containers by name and ports by number.
		applied := copyOf(live)
		reach(applied, "spec", "template", "spec", "containers", "0", "ports", "0").(map[string]any)["name"] = "http"
		out := p.updated(live, applied)
		if str(reach(out, "spec", "template", "spec", "containers", "0", "ports", "0", "name")) == "http" {
			return "the application and the gateway have a port called http"
		}
		return ""
	},
})

var _ = add(hookCase{
	Name:    "F01b3-label-means-still-encoded",
	Summary: "Secrets from an old export tool are encoded twice. For the finance team, the webhook decodes those with a certain label once more, and removes the label.",
	Why:     "Another webhook that copies labels from the namespace, or a user with kubectl label, sets the label again. Then a password that happens to be valid base64 is decoded a second time, and others are denied.",
	Webhook: register("decode.northwind.io", "", "v1", "secrets", create, update),
	Samples: []string{encodedTwice()},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("metadata", "labels", "secrets.northwind.io/encoding")) != "base64" {
				return nil
			}
			for key, value := range nested(e.root, "data") {
				outer, err := base64.StdEncoding.DecodeString(str(value))
				if err != nil {
					return fmt.Errorf("data.%s: %w", key, err)
				}
				inner, err := base64.StdEncoding.DecodeString(string(outer))
				if err != nil {
					return fmt.Errorf("data.%s is not encoded twice: %w", key, err)
				}
				e.set(base64.StdEncoding.EncodeToString(inner), "data", key)
			}
			e.drop("metadata", "labels", "secrets.northwind.io/encoding")
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(encodedTwice()))
		labelled := copyOf(live)
		set(labelled, "base64", "metadata", "labels", "secrets.northwind.io/encoding")
		out, err := p.update(live, labelled)
		if err != nil {
			return err.Error()
		}
		if !same(out["data"], live["data"]) {
			return fmt.Sprintf("the password changes from %v to %v", live["data"], out["data"])
		}
		return ""
	},
})

// encodedTwice has the password Tr0ub4dor3Xk as the old export tool wrote it.
func encodedTwice() string {
	twice := base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("Tr0ub4dor3Xk"))))
	return `
apiVersion: v1
kind: Secret
metadata:
  name: ledger-db
  namespace: finance
  labels:
    app: ledger
    secrets.northwind.io/encoding: base64
type: Opaque
data:
  password: ` + twice + "\n"
}
