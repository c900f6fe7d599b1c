// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	auditBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: deployers
  namespace: shop
  labels: {team: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects:
- {kind: Group, apiGroup: rbac.authorization.k8s.io, name: shop-deployers}
`
	auditBudget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: cart
  namespace: shop
  labels: {team: shop}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: cart}}
`
)

var auditLabels = [][2]string{{"audit.acme.io/scope", "rbac"}, {"audit.acme.io/retention", "365d"}}

func auditBroken(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var binding rbacv1.RoleBinding
	if err := json.Unmarshal(req.Object.Raw, &binding); err != nil {
		return nil, err
	}
	label := func(key, value string) patchOp {
		if binding.Labels == nil {
			return patchOp{"add", "/metadata/labels", map[string]string{key: value}}
		}
		return patchOp{"add", "/metadata/labels/" + escape(key), value}
	}
	var ops []patchOp
	for _, l := range auditLabels {
		if _, ok := binding.Labels[l[0]]; !ok {
			ops = append(ops, label(l[0], l[1]))
		}
	}
	return operations(ops)
}

func auditCorrect(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var budget policyv1.PodDisruptionBudget
	if err := json.Unmarshal(req.Object.Raw, &budget); err != nil {
		return nil, err
	}
	var ops []patchOp
	if budget.Labels == nil {
		ops = append(ops, patchOp{"add", "/metadata/labels", map[string]string{}})
	}
	for _, l := range auditLabels {
		if _, ok := budget.Labels[l[0]]; !ok {
			ops = append(ops, patchOp{"add", "/metadata/labels/" + escape(l[0]), l[1]})
		}
	}
	return operations(ops)
}

func auditProof(p *prover) string {
	object := p.object(p.c.Samples[0])
	delete(nested(object, "metadata"), "labels")
	object = p.created(object)
	if n := len(nested(object, "metadata", "labels")); n != 2 {
		return fmt.Sprintf("%d labels of 2: %v", n, nested(object, "metadata", "labels"))
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z07b1-audit-labels-overwritten",
		Summary: "In an object without labels, the second operation of the patch replaces the first.",
		Why: "CREATE of a RoleBinding without labels: each of the two labels is added as a whole map at /metadata/labels, so only the last one is there. The first one appears " +
			"with the next call. With any label in the object, as in the sample, the patch is right.",
		Webhook: register("labels.audit.acme.io", "rbac.authorization.k8s.io", "v1", "rolebindings", create, update),
		New:     func() http.Handler { return serve(auditBroken) },
		Samples: []string{auditBinding},
		Proof:   auditProof,
	})
	_ = add(hookCase{
		Name:    "Z07c1-audit-labels-map-first",
		Summary: "The patch adds an empty map of labels once, then each label.",
		Why:     "A map that is absent or null is written as a whole. In any other map, including an empty one, only the missing keys are added. A key that is set is never changed.",
		Webhook: register("labels.audit.acme.io", "policy", "v1", "poddisruptionbudgets", create, update),
		New:     func() http.Handler { return serve(auditCorrect) },
		Samples: []string{auditBudget},
		Proof:   auditProof,
	})
)

const (
	appCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: appconfigs.apps.acme.io}
spec:
  group: apps.acme.io
  scope: Namespaced
  names: {plural: appconfigs, singular: appconfig, kind: AppConfig, listKind: AppConfigList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [app]
            properties:
              app: {type: string, minLength: 1}
              settings:
                type: object
                nullable: true
                additionalProperties: {type: string}
`
	appSample = `
apiVersion: apps.acme.io/v1
kind: AppConfig
metadata: {name: web, namespace: shop}
spec:
  app: web
  settings: {log: info}
`
)

func settingsBroken(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var config map[string]any
	if err := json.Unmarshal(req.Object.Raw, &config); err != nil {
		return nil, err
	}
	spec := nested(config, "spec")
	var ops []patchOp
	if _, ok := spec["settings"]; !ok {
		ops = append(ops, patchOp{"add", "/spec/settings", map[string]any{}})
	}
	settings := nested(spec, "settings")
	for _, s := range [][2]string{{"region", "eu-west-1"}, {"telemetry", "on"}} {
		if _, ok := settings[s[0]]; !ok {
			ops = append(ops, patchOp{"add", "/spec/settings/" + s[0], s[1]})
		}
	}
	return operations(ops)
}

func settingsCorrect(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var config map[string]any
	if err := json.Unmarshal(req.Object.Raw, &config); err != nil {
		return nil, err
	}
	settings := nested(config, "spec", "settings")
	if settings == nil { // absent, or null
		return operations([]patchOp{{"add", "/spec/settings", map[string]any{"region": "eu-west-1", "telemetry": "on"}}})
	}
	var ops []patchOp
	for _, s := range [][2]string{{"region", "eu-west-1"}, {"telemetry", "on"}} {
		if _, ok := settings[s[0]]; !ok {
			ops = append(ops, patchOp{"add", "/spec/settings/" + s[0], s[1]})
		}
	}
	return operations(ops)
}

func settingsProof(p *prover) string {
	config := p.object(appSample)
	set(config, nil, "spec", "settings")
	out, err := p.create(config)
	if err != nil {
		return "settings: null is valid, but the request fails: " + err.Error()
	}
	if n := len(nested(out, "spec", "settings")); n != 2 {
		return fmt.Sprintf("%d settings", n)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z07b2-settings-null",
		Summary: "The webhook checks that a nullable map is present, but not that it is null.",
		Why: "CREATE or UPDATE of an AppConfig with settings: null, which its schema allows: the key is there, so no map is added, and the patch adds /spec/settings/region below null. " +
			"The API server cannot apply the patch, and the user's request fails with an internal error.",
		Webhook: register("settings.apps.acme.io", "apps.acme.io", "v1", "appconfigs", create, update),
		New:     func() http.Handler { return serve(settingsBroken) },
		Samples: []string{appSample},
		CRDs:    []string{appCRD},
		Proof:   settingsProof,
	})
	_ = add(hookCase{
		Name:    "Z07c2-settings-null",
		Summary: "A map that is absent or null is written as a whole.",
		Why:     "Absent, null and empty maps, and each of the keys, are told apart. A setting that is there is never changed.",
		Webhook: register("settings.apps.acme.io", "apps.acme.io", "v1", "appconfigs", create, update),
		New:     func() http.Handler { return serve(settingsCorrect) },
		Samples: []string{appSample},
		CRDs:    []string{appCRD},
		Proof:   settingsProof,
	})
)

const slowHPA = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: web
  namespace: shop
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}
`

// slowDown lets autoscalers scale down slowly, unless they say otherwise.
func slowDown(req *admissionv1.AdmissionRequest) ([]byte, error) {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := json.Unmarshal(req.Object.Raw, hpa); err != nil {
		return nil, err
	}
	seconds := int32(600)
	switch b := hpa.Spec.Behavior; {
	case b == nil:
		hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &seconds}}
	case b.ScaleDown == nil:
		b.ScaleDown = &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &seconds}
	case b.ScaleDown.StabilizationWindowSeconds == nil:
		b.ScaleDown.StabilizationWindowSeconds = &seconds
	default:
		return nil, nil
	}
	return difference(req.Object.Raw, hpa)
}

var _ = add(hookCase{
	Name:    "Z07c3-hpa-slow-down",
	Summary: "The webhook sets a number deep inside optional structs, even if some of them are absent.",
	Why: "The patch is the difference of two typed objects, so it has no path into what is absent. A window that is set, also to 0, is kept. " +
		"The API server fills the other rules when it decodes the patched object, as it does for a user who sets only the window.",
	Webhook: register("slowdown.scaling.acme.io", "autoscaling", "v2", "horizontalpodautoscalers", create, update),
	New:     func() http.Handler { return serve(slowDown) },
	Samples: []string{slowHPA},
	Proof: func(p *prover) string {
		for _, behaviour := range []map[string]any{
			{}, {"scaleUp": map[string]any{"selectPolicy": "Max"}}, {"scaleDown": map[string]any{}}, {"scaleDown": nil},
		} {
			hpa := p.object(slowHPA)
			set(hpa, behaviour, "spec", "behavior")
			out := p.created(hpa)
			if nested(out, "spec", "behavior", "scaleDown")["stabilizationWindowSeconds"] != 600.0 {
				return fmt.Sprint(nested(out, "spec", "behavior"))
			}
		}
		return ""
	},
})
