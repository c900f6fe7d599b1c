// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

const logFormatPod = `
apiVersion: v1
kind: Pod
metadata:
  name: tracker
  namespace: logistics
  annotations: {logs.northwind.io/json: "true"}
spec:
  containers:
    - name: tracker
      image: registry.northwind.io/logistics/tracker:5.0.2
      args: ["serve", "--log-level=info"]
`

var _ = add(hookCase{
	Name:    "F02b1-flag-in-two-words",
	Summary: "The logging team wants JSON logs: the webhook appends --log-format=json to the args of Pods with an annotation, unless an argument starts with --log-format=.",
	Why:     "The same flag may be written as two arguments, by the author or by another webhook that splits flags. Then it is appended again, and wins over the author's format.",
	Webhook: register("logformat.northwind.io", "", "v1", "pods", create),
	Samples: []string{logFormatPod},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("metadata", "annotations", "logs.northwind.io/json")) != "true" {
				return nil
			}
		containers:
			for i, c := range objects(e.get("spec", "containers")) {
				args, _ := c["args"].([]any)
				if len(args) == 0 {
					continue // Args would replace the CMD of the image.
				}
				for _, arg := range args {
					if strings.HasPrefix(str(arg), "--log-format=") {
						continue containers
					}
				}
				e.push("--log-format=json", "spec", "containers", index(i), "args")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		object := p.created(p.object(logFormatPod))
		var args []any
		for _, arg := range reach(object, "spec", "containers", "0", "args").([]any) {
			for _, word := range strings.SplitN(str(arg), "=", 2) {
				args = append(args, word)
			}
		}
		reach(object, "spec", "containers", "0").(map[string]any)["args"] = args
		out := p.created(object)
		if got := fmt.Sprint(reach(out, "spec", "containers", "0", "args")); strings.Count(got, "--log-format") > 1 {
			return got
		}
		return ""
	},
})

const auditProperties = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: claims-config
  namespace: insurance
  labels: {northwind.io/runtime: java}
data:
  application.properties: |
    server.port=8080
    claims.region=eu
  banner.txt: "claims"
`

var _ = add(hookCase{
	Name:    "F02b2-property-line-as-text",
	Summary: "For the audit office, the webhook appends the line audit.enabled=true to the application.properties in ConfigMaps of Java services, unless that line is there.",
	Why:     "A property may be written with blanks or with a colon. If the author wrote it so, or another webhook formats the file, a second line is added, and the last line wins over the author's.",
	Webhook: onlyLabelled(register("audit.northwind.io", "", "v1", "configmaps", create, update), "northwind.io/runtime", "java"),
	Samples: []string{auditProperties},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			text, ok := e.get("data", "application.properties").(string)
			if !ok {
				return nil
			}
			for _, line := range strings.Split(text, "\n") {
				if strings.TrimSpace(line) == "audit.enabled=true" {
					return nil
				}
			}
			if text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			e.set(text+"audit.enabled=true\n", "data", "application.properties")
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(auditProperties))
		formatted := copyOf(live)
		text := str(reach(live, "data", "application.properties"))
		set(formatted, strings.ReplaceAll(text, "=", " = "), "data", "application.properties")
		out := str(reach(p.updated(live, formatted), "data", "application.properties"))
		if strings.Count(out, "audit.enabled") > 1 {
			return fmt.Sprintf("%q", out)
		}
		return ""
	},
})

const teamAttributes = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: routes, namespace: logistics}
spec:
  selector:
    matchLabels: {app: routes}
  template:
    metadata:
      labels: {app: routes, northwind.io/team: road}
    spec:
      containers:
        - name: routes
          image: registry.northwind.io/logistics/routes:2.2.0
          env:
            - {name: OTEL_RESOURCE_ATTRIBUTES, value: "service.name=routes,service.version=2.2.0"}
`

var _ = add(hookCase{
	Name:    "F02b3-team-pair-accumulates",
	Summary: "The tracing team wants the label of the team as a pair in OTEL_RESOURCE_ATTRIBUTES. The pair is appended unless exactly this pair is there.",
	Why:     "If the label gets another value while the variable stays, the list has two pairs for team. A team that the author or another webhook gave is overruled too.",
	Webhook: register("otelteam.northwind.io", "apps", "v1", "deployments", create, update),
	Samples: []string{teamAttributes},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			team := str(e.get("spec", "template", "metadata", "labels", "northwind.io/team"))
			if team == "" {
				return nil
			}
			pair := "team=" + team
			for i, c := range objects(e.get("spec", "template", "spec", "containers")) {
			variables:
				for j, v := range objects(c["env"]) {
					if str(v["name"]) != "OTEL_RESOURCE_ATTRIBUTES" || v["valueFrom"] != nil {
						continue
					}
					var pairs []string
					for _, have := range strings.Split(str(v["value"]), ",") {
						if have = strings.TrimSpace(have); have == pair {
							continue variables
						} else if have != "" {
							pairs = append(pairs, have)
						}
					}
					e.set(strings.Join(append(pairs, pair), ","), under(templateSpec, "containers", index(i), "env", index(j), "value")...)
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(teamAttributes))
		moved := copyOf(live)
		set(moved, "rail", "spec", "template", "metadata", "labels", "northwind.io/team")
		out := str(reach(p.updated(live, moved), "spec", "template", "spec", "containers", "0", "env", "0", "value"))
		if strings.Count(out, "team=") > 1 {
			return out
		}
		return ""
	},
})
