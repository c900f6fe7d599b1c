// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

const spotSample = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly-rates, namespace: pricing}
spec:
  schedule: "15 2 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          nodeSelector: {northwind.io/pool: spot}
          containers:
            - name: rates
              image: registry.northwind.io/pricing/rates:3.1.4
              env:
                - {name: RETRYABLE, value: "true"}
`

var _ = add(hookCase{
	Name:    "F01c1-spot-toleration",
	Summary: "For the cost team, CronJobs that select the spot pool and say RETRYABLE=true in a container get a toleration for spot nodes, unless they tolerate them already.",
	Why:     "Any toleration that covers the taint counts, whatever its form. If another webhook takes one of the two triggers away, the toleration simply stays.",
	Webhook: register("spot.northwind.io", "batch", "v1", "cronjobs", create, update),
	Samples: []string{spotSample},
	New: func() http.Handler {
		const taint = "northwind.io/spot"
		spec := []string{"spec", "jobTemplate", "spec", "template", "spec"}
		tolerates := func(t map[string]any) bool {
			key, operator, effect := str(t["key"]), str(t["operator"]), str(t["effect"])
			if effect != "" && effect != "NoSchedule" {
				return false
			}
			if operator == "Exists" {
				return key == "" || key == taint
			}
			return (operator == "" || operator == "Equal") && key == taint && str(t["value"]) == "true"
		}
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get(under(spec, "nodeSelector", "northwind.io/pool")...)) != "spot" {
				return nil
			}
			retryable := false
			for _, c := range objects(e.get(under(spec, "containers")...)) {
				for _, v := range objects(c["env"]) {
					retryable = retryable || str(v["name"]) == "RETRYABLE" && str(v["value"]) == "true"
				}
			}
			if !retryable {
				return nil
			}
			path := under(spec, "tolerations")
			for _, t := range objects(e.get(path...)) {
				if tolerates(t) {
					return nil
				}
			}
			e.push(map[string]any{"key": taint, "operator": "Exists", "effect": "NoSchedule"}, path...)
			return nil
		})
	},
	Proof: func(p *prover) string {
		path := []string{"spec", "jobTemplate", "spec", "template", "spec", "tolerations"}
		forms := []map[string]any{
			{"operator": "Exists"},
			{"key": "northwind.io/spot", "operator": "Exists"},
			{"key": "northwind.io/spot", "value": "true", "effect": "NoSchedule"},
			{"key": "northwind.io/spot", "operator": "Equal", "value": "true"},
		}
		for _, form := range forms {
			object := p.object(spotSample)
			set(object, []any{form}, path...)
			if out := p.created(object); len(objects(reach(out, path...))) != 1 {
				return fmt.Sprint("a second toleration beside ", form)
			}
		}
		live := p.created(p.object(spotSample))
		mirrored := copyOf(live)
		set(mirrored, map[string]any{}, "spec", "jobTemplate", "spec", "template", "spec", "nodeSelector")
		if out := p.updated(live, mirrored); len(objects(reach(out, path...))) != 1 {
			return "the toleration is lost or doubled without the trigger"
		}
		if out := p.updated(live, p.object(spotSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})

const restartSample = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: mailer
  namespace: crm
  annotations:
    ops.northwind.io/restart: CHG-20817
spec:
  replicas: 2
  selector:
    matchLabels: {app: mailer}
  template:
    metadata:
      labels: {app: mailer}
    spec:
      containers:
        - name: mailer
          image: registry.northwind.io/crm/mailer:0.14.2
`

var _ = add(hookCase{
	Name:    "F01c2-restart-request-is-moved",
	Summary: "For the on-call team, a restart request with a ticket number is moved from the Deployment's annotations to those of the pod template, so that the pods are restarted once per ticket.",
	Why:     "The request always wins over what the template has, so a request that comes back gives the same result, and a new ticket gives a new one. Nothing is counted or appended.",
	Webhook: register("restart.northwind.io", "apps", "v1", "deployments", create, update),
	Samples: []string{restartSample},
	New: func() http.Handler {
		const request, done = "ops.northwind.io/restart", "ops.northwind.io/restarted-for"
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			ticket := str(e.get("metadata", "annotations", request))
			if ticket == "" {
				return nil
			}
			if str(e.get("spec", "template", "metadata", "annotations", done)) != ticket {
				e.set(ticket, "spec", "template", "metadata", "annotations", done)
			}
			e.drop("metadata", "annotations", request)
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(restartSample))
		again := copyOf(live)
		set(again, "CHG-20817", "metadata", "annotations", "ops.northwind.io/restart")
		if out := p.updated(live, again); !same(out, live) {
			return "the same request restarts the pods again"
		}
		set(again, "CHG-20900", "metadata", "annotations", "ops.northwind.io/restart")
		out := p.updated(live, again)
		if got := str(reach(out, "spec", "template", "metadata", "annotations", "ops.northwind.io/restarted-for")); got != "CHG-20900" {
			return "the new ticket is lost: " + got
		}
		if out := p.updated(live, p.object(restartSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})

const grpcSample = `
apiVersion: v1
kind: Service
metadata:
  name: inventory
  namespace: retail
  annotations: {mesh.northwind.io/grpc: "true"}
spec:
  selector: {app: inventory}
  ports:
    - {name: http, port: 80, targetPort: 8080}
    - {name: grpc, port: 9000, targetPort: 9000}
    - {name: grpc-admin, port: 9001, targetPort: 9001, appProtocol: northwind.io/admin}
`

var _ = add(hookCase{
	Name:    "F01c3-grpc-app-protocol",
	Summary: "For the mesh team, ports called grpc or grpc-... of annotated Services get the appProtocol of HTTP/2, if they have none.",
	Why:     "Each port is looked at on its own, and a value that is there is kept. Ports that come later or move in the list are treated alike.",
	Webhook: register("grpc.northwind.io", "", "v1", "services", create, update),
	Samples: []string{grpcSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("metadata", "annotations", "mesh.northwind.io/grpc")) != "true" {
				return nil
			}
			for i, port := range objects(e.get("spec", "ports")) {
				name := str(port["name"])
				if (name == "grpc" || strings.HasPrefix(name, "grpc-")) && port["appProtocol"] == nil {
					e.set("kubernetes.io/h2c", "spec", "ports", index(i), "appProtocol")
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(grpcSample))
		if str(reach(live, "spec", "ports", "2", "appProtocol")) != "northwind.io/admin" {
			return "the author's appProtocol is overwritten"
		}
		// Another webhook puts a port first, and a copy of a port last.
		changed := copyOf(live)
		ports := changed["spec"].(map[string]any)["ports"].([]any)
		first := map[string]any{"name": "grpc-health", "port": 9100}
		last := map[string]any{"name": "grpc-copy", "port": 9002, "appProtocol": "kubernetes.io/h2c"}
		changed["spec"].(map[string]any)["ports"] = append(append([]any{first}, ports...), last)
		out := p.updated(live, changed)
		if str(reach(out, "spec", "ports", "0", "appProtocol")) != "kubernetes.io/h2c" || reach(out, "spec", "ports", "1", "appProtocol") != nil {
			return "the wrong port is changed"
		}
		if out := p.updated(live, p.object(grpcSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})
