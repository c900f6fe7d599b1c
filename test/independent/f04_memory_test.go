// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"net/http"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"
)

const migrateSample = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: accounts
  namespace: banking
  labels: {db.northwind.io/migrate: "true"}
spec:
  selector:
    matchLabels: {app: accounts}
  template:
    metadata:
      labels: {app: accounts}
    spec:
      containers:
        - name: accounts
          image: registry.northwind.io/banking/accounts:8.0.0
`

var _ = add(hookCase{
	Name:    "F04b1-migrates-first-time-only",
	Summary: "The database team adds an init container to a new Deployment that brings its schema up to date. As the schema is needed once, the webhook remembers which Deployments it has seen.",
	Why:     "A Deployment that is deleted and created again gets no init container, nor one that was created with dry-run before. Another instance of the server decides otherwise.",
	Webhook: onlyLabelled(register("migrate.northwind.io", "apps", "v1", "deployments", create), "db.northwind.io/migrate", "true"),
	Samples: []string{migrateSample},
	New: func() http.Handler {
		var seen sync.Map
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			if _, known := seen.LoadOrStore(r.Namespace+"/"+r.Name, true); known {
				return nil
			}
			path := under(templateSpec, "initContainers")
			for _, c := range objects(e.get(path...)) {
				if str(c["name"]) == "schema" {
					return nil
				}
			}
			e.push(map[string]any{
				"name": "schema", "image": "registry.northwind.io/database/migrate:4.17.0", "args": []any{"up"},
			}, path...)
			return nil
		})
	},
	Proof: func(p *prover) string {
		first := p.created(p.object(migrateSample))
		// It is deleted, and created again.
		second := p.created(p.object(migrateSample))
		if !same(first, second) {
			return "the same manifest gives no init container the second time"
		}
		return ""
	},
})

var gameServerCRD = crdOf("games.northwind.io", "v1", "GameServer", "gameservers", `
            spec:
              type: object
              properties:
                map: {type: string}
                players: {type: integer}
                hostPort: {type: integer, minimum: 1, maximum: 65535}
`)

const gameServerSample = `
apiVersion: games.northwind.io/v1
kind: GameServer
metadata: {name: arena-1, namespace: games}
spec:
  map: arena
  players: 16
`

var _ = add(hookCase{
	Name:    "F04b2-port-pool-in-memory",
	Summary: "The games team wants a host port of its own for each GameServer. The webhook hands out the next one of a pool, and remembers which object got which.",
	Why:     "The pool is in memory. After a restart, or in a second replica, a port is handed out twice, and the author's manifest gets another port at an UPDATE.",
	Webhook: register("hostport.northwind.io", "games.northwind.io", "v1", "gameservers", create, update),
	Samples: []string{gameServerSample},
	CRDs:    []string{gameServerCRD},
	New: func() http.Handler {
		var mu sync.Mutex
		assigned, next := map[string]int{}, 30000
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			if e.get("spec", "hostPort") != nil {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			key := r.Namespace + "/" + r.Name
			port, ok := assigned[key]
			if !ok {
				port = next
				assigned[key] = port
				next++
			}
			e.set(port, "spec", "hostPort")
			return nil
		})
	},
	Proof: func(p *prover) string {
		named := func(name string) map[string]any {
			object := p.object(gameServerSample)
			set(object, name, "metadata", "name")
			return object
		}
		p.created(named("arena-1"))
		live := p.created(named("arena-2"))
		p.restart()
		out := p.updated(live, named("arena-2"))
		if a, b := reach(live, "spec", "hostPort"), reach(out, "spec", "hostPort"); !same(a, b) {
			return fmt.Sprintf("the port changes from %v to %v", a, b)
		}
		return ""
	},
})

const budgetSample = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: gateway
  namespace: web
  annotations: {drain.northwind.io/policy: fast}
spec:
  minAvailable: 50%
  selector:
    matchLabels: {app: gateway}
`

var _ = add(hookCase{
	Name:    "F04c1-counts-without-use",
	Summary: "The node team wants broken pods not to block a drain: annotated PodDisruptionBudgets get unhealthyPodEvictionPolicy AlwaysAllow if they have none. The webhook counts its calls by name for the log.",
	Why:     "The counters in memory go to the log only. What the webhook answers depends on the object of the request alone.",
	Webhook: register("drain.northwind.io", "policy", "v1", "poddisruptionbudgets", create, update),
	Samples: []string{budgetSample},
	New: func() http.Handler {
		var mu sync.Mutex
		calls := map[string]int{}
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			mu.Lock()
			calls[r.Namespace+"/"+r.Name]++
			n := calls[r.Namespace+"/"+r.Name]
			mu.Unlock()
			klog.V(4).InfoS("drain policy", "namespace", r.Namespace, "name", r.Name, "call", n)
			if str(e.get("metadata", "annotations", "drain.northwind.io/policy")) == "fast" && e.get("spec", "unhealthyPodEvictionPolicy") == nil {
				e.set("AlwaysAllow", "spec", "unhealthyPodEvictionPolicy")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(budgetSample))
		for i := range 5 {
			if out := p.created(p.object(budgetSample)); !same(out, live) {
				return fmt.Sprint("another answer in call ", i+2)
			}
		}
		p.restart()
		if out := p.updated(live, p.object(budgetSample)); !same(out, live) {
			return "another answer after a restart"
		}
		kept := copyOf(live)
		set(kept, "IfHealthyBudget", "spec", "unhealthyPodEvictionPolicy")
		if out := p.updated(live, kept); !same(out, kept) {
			return "the author's policy is overwritten"
		}
		return ""
	},
})

const northwindClaimSample = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: scans, namespace: radiology}
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests: {storage: 50Gi}
`

var _ = add(hookCase{
	Name:    "F04c2-label-of-this-namespace",
	Summary: "The storage team bills claims by the label storage.northwind.io/namespace, which the webhook owns: it always holds the namespace of the request.",
	Why:     "Nothing is remembered or kept, so a claim that was exported from one namespace and created in another gets the right label. The namespace comes from the request, as metadata.namespace may be empty.",
	Webhook: notInSystem(register("billing.northwind.io", "", "v1", "persistentvolumeclaims", create, update)),
	Samples: []string{northwindClaimSample},
	New: func() http.Handler {
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			const key = "storage.northwind.io/namespace"
			if r.Namespace != "" && str(e.get("metadata", "labels", key)) != r.Namespace {
				e.set(r.Namespace, "metadata", "labels", key)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(northwindClaimSample))
		exported := copyOf(live)
		set(exported, "cardiology", "metadata", "namespace")
		if got := str(reach(p.created(exported), "metadata", "labels", "storage.northwind.io/namespace")); got != "cardiology" {
			return "the copy is billed to " + got
		}
		if out := p.updated(live, p.object(northwindClaimSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})
