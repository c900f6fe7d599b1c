// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
)

const t09MeshSample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: catalog, namespace: shop}
spec:
  replicas: 2
  selector:
    matchLabels: {app: catalog}
  template:
    metadata:
      labels: {app: catalog, mesh.fjord.example/inject: enabled}
    spec:
      containers:
        - name: catalog
          image: registry.fjord.example/shop/catalog:15.2
`

func t09Images(object map[string]any) map[string]string {
	out := map[string]string{}
	for _, c := range objects(reach(object, "spec", "template", "spec", "containers")) {
		if name := str(c["name"]); name != "mesh-proxy" {
			out[name] = str(c["image"])
		}
	}
	return out
}

var _ = add(hookCase{
	Name:    "T09b1-skip-when-images-are-same",
	Summary: "Labelled Deployments get a container of the mesh. To save work, an UPDATE in which the author's images are the same as before is skipped.",
	Why:     "An UPDATE with the author's original manifest has the same images, but not the container. It is skipped, so the pods lose the mesh, until an image changes.",
	Webhook: register("mesh.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t09MeshSample},
	New: func() http.Handler {
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "template", "metadata", "labels", "mesh.fjord.example/inject")) != "enabled" {
				return nil
			}
			if r.Operation == admissionv1.Update {
				old, err := edit(r.OldObject.Raw)
				if err != nil {
					return err
				}
				injected := str(old.get("spec", "template", "metadata", "labels", "mesh.fjord.example/inject")) == "enabled"
				if injected && maps.Equal(t09Images(old.root), t09Images(e.root)) {
					return nil
				}
			}
			containers := under(templateSpec, "containers")
			if !slices.Contains(names(e.get(containers...)), "mesh-proxy") {
				e.push(map[string]any{"name": "mesh-proxy", "image": "registry.fjord.example/mesh/proxy:1.31"}, containers...)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t09MeshSample))
		out := p.updated(live, p.object(t09MeshSample))
		if got := names(reach(out, "spec", "template", "spec", "containers")); !slices.Contains(got, "mesh-proxy") {
			return fmt.Sprintf("the containers are %q", got)
		}
		return ""
	},
})

const t09ShardSample = `
apiVersion: v1
kind: Service
metadata: {name: api, namespace: edge}
spec:
  type: LoadBalancer
  selector: {app: api}
  ports:
    - {name: https, port: 443, targetPort: 8443}
`

const t09Shard = "lb.fjord.example/shard"

var _ = add(hookCase{
	Name:    "T09c1-load-balancer-shard",
	Summary: "Services of type LoadBalancer are spread over 16 shards by a hash of their names, and may ask for a shard when they are created. In an update the shard of the old object counts.",
	Why:     "The shard is derived from the name or given, and an update puts back what was there, whether the new object lacks it or has another. So it does not change while the Service lives.",
	Webhook: register("shards.fjord.example", "", "v1", "services", create, update),
	Samples: []string{t09ShardSample},
	New: func() http.Handler {
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "type")) != "LoadBalancer" {
				return nil
			}
			have := str(e.get("metadata", "annotations", t09Shard))
			want := have
			if r.Operation == admissionv1.Update {
				old, err := edit(r.OldObject.Raw)
				if err != nil {
					return err
				}
				if before := str(old.get("metadata", "annotations", t09Shard)); before != "" {
					want = before
				}
			}
			if want == "" {
				h := fnv.New32a()
				h.Write([]byte(r.Namespace + "/" + str(e.get("metadata", "name")) + str(e.get("metadata", "generateName"))))
				want = strconv.Itoa(int(h.Sum32() % 16))
			}
			if want != have {
				e.set(want, "metadata", "annotations", t09Shard)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t09ShardSample))
		if out := p.updated(live, p.object(t09ShardSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		asked := p.object(t09ShardSample)
		set(asked, "99", "metadata", "annotations", t09Shard)
		given := p.created(asked)
		if out := p.updated(given, p.object(t09ShardSample)); !same(out, given) {
			return "the shard that was asked for is lost"
		}
		if out := p.updated(live, asked); !same(out, live) {
			return "the shard changes"
		}
		return ""
	},
})

const t09ScaledSample = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: thumbnails
  namespace: media
  annotations: {autoscale.fjord.example/managed: "true", autoscale.fjord.example/min: "2"}
spec:
  replicas: 1
  selector:
    matchLabels: {app: thumbnails}
  template:
    metadata:
      labels: {app: thumbnails}
    spec:
      containers:
        - name: thumbnails
          image: registry.fjord.example/media/thumbnails:4
`

func t09Replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

var _ = add(hookCase{
	Name:    "T09c2-autoscaled-replicas-kept",
	Summary: "The replicas of Deployments with an autoscaler belong to it: in an UPDATE the webhook puts back the replicas of the old object. They are not below the minimum, except 0, which means paused.",
	Why:     "The autoscaler writes to the scale subresource, which the webhook does not see. What is put back is what is there, and the minimum is a fixed floor, so the result stays.",
	Webhook: register("replicas.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t09ScaledSample},
	New: func() http.Handler {
		return serve(func(req *admissionv1.AdmissionRequest) ([]byte, error) {
			d, old := &appsv1.Deployment{}, &appsv1.Deployment{}
			if err := json.Unmarshal(req.Object.Raw, d); err != nil {
				return nil, err
			}
			if d.Annotations["autoscale.fjord.example/managed"] != "true" {
				return nil, nil
			}
			want := t09Replicas(d)
			if req.Operation == admissionv1.Update {
				if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
					return nil, err
				}
				if old.Annotations["autoscale.fjord.example/managed"] == "true" {
					want = t09Replicas(old)
				}
			}
			if low, err := strconv.ParseInt(d.Annotations["autoscale.fjord.example/min"], 10, 32); err == nil && want > 0 && want < int32(low) {
				want = int32(low)
			}
			if want == t09Replicas(d) {
				return nil, nil
			}
			return operations([]patchOp{{"add", "/spec/replicas", want}})
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t09ScaledSample))
		if got := reach(live, "spec", "replicas"); got != 2.0 {
			return fmt.Sprint(got, " replicas")
		}
		for _, n := range []float64{0, 2, 17} {
			set(live, n, "spec", "replicas")
			if out := p.updated(live, p.object(t09ScaledSample)); !same(out, live) {
				return fmt.Sprintf("%v replicas become %v", n, reach(out, "spec", "replicas"))
			}
		}
		return ""
	},
})

const t09QueueSample = `
apiVersion: batch/v1
kind: Job
metadata: {name: simulate, namespace: research}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: simulate
          image: registry.fjord.example/research/simulate:21
          resources:
            requests: {cpu: "2"}
`

const t09Queue = "kueue.x-k8s.io/queue-name"

var _ = add(hookCase{
	Name:    "T09c3-job-queue-suspend",
	Summary: "As Kueue does: a Job is created with a queue, by default the queue of the team, and suspended. The controller of the queue starts it later. Jobs of another controller are left alone.",
	Why:     "The webhook is only called when the Job is created, and may then suspend it again and again. An UPDATE belongs to the controller, which resumes the Job, and is not undone.",
	Webhook: register("queue.fjord.example", "batch", "v1", "jobs", create),
	Samples: []string{t09QueueSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			for _, owner := range objects(e.get("metadata", "ownerReferences")) {
				if owner["controller"] == true {
					return nil
				}
			}
			if str(e.get("metadata", "labels", t09Queue)) == "" {
				e.set("team-default", "metadata", "labels", t09Queue)
			}
			if e.get("spec", "suspend") != true {
				e.set(true, "spec", "suspend")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t09QueueSample))
		woken := copyOf(live)
		set(woken, false, "spec", "suspend")
		if out := p.created(woken); !same(out, live) {
			return "a second call does not suspend the Job"
		}
		if out := p.updated(live, woken); !same(out, woken) {
			return "the start of the Job is undone"
		}
		owned := p.object(t09QueueSample)
		set(owned, []any{map[string]any{"kind": "CronJob", "name": "simulate", "controller": true}}, "metadata", "ownerReferences")
		if out := p.created(owned); !same(out, owned) {
			return "a Job of a CronJob is changed"
		}
		return ""
	},
})
