// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

const t06TelemetrySample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: search, namespace: shop}
spec:
  replicas: 2
  selector:
    matchLabels: {app: search}
  template:
    metadata:
      labels: {app: search}
    spec:
      containers:
        - name: search
          image: registry.fjord.example/shop/search:8.1
          env:
            - {name: OTEL_RESOURCE_ATTRIBUTES, value: team=discovery}
`

const t06CronSample = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: reindex, namespace: shop}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: reindex
              image: registry.fjord.example/shop/reindex:8.1
              env:
                - {name: OTEL_RESOURCE_ATTRIBUTES, value: "team=discovery, k8s.container.name=old"}
`

const t06Attributes = "OTEL_RESOURCE_ATTRIBUTES"

// t06Proof adds a copy of the first container under another name.
func t06Proof(p *prover, sample string, pod ...string) string {
	live := p.created(p.object(sample))
	other := copyOf(live)
	spec := reach(other, pod...).(map[string]any)
	twin := copyOf(spec["containers"].([]any)[0].(map[string]any))
	twin["name"] = "canary"
	spec["containers"] = append(spec["containers"].([]any), twin)
	out := p.updated(live, other)
	for _, c := range objects(reach(out, under(pod, "containers")...)) {
		for _, v := range objects(c["env"]) {
			if v["name"] == t06Attributes && !strings.Contains(str(v["value"]), "k8s.container.name="+str(c["name"])) {
				return fmt.Sprintf("container %v reports as %v", c["name"], v["value"])
			}
		}
	}
	return ""
}

var _ = add(hookCase{
	Name:    "T06b1-telemetry-name-if-absent",
	Summary: "The attributes of telemetry of each container get the container's name, unless they have a name.",
	Why:     "A container that another webhook adds as a copy brings the attributes of the original along. They have a name, so the copy reports as the original.",
	Webhook: register("telemetry.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t06TelemetrySample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			for i, c := range objects(e.get(under(templateSpec, "containers")...)) {
				env := under(templateSpec, "containers", index(i), "env")
				attribute := "k8s.container.name=" + str(c["name"])
				at := slices.Index(names(c["env"]), t06Attributes)
				if at < 0 {
					e.push(map[string]any{"name": t06Attributes, "value": attribute}, env...)
					continue
				}
				value := str(e.get(under(env, index(at), "value")...))
				if value != "" && !strings.Contains(value, "k8s.container.name=") {
					e.set(value+","+attribute, under(env, index(at), "value")...)
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string { return t06Proof(p, t06TelemetrySample, templateSpec...) },
})

// t06Named returns the attributes with the name of the container, and without a second name.
func t06Named(value, name string) string {
	var out []string
	done := false
	for _, item := range strings.Split(value, ",") {
		key, _, _ := strings.Cut(item, "=")
		switch {
		case strings.TrimSpace(item) == "":
		case strings.TrimSpace(key) != "k8s.container.name":
			out = append(out, strings.TrimSpace(item))
		case !done:
			out = append(out, "k8s.container.name="+name)
			done = true
		}
	}
	if !done {
		out = append(out, "k8s.container.name="+name)
	}
	return strings.Join(out, ",")
}

var _ = add(hookCase{
	Name:    "T06c1-telemetry-name-enforced",
	Summary: "The attributes of telemetry of each container of a CronJob have the container's name, whatever name was there. The other attributes and their order are kept.",
	Why:     "The name is written in its place, not appended, so the result stays. A copy of a container gets its own name in the next call.",
	Webhook: register("telemetry2.fjord.example", "batch", "v1", "cronjobs", create, update),
	Samples: []string{t06CronSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			pod := []string{"spec", "jobTemplate", "spec", "template", "spec"}
			for i, c := range objects(e.get(under(pod, "containers")...)) {
				env := under(pod, "containers", index(i), "env")
				at := slices.Index(names(c["env"]), t06Attributes)
				if at < 0 {
					e.push(map[string]any{"name": t06Attributes, "value": t06Named("", str(c["name"]))}, env...)
					continue
				}
				if e.get(under(env, index(at), "valueFrom")...) != nil {
					continue
				}
				value := str(e.get(under(env, index(at), "value")...))
				if want := t06Named(value, str(c["name"])); want != value {
					e.set(want, under(env, index(at), "value")...)
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		pod := []string{"spec", "jobTemplate", "spec", "template", "spec"}
		if seen := t06Proof(p, t06CronSample, pod...); seen != "" {
			return seen
		}
		live := p.created(p.object(t06CronSample))
		if got := reach(live, under(pod, "containers", "0", "env", "0", "value")...); got != "team=discovery,k8s.container.name=reindex" {
			return fmt.Sprint(got)
		}
		if out := p.updated(live, p.object(t06CronSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})

const t06TrainingSample = `
apiVersion: ml.fjord.example/v1
kind: TrainingJob
metadata: {name: resnet, namespace: research}
spec:
  workers:
    - {name: chief, image: registry.fjord.example/ml/train:3, gpus: 4}
    - {name: worker, image: registry.fjord.example/ml/train:3}
    - {name: evaluator, image: registry.fjord.example/ml/eval:3, gpus: 0}
`

var _ = add(hookCase{
	Name:    "T06c2-total-gpus-derived",
	Summary: "Workers of a TrainingJob that do not say how many GPUs they need get one. The total for the quota is summed up in spec.totalGPUs, and a total by the author is overwritten.",
	Why:     "The total is derived from the list in each call, so workers that are added, copied or removed later count. It is not added to what is there. A worker with 0 GPUs keeps that.",
	Webhook: register("gpus.fjord.example", "ml.fjord.example", "v1", "trainingjobs", create, update),
	Samples: []string{t06TrainingSample},
	CRDs: []string{crdOf("ml.fjord.example", "v1", "TrainingJob", "trainingjobs", `
            spec:
              type: object
              properties:
                totalGPUs: {type: integer}
                workers:
                  type: array
                  items:
                    type: object
                    required: [name]
                    properties:
                      name: {type: string}
                      image: {type: string}
                      gpus: {type: integer, minimum: 0}`)},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			total := 0.0
			for i, worker := range objects(e.get("spec", "workers")) {
				gpus, given := worker["gpus"].(float64)
				if !given {
					gpus = 1
					e.set(gpus, "spec", "workers", index(i), "gpus")
				}
				total += gpus
			}
			if have, given := e.get("spec", "totalGPUs").(float64); !given || have != total {
				e.set(total, "spec", "totalGPUs")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t06TrainingSample))
		if got := reach(live, "spec", "totalGPUs"); got != 5.0 {
			return fmt.Sprint("total ", got)
		}
		other := copyOf(live)
		spec := other["spec"].(map[string]any)
		twin := copyOf(spec["workers"].([]any)[0].(map[string]any))
		twin["name"] = "chief-2"
		spec["workers"] = append([]any{twin}, spec["workers"].([]any)...)
		if got := reach(p.updated(live, other), "spec", "totalGPUs"); got != 9.0 {
			return fmt.Sprint("total ", got)
		}
		spec["workers"] = nil
		if got := reach(p.updated(live, other), "spec", "totalGPUs"); got != 0.0 {
			return fmt.Sprint("total ", got)
		}
		if out := p.updated(live, p.object(t06TrainingSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})
