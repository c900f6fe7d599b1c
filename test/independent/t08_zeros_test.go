// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

const t08QueueSample = `
apiVersion: work.fjord.example/v1
kind: WorkerPool
metadata: {name: invoices, namespace: finance}
spec:
  queue: invoices
`

const t08Schema = `
            spec:
              type: object
              properties:
                queue: {type: string}
                priority: {type: string}
                replicas: {type: integer}
                maxRetries: {type: integer}
                suspend: {type: boolean}`

type t08Spec struct {
	Queue      string `json:"queue"`
	Priority   string `json:"priority"`
	Replicas   int    `json:"replicas"`
	MaxRetries int    `json:"maxRetries"`
	Suspend    bool   `json:"suspend"`
}

// t08Autoscaled fills the replicas if the author has none, as the webhook of the autoscaler does.
func t08Autoscaled(object map[string]any) map[string]any {
	object = copyOf(object)
	spec := object["spec"].(map[string]any)
	if spec["replicas"] == nil {
		spec["replicas"] = 3.0
	}
	return object
}

var _ = add(hookCase{
	Name:    "T08b1-worker-pool-zeros",
	Summary: "A WorkerPool without priority gets the priority normal. The webhook decodes the spec into a Go struct, and writes the struct as the new spec.",
	Why:     "The fields of the struct have no omitempty. The first call writes 0 replicas and 0 retries, which the author did not request, and the autoscaler, which fills absent replicas only, keeps the 0. The author's manifest sets a running pool to 0 in an UPDATE.",
	Webhook: register("workers.fjord.example", "work.fjord.example", "v1", "workerpools", create, update),
	Samples: []string{t08QueueSample},
	CRDs:    []string{crdOf("work.fjord.example", "v1", "WorkerPool", "workerpools", t08Schema)},
	New: func() http.Handler {
		return serve(func(req *admissionv1.AdmissionRequest) ([]byte, error) {
			var pool struct {
				Spec t08Spec `json:"spec"`
			}
			if err := json.Unmarshal(req.Object.Raw, &pool); err != nil {
				return nil, err
			}
			if pool.Spec.Priority != "" {
				return nil, nil
			}
			pool.Spec.Priority = "normal"
			return operations([]patchOp{{"add", "/spec", pool.Spec}})
		})
	},
	Proof: func(p *prover) string {
		live := t08Autoscaled(p.created(p.object(t08QueueSample)))
		if got := reach(live, "spec", "replicas"); got != 3.0 {
			return fmt.Sprintf("the pool has %v replicas beside the autoscaler", got)
		}
		return ""
	},
})

const t08BatchSample = `
apiVersion: batch.fjord.example/v1
kind: BatchPool
metadata: {name: invoices, namespace: finance}
spec:
  queue: invoices
  suspend: false
`

// t08Pointers has pointers, so that absent fields differ from zeros.
type t08Pointers struct {
	Queue      string  `json:"queue,omitempty"`
	Priority   *string `json:"priority,omitempty"`
	Replicas   *int    `json:"replicas,omitempty"`
	MaxRetries *int    `json:"maxRetries,omitempty"`
	Suspend    *bool   `json:"suspend,omitempty"`
}

var _ = add(hookCase{
	Name:    "T08c1-batch-pool-pointers",
	Summary: "A BatchPool without priority or retries gets defaults. The webhook decodes the spec into a Go struct, and writes the struct as the new spec.",
	Why:     "The optional fields are pointers with omitempty, and the struct has all fields of the schema. What is absent stays absent, a 0 or false by the author stays, and only absent fields get a default. The replicas are for the autoscaler to fill.",
	Webhook: register("batchpools.fjord.example", "batch.fjord.example", "v1", "batchpools", create, update),
	Samples: []string{t08BatchSample},
	CRDs:    []string{crdOf("batch.fjord.example", "v1", "BatchPool", "batchpools", t08Schema)},
	New: func() http.Handler {
		return serve(func(req *admissionv1.AdmissionRequest) ([]byte, error) {
			var pool struct {
				Spec t08Pointers `json:"spec"`
			}
			if err := json.Unmarshal(req.Object.Raw, &pool); err != nil {
				return nil, err
			}
			if pool.Spec.Priority != nil && pool.Spec.MaxRetries != nil {
				return nil, nil
			}
			if pool.Spec.Priority == nil {
				normal := "normal"
				pool.Spec.Priority = &normal
			}
			if pool.Spec.MaxRetries == nil {
				retries := 3
				pool.Spec.MaxRetries = &retries
			}
			return operations([]patchOp{{"add", "/spec", pool.Spec}})
		})
	},
	Proof: func(p *prover) string {
		live := t08Autoscaled(p.created(p.object(t08BatchSample)))
		want := map[string]any{"queue": "invoices", "priority": "normal", "replicas": 3.0, "maxRetries": 3.0, "suspend": false}
		if got := reach(live, "spec"); !same(got, want) {
			return fmt.Sprint(got)
		}
		zero := copyOf(live)
		zero["spec"] = map[string]any{"replicas": 0.0, "maxRetries": 0.0}
		out := p.updated(live, zero)
		if got := reach(out, "spec"); !same(got, map[string]any{"priority": "normal", "replicas": 0.0, "maxRetries": 0.0}) {
			return fmt.Sprint(got)
		}
		return ""
	},
})

const t08ScalerSample = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: checkout
  namespace: shop
  labels: {tier.fjord.example/critical: "true"}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: checkout}
  minReplicas: 1
  maxReplicas: 2
`

var _ = add(hookCase{
	Name:    "T08c2-scale-down-window",
	Summary: "HorizontalPodAutoscalers wait 10 minutes before they scale down, unless they say how long. For critical ones the minimum is 3, and the maximum is not below the minimum.",
	Why:     "A window of 0 is intended and stays; only an absent one is set. The bounds only grow up to a fixed floor. The rest of the behavior, which the API server fills, is not touched.",
	Webhook: register("scalers.fjord.example", "autoscaling", "v2", "horizontalpodautoscalers", create, update),
	Samples: []string{t08ScalerSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if window := []string{"spec", "behavior", "scaleDown", "stabilizationWindowSeconds"}; e.get(window...) == nil {
				e.set(600, window...)
			}
			if str(e.get("metadata", "labels", "tier.fjord.example/critical")) != "true" {
				return nil
			}
			low, given := e.get("spec", "minReplicas").(float64)
			if !given {
				low = 1
			}
			if low > 0 && low < 3 { // 0 is for workloads that may stop when idle
				low = 3
				e.set(low, "spec", "minReplicas")
			}
			if high, _ := e.get("spec", "maxReplicas").(float64); high < low {
				e.set(low, "spec", "maxReplicas")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t08ScalerSample))
		if got := fmt.Sprint(reach(live, "spec", "minReplicas"), reach(live, "spec", "maxReplicas")); got != "3 3" {
			return got
		}
		zero := copyOf(live)
		set(zero, 0.0, "spec", "behavior", "scaleDown", "stabilizationWindowSeconds")
		if out := p.updated(live, zero); !same(out, zero) {
			return "the window of 0 is changed"
		}
		sparse := copyOf(live)
		set(sparse, map[string]any{"scaleDown": nil}, "spec", "behavior")
		if out := p.updated(live, sparse); !same(out, live) {
			return fmt.Sprint(reach(out, "spec", "behavior"))
		}
		if out := p.updated(live, p.object(t08ScalerSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})
