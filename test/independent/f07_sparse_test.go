// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gentleScaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: search
  namespace: web
  annotations: {scaling.northwind.io/profile: gentle}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: search}
  minReplicas: 3
  maxReplicas: 30
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: 70}
  behavior:
    scaleDown:
      policies:
        - {type: Pods, value: 2, periodSeconds: 60}
`

// windows are the seconds for which the gentle profile looks back.
var windows = []struct {
	side    string
	seconds int32
}{{"scaleDown", 600}, {"scaleUp", 120}}

func window(object map[string]any, side string) string {
	return fmt.Sprint(reach(object, "spec", "behavior", side, "stabilizationWindowSeconds"))
}

var _ = add(hookCase{
	Name:    "F07b1-behavior-written-twice",
	Summary: "The SRE team has a gentle profile for autoscalers: the webhook sets the stabilization windows for scaling down and up, where they are absent.",
	Why:     "If behavior is absent, both operations add it as a whole, and the second one replaces the first. The window for scaling down comes only with the next call.",
	Webhook: register("gentle.northwind.io", "autoscaling", "v2", "horizontalpodautoscalers", create, update),
	Samples: []string{gentleScaler},
	New: func() http.Handler {
		return serve(func(r *admissionv1.AdmissionRequest) ([]byte, error) {
			var hpa autoscalingv2.HorizontalPodAutoscaler
			if err := json.Unmarshal(r.Object.Raw, &hpa); err != nil {
				return nil, err
			}
			if hpa.Annotations["scaling.northwind.io/profile"] != "gentle" {
				return nil, nil
			}
			var ops []patchOp
			for _, w := range windows {
				value := map[string]any{"stabilizationWindowSeconds": w.seconds}
				if hpa.Spec.Behavior == nil {
					ops = append(ops, patchOp{Op: "add", Path: "/spec/behavior", Value: map[string]any{w.side: value}})
					continue
				}
				rules := hpa.Spec.Behavior.ScaleDown
				if w.side == "scaleUp" {
					rules = hpa.Spec.Behavior.ScaleUp
				}
				switch {
				case rules == nil:
					ops = append(ops, patchOp{Op: "add", Path: "/spec/behavior/" + w.side, Value: value})
				case rules.StabilizationWindowSeconds == nil:
					ops = append(ops, patchOp{Op: "add", Path: "/spec/behavior/" + w.side + "/stabilizationWindowSeconds", Value: w.seconds})
				}
			}
			return operations(ops)
		})
	},
	Proof: func(p *prover) string {
		object := p.object(gentleScaler)
		delete(object["spec"].(map[string]any), "behavior")
		once := p.created(object)
		twice := p.created(once)
		if a, b := window(once, "scaleDown"), window(twice, "scaleDown"); a != b {
			return fmt.Sprintf("the window for scaling down is %s, then %s", a, b)
		}
		return ""
	},
})

var _ = add(hookCase{
	Name:    "F07c1-behavior-filled-step-by-step",
	Summary: "The SRE team's gentle profile for autoscalers, by another webhook: the stabilization windows for scaling down and up are set where they are absent.",
	Why:     "The editor of the patch knows what it has added, so an absent map is added once and then extended. Windows that are there, also of 0 seconds, are kept.",
	Webhook: register("gentle2.northwind.io", "autoscaling", "v2", "horizontalpodautoscalers", create, update),
	Samples: []string{gentleScaler},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("metadata", "annotations", "scaling.northwind.io/profile")) != "gentle" {
				return nil
			}
			for _, w := range windows {
				if path := []string{"spec", "behavior", w.side, "stabilizationWindowSeconds"}; e.get(path...) == nil {
					e.set(w.seconds, path...)
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		for _, behavior := range []any{
			nil, map[string]any{}, map[string]any{"scaleUp": nil}, map[string]any{"scaleDown": map[string]any{}, "scaleUp": map[string]any{}},
		} {
			object := p.object(gentleScaler)
			set(object, behavior, "spec", "behavior")
			once := p.created(object)
			if window(once, "scaleDown") != "600" || window(once, "scaleUp") != "120" || !same(once, p.created(once)) {
				return fmt.Sprint("a sparse behavior is not filled: ", once["spec"])
			}
		}
		object := p.object(gentleScaler)
		set(object, 0, "spec", "behavior", "scaleUp", "stabilizationWindowSeconds")
		if window(p.created(object), "scaleUp") != "0" {
			return "a window of 0 seconds is overwritten"
		}
		return ""
	},
})

var tenantCRD = crdOf("platform.northwind.io", "v1", "Tenant", "tenants", `
            spec:
              type: object
              properties:
                costCenter: {type: string}
                owners:
                  type: array
                  items: {type: string}
                allowedRegistries:
                  description: Absent means all registries, an empty list means none.
                  type: array
                  items: {type: string}
`)

const tenantSample = `
apiVersion: platform.northwind.io/v1
kind: Tenant
metadata: {name: pricing, namespace: tenants}
spec:
  owners: [ana@northwind.example]
  allowedRegistries: [registry.northwind.io]
`

type tenant struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        json.RawMessage `json:"metadata,omitempty"`
	Spec            tenantSpec      `json:"spec"`
	Status          json.RawMessage `json:"status,omitempty"`
}

type tenantSpec struct {
	CostCenter        string   `json:"costCenter,omitempty"`
	Owners            []string `json:"owners,omitempty"`
	AllowedRegistries []string `json:"allowedRegistries,omitempty"`
}

var _ = add(hookCase{
	Name:    "F07b2-empty-list-is-dropped",
	Summary: "The finance team wants a cost center for each Tenant: the webhook decodes the object into its Go type, fills in costCenter: shared if it is absent, and returns the difference.",
	Why:     "The Go type has omitempty, so an empty allowedRegistries, which forbids all registries, is removed from the object, and then all are allowed.",
	Webhook: register("costcenter.northwind.io", "platform.northwind.io", "v1", "tenants", create, update),
	Samples: []string{tenantSample},
	CRDs:    []string{tenantCRD},
	New: func() http.Handler {
		return serve(func(r *admissionv1.AdmissionRequest) ([]byte, error) {
			var t tenant
			if err := json.Unmarshal(r.Object.Raw, &t); err != nil {
				return nil, err
			}
			if t.Spec.CostCenter == "" {
				t.Spec.CostCenter = "shared"
			}
			return difference(r.Object.Raw, t)
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(tenantSample))
		locked := copyOf(live)
		set(locked, []any{}, "spec", "allowedRegistries")
		out := p.updated(live, locked)
		if _, there := nested(out, "spec")["allowedRegistries"]; !there {
			return "the empty list is gone"
		}
		return ""
	},
})

var backupCRD = crdOf("storage.northwind.io", "v1alpha1", "BackupPolicy", "backuppolicies", `
            spec:
              type: object
              properties:
                schedule: {type: string}
                excludePaths:
                  type: array
                  items: {type: string}
                retention:
                  type: object
                  nullable: true
                  properties:
                    daily: {type: integer, nullable: true}
                    weekly: {type: integer, nullable: true}
`)

const backupSample = `
apiVersion: storage.northwind.io/v1alpha1
kind: BackupPolicy
metadata: {name: nightly, namespace: finance}
spec:
  schedule: "0 1 * * *"
  excludePaths: []
  retention:
    weekly: 0
`

var _ = add(hookCase{
	Name:    "F07c2-nullable-retention",
	Summary: "The backup team wants at least known numbers: a BackupPolicy gets retention.daily 7 and retention.weekly 4, each only if it is absent or null.",
	Why:     "Maps that are absent or null are added once, before both numbers. The number 0 and empty lists are values of the author and stay.",
	Webhook: register("backups.northwind.io", "storage.northwind.io", "v1alpha1", "backuppolicies", create, update),
	Samples: []string{backupSample},
	CRDs:    []string{backupCRD},
	New: func() http.Handler {
		return serve(func(r *admissionv1.AdmissionRequest) ([]byte, error) {
			// Only what is read has a type; the patch does not touch the rest.
			var policy struct {
				Spec *struct {
					Retention *struct {
						Daily  *int64 `json:"daily"`
						Weekly *int64 `json:"weekly"`
					} `json:"retention"`
				} `json:"spec"`
			}
			if err := json.Unmarshal(r.Object.Raw, &policy); err != nil {
				return nil, err
			}
			var ops []patchOp
			switch {
			case policy.Spec == nil:
				ops = append(ops, patchOp{Op: "add", Path: "/spec", Value: map[string]any{"retention": map[string]any{}}})
			case policy.Spec.Retention == nil:
				ops = append(ops, patchOp{Op: "add", Path: "/spec/retention", Value: map[string]any{}})
			}
			absent := len(ops) > 0
			if absent || policy.Spec.Retention.Daily == nil {
				ops = append(ops, patchOp{Op: "add", Path: "/spec/retention/daily", Value: 7})
			}
			if absent || policy.Spec.Retention.Weekly == nil {
				ops = append(ops, patchOp{Op: "add", Path: "/spec/retention/weekly", Value: 4})
			}
			return operations(ops)
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(backupSample))
		if got := fmt.Sprint(live["spec"]); got != "map[excludePaths:[] retention:map[daily:7 weekly:0] schedule:0 1 * * *]" {
			return got
		}
		for _, retention := range []any{nil, map[string]any{}, map[string]any{"daily": nil, "weekly": nil}} {
			object := copyOf(live)
			set(object, retention, "spec", "retention")
			out := p.updated(live, object)
			if got := fmt.Sprint(reach(out, "spec", "retention")); got != "map[daily:7 weekly:4]" || !same(out, p.updated(out, out)) {
				return got
			}
		}
		object := copyOf(live)
		delete(object, "spec")
		if got := fmt.Sprint(p.created(object)["spec"]); got != "map[retention:map[daily:7 weekly:4]]" {
			return got
		}
		return ""
	},
})
