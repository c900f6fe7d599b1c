// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

const logDirsSample = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ledger, namespace: finance}
spec:
  serviceName: ledger
  selector:
    matchLabels: {app: ledger}
  template:
    metadata:
      labels: {app: ledger}
      annotations: {logs.northwind.io/files: "true"}
    spec:
      containers:
        - name: ledger
          image: registry.northwind.io/finance/ledger:11.0.3
        - name: exporter
          image: registry.northwind.io/finance/exporter:1.2.0
`

// addLogVolume adds the volume for files of logs, unless the pods have it.
func addLogVolume(e *editor) {
	for _, name := range names(e.get("spec", "template", "spec", "volumes")) {
		if name == "northwind-logs" {
			return
		}
	}
	for _, claim := range objects(e.get("spec", "volumeClaimTemplates")) {
		if str(nested(claim, "metadata")["name"]) == "northwind-logs" {
			return
		}
	}
	e.push(map[string]any{"name": "northwind-logs", "emptyDir": map[string]any{"sizeLimit": "1Gi"}}, under(templateSpec, "volumes")...)
}

// withFront puts a container before the others.
func withFront(object map[string]any, container map[string]any) map[string]any {
	object = copyOf(object)
	spec := reach(object, templateSpec...).(map[string]any)
	spec["containers"] = append([]any{container}, spec["containers"].([]any)...)
	return object
}

// sharedDirs returns text about a directory that two containers use.
func sharedDirs(object map[string]any) string {
	used := map[string]string{}
	for _, c := range objects(reach(object, "spec", "template", "spec", "containers")) {
		for _, m := range objects(c["volumeMounts"]) {
			if str(m["name"]) != "northwind-logs" {
				continue
			}
			if other, taken := used[str(m["subPath"])]; taken {
				return fmt.Sprintf("%s and %v both write to %s", other, c["name"], m["subPath"])
			}
			used[str(m["subPath"])] = str(c["name"])
		}
	}
	return ""
}

var _ = add(hookCase{
	Name:    "F06b1-log-directory-by-index",
	Summary: "The logging team collects files: each container of an annotated StatefulSet gets a directory of a shared volume at /var/log/app. The directory is called after the container's place in the list.",
	Why:     "If another webhook puts a container first, the newcomer gets the directory that the former first container has. Both write to the same files.",
	Webhook: register("logdirs.northwind.io", "apps", "v1", "statefulsets", create, update),
	Samples: []string{logDirsSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "template", "metadata", "annotations", "logs.northwind.io/files")) != "true" {
				return nil
			}
		containers:
			for i, c := range objects(e.get("spec", "template", "spec", "containers")) {
				for _, m := range objects(c["volumeMounts"]) {
					if path.Clean(str(m["mountPath"])) == "/var/log/app" {
						continue containers
					}
				}
				e.push(map[string]any{"name": "northwind-logs", "mountPath": "/var/log/app", "subPath": fmt.Sprintf("c%d", i)},
					under(templateSpec, "containers", index(i), "volumeMounts")...)
				addLogVolume(e)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(logDirsSample))
		return sharedDirs(p.updated(live, withFront(live, map[string]any{"name": "proxy", "image": "registry.northwind.io/mesh/proxy:1.30"})))
	},
})

var _ = add(hookCase{
	Name:    "F06c1-log-directory-by-name",
	Summary: "As the logging team's other webhook for log directories in StatefulSets, but a directory is called after its container. In mounts of its own volume, the webhook keeps it so.",
	Why:     "Names of containers are unique. A container that is inserted gets a directory of its own, and so does a copy of a container, which brings the directory of the original along.",
	Webhook: register("logdirs2.northwind.io", "apps", "v1", "statefulsets", create, update),
	Samples: []string{logDirsSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "template", "metadata", "annotations", "logs.northwind.io/files")) != "true" {
				return nil
			}
		containers:
			for i, c := range objects(e.get("spec", "template", "spec", "containers")) {
				name := str(c["name"])
				if name == "" {
					continue
				}
				mounts := under(templateSpec, "containers", index(i), "volumeMounts")
				for j, m := range objects(c["volumeMounts"]) {
					if path.Clean(str(m["mountPath"])) != "/var/log/app" {
						continue
					}
					if str(m["name"]) == "northwind-logs" {
						addLogVolume(e)
						if str(m["subPathExpr"]) == "" && str(m["subPath"]) != name {
							e.set(name, under(mounts, index(j), "subPath")...)
						}
					}
					continue containers
				}
				e.push(map[string]any{"name": "northwind-logs", "mountPath": "/var/log/app", "subPath": name}, mounts...)
				addLogVolume(e)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(logDirsSample))
		front := p.updated(live, withFront(live, map[string]any{"name": "proxy", "image": "registry.northwind.io/mesh/proxy:1.30"}))
		if shared := sharedDirs(front); shared != "" {
			return shared
		}
		twin := copyOf(reach(live, "spec", "template", "spec", "containers", "0").(map[string]any))
		twin["name"] = "ledger-debug"
		copied := p.updated(live, withFront(live, twin))
		if shared := sharedDirs(copied); shared != "" {
			return shared
		}
		if n := len(objects(reach(copied, "spec", "template", "spec", "volumes"))); n != 1 {
			return fmt.Sprint(n, " volumes")
		}
		removed := copyOf(live)
		reach(removed, templateSpec...).(map[string]any)["volumes"] = nil
		if out := p.updated(live, removed); !same(out, live) {
			return "the volume is not restored for the mounts"
		}
		own := p.object(logDirsSample)
		reach(own, "spec", "template", "spec", "containers", "0").(map[string]any)["volumeMounts"] = []any{map[string]any{"name": "mine", "mountPath": "/var/log/app/"}}
		if got := objects(reach(p.created(own), "spec", "template", "spec", "containers", "0", "volumeMounts")); len(got) != 1 {
			return "a second mount at the author's path"
		}
		return ""
	},
})

const shopIngress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  namespace: web
  annotations: {edge.northwind.io/health: "true"}
spec:
  ingressClassName: nginx
  rules:
    - host: shop.northwind.example
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service: {name: shop, port: {number: 80}}
`

var healthPath = map[string]any{
	"path": "/healthz", "pathType": "Exact",
	"backend": map[string]any{"service": map[string]any{"name": "health", "port": map[string]any{"number": 8080}}},
}

func hasHealthPath(rule map[string]any) bool {
	for _, p := range objects(nested(rule, "http")["paths"]) {
		if strings.TrimRight(str(p["path"]), "/") == "/healthz" {
			return true
		}
	}
	return false
}

// withRule puts a rule for another host before the others.
func withRule(object map[string]any) map[string]any {
	object = copyOf(object)
	spec := object["spec"].(map[string]any)
	rules := spec["rules"].([]any)
	canary := copyOf(rules[0].(map[string]any))
	canary["host"] = "canary.northwind.example"
	canary["http"].(map[string]any)["paths"] = canary["http"].(map[string]any)["paths"].([]any)[:1]
	spec["rules"] = append([]any{canary}, rules...)
	return object
}

var _ = add(hookCase{
	Name:    "F06b2-health-path-in-first-rule",
	Summary: "The edge team checks each Ingress from outside once: the webhook appends a path /healthz to the first rule, unless that rule has it.",
	Why:     "If another webhook puts a rule first or sorts the rules, the path is appended again to the new first rule, and the one before stays as a leftover.",
	Webhook: register("health.northwind.io", "networking.k8s.io", "v1", "ingresses", create, update),
	Samples: []string{shopIngress},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			first, _ := e.get("spec", "rules", "0").(map[string]any)
			if str(e.get("metadata", "annotations", "edge.northwind.io/health")) != "true" || nested(first, "http") == nil || hasHealthPath(first) {
				return nil
			}
			e.push(healthPath, "spec", "rules", "0", "http", "paths")
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(shopIngress))
		out := p.updated(live, withRule(live))
		n := 0
		for _, rule := range objects(reach(out, "spec", "rules")) {
			if hasHealthPath(rule) {
				n++
			}
		}
		if n != 1 {
			return fmt.Sprint(n, " rules have the path that should be there once")
		}
		return ""
	},
})

var _ = add(hookCase{
	Name:    "F06c2-health-path-in-each-rule",
	Summary: "The edge team checks each host of an Ingress from outside: the webhook appends a path /healthz to each rule that has paths but not this one.",
	Why:     "No rule is special, so the order does not matter. Rules that come later or are copied get the path once.",
	Webhook: register("health2.northwind.io", "networking.k8s.io", "v1", "ingresses", create, update),
	Samples: []string{shopIngress},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("metadata", "annotations", "edge.northwind.io/health")) != "true" {
				return nil
			}
			for i, rule := range objects(e.get("spec", "rules")) {
				if nested(rule, "http") != nil && !hasHealthPath(rule) {
					e.push(healthPath, "spec", "rules", index(i), "http", "paths")
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(shopIngress))
		out := p.updated(live, withRule(live))
		rules := objects(reach(out, "spec", "rules"))
		if len(rules) != 2 || !hasHealthPath(rules[0]) || !same(rules[1], reach(live, "spec", "rules", "0")) {
			return fmt.Sprint(rules)
		}
		if out := p.updated(live, p.object(shopIngress)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})
