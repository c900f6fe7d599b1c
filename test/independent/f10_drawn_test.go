// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

const proxyEnvSample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: partner-sync, namespace: integrations}
spec:
  selector:
    matchLabels: {app: partner-sync}
  template:
    metadata:
      labels: {app: partner-sync}
      annotations: {egress.northwind.io/proxy: "true"}
    spec:
      containers:
        - name: sync
          image: registry.northwind.io/integrations/sync:3.3.1
          env:
            - {name: PARTNER, value: contoso}
`

var _ = add(hookCase{
	Name:    "F10b1-variables-in-map-order",
	Summary: "The network team wants the proxy variables in each container of annotated Deployments. The webhook ranges over a Go map and appends those that the container has not.",
	Why:     "The order of the variables is drawn in each call. When a pipeline replaces the Deployment by the author's manifest, the template differs and all pods are restarted.",
	Webhook: register("proxyenv.northwind.io", "apps", "v1", "deployments", create, update),
	Samples: []string{proxyEnvSample},
	New: func() http.Handler {
		variables := map[string]string{
			"HTTP_PROXY":  "http://proxy.northwind.example:3128",
			"HTTPS_PROXY": "http://proxy.northwind.example:3128",
			"FTP_PROXY":   "http://proxy.northwind.example:3129",
			"ALL_PROXY":   "socks5://proxy.northwind.example:1080",
		}
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "template", "metadata", "annotations", "egress.northwind.io/proxy")) != "true" {
				return nil
			}
			for i, c := range objects(e.get("spec", "template", "spec", "containers")) {
				have := map[string]bool{}
				for _, name := range names(c["env"]) {
					have[name] = true
				}
				for name, value := range variables {
					if !have[name] {
						e.push(map[string]any{"name": name, "value": value}, under(templateSpec, "containers", index(i), "env")...)
					}
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(proxyEnvSample))
		for range 200 {
			out := p.updated(live, p.object(proxyEnvSample))
			if !same(out, live) {
				path := under(templateSpec, "containers", "0", "env")
				return fmt.Sprint(names(reach(live, path...)), " becomes ", names(reach(out, path...)))
			}
		}
		return ""
	},
})

const labelService = `
apiVersion: v1
kind: Service
metadata: {name: returns, namespace: retail}
spec:
  selector: {app: returns}
  ports:
    - {name: http, port: 80, targetPort: 8080}
`

var _ = add(hookCase{
	Name:    "F10c1-labels-in-map-order",
	Summary: "The inventory team wants labels for region, stage and unit on all Services. The webhook ranges over a Go map and adds those that are absent.",
	Why:     "Only the order of the operations is drawn. Each sets a key of its own, after the map of labels has been added if need be, so the result is the same.",
	Webhook: notInSystem(register("inventory.northwind.io", "", "v1", "services", create, update)),
	Samples: []string{labelService},
	New: func() http.Handler {
		defaults := map[string]string{"northwind.io/region": "eu", "northwind.io/stage": "prod", "northwind.io/unit": "retail"}
		return serve(func(r *admissionv1.AdmissionRequest) ([]byte, error) {
			var service struct {
				Metadata *struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
			}
			if err := json.Unmarshal(r.Object.Raw, &service); err != nil {
				return nil, err
			}
			if service.Metadata == nil {
				return nil, nil
			}
			var ops []patchOp
			if service.Metadata.Labels == nil {
				ops = append(ops, patchOp{Op: "add", Path: "/metadata/labels", Value: map[string]string{}})
			}
			for key, value := range defaults {
				if _, there := service.Metadata.Labels[key]; !there {
					ops = append(ops, patchOp{Op: "add", Path: "/metadata/labels/" + escape(key), Value: value})
				}
			}
			return operations(ops)
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(labelService))
		for range 50 {
			if out := p.updated(live, p.object(labelService)); !same(out, live) {
				return "the author's manifest gives another result"
			}
		}
		for _, labels := range []any{nil, map[string]any{}, map[string]any{"northwind.io/stage": ""}} {
			object := p.object(labelService)
			set(object, labels, "metadata", "labels")
			out := nested(p.updated(live, object), "metadata", "labels")
			own, _ := labels.(map[string]any)
			if value, given := own["northwind.io/stage"]; len(out) != 3 || given && out["northwind.io/stage"] != value {
				return fmt.Sprint(out)
			}
		}
		return ""
	},
})

var databaseCRD = crdOf("data.northwind.io", "v1", "Database", "databases", `
            spec:
              type: object
              properties:
                version: {type: string}
                size: {type: string}
            status:
              type: object
              properties:
                currentVersion: {type: string}
                phase: {type: string}
`)

const databaseSample = `
apiVersion: data.northwind.io/v1
kind: Database
metadata: {name: ledger, namespace: finance}
spec:
  size: 200Gi
`

// upgraded is a Database that was moved to version 17 after its creation.
func upgraded(live map[string]any) map[string]any {
	live = copyOf(live)
	set(live, "17", "spec", "version")
	set(live, "17", "status", "currentVersion")
	return live
}

var _ = add(hookCase{
	Name:    "F10b2-status-of-the-new-object",
	Summary: "The database team fills in the version of a Database if it is absent: the one that runs according to the status, else the present default 16.",
	Why:     "The author's manifest has no status, so when it replaces a Database that runs version 17, the version becomes 16. The running version is known from the old object only.",
	Webhook: register("version.northwind.io", "data.northwind.io", "v1", "databases", create, update),
	Samples: []string{databaseSample},
	CRDs:    []string{databaseCRD},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "version")) != "" {
				return nil
			}
			version := str(e.get("status", "currentVersion"))
			if version == "" {
				version = "16"
			}
			e.set(version, "spec", "version")
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := upgraded(p.created(p.object(databaseSample)))
		if got := str(reach(p.updated(live, p.object(databaseSample)), "spec", "version")); got != "17" {
			return "a database of version 17 gets version " + got
		}
		return ""
	},
})

var _ = add(hookCase{
	Name:    "F10c2-version-of-the-old-object",
	Summary: "The database team fills in the version of a Database if it is absent: at CREATE the present default 16, at UPDATE the version that the old object has in its spec or, failing that, in its status.",
	Why:     "The author's manifest without a version never changes that of a running database. If the old object has none at all, nothing is guessed.",
	Webhook: register("version2.northwind.io", "data.northwind.io", "v1", "databases", create, update),
	Samples: []string{databaseSample},
	CRDs:    []string{databaseCRD},
	New: func() http.Handler {
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			if e.get("spec", "version") != nil {
				return nil
			}
			version := "16"
			if r.Operation == admissionv1.Update {
				old, err := edit(r.OldObject.Raw)
				if err != nil {
					return err
				}
				if version = str(old.get("spec", "version")); version == "" {
					version = str(old.get("status", "currentVersion"))
				}
			}
			if version != "" {
				e.set(version, "spec", "version")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := upgraded(p.created(p.object(databaseSample)))
		if got := str(reach(p.updated(live, p.object(databaseSample)), "spec", "version")); got != "17" {
			return "a database of version 17 gets version " + got
		}
		early := copyOf(live)
		set(early, nil, "spec", "version")
		if got := str(reach(p.updated(early, p.object(databaseSample)), "spec", "version")); got != "17" {
			return "the version of the old status is not used: " + got
		}
		asked := copyOf(live)
		set(asked, "18", "spec", "version")
		if got := str(reach(p.updated(live, asked), "spec", "version")); got != "18" {
			return "the author's version is not kept: " + got
		}
		for _, spec := range []any{nil, map[string]any{}} {
			object := p.object(databaseSample)
			object["spec"] = spec
			if got := str(reach(p.created(object), "spec", "version")); got != "16" {
				return "a sparse object is not filled"
			}
		}
		return ""
	},
})
