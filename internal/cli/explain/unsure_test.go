// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const aService = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}}`

// withCondition returns a mutating and a validating configuration with one condition.
func withCondition(expression string) string {
	fields := fmt.Sprintf(", matchConditions: [{name: c, expression: '%s'}]", expression)
	return configuration("Mutating", "m", "m.example.com", fields) + "---" + configuration("Validating", "v", "v.example.com", fields)
}

// TestRegistry checks decisions that depend on fields which the API server sets between mutating and validating
// webhooks. For validating webhooks, such a decision must be unknown.
func TestRegistry(t *testing.T) {
	spread := strings.Replace(aPod, "spec: {", "spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}, KEYS}], ", 1)
	for _, row := range []struct {
		name, reason, object, expression string
		ask                              Ask
		want                             []string
	}{
		{"address", "it is allocated in between", aService, `has(object.spec.clusterIP)`, Ask{}, []string{"m.example.com: no", "v.example.com: unknown by MatchCondition: condition \"c\": it is false for the object as it is written, but the API server may set clusterIP"}},
		{"addresses", "they are allocated in between", aService, `has(object.spec.clusterIPs)`, Ask{}, []string{"m.example.com: no", "v.example.com: unknown"}},
		{"port of nodes", "it is allocated in between", aService, `object.spec.ports.all(p, !has(p.nodePort))`, Ask{}, []string{"m.example.com: yes", "v.example.com: unknown"}},
		{"families", "they are set in between", aService, `has(object.spec.ipFamilies) || has(object.spec.ipFamilyPolicy)`, Ask{}, []string{"m.example.com: no", "v.example.com: unknown"}},
		{"health check", "it is allocated in between", aService, `has(object.spec.healthCheckNodePort)`, Ask{}, []string{"m.example.com: no", "v.example.com: unknown"}},
		{"headless", "it stays so", strings.Replace(aService, "type: NodePort", "clusterIP: None", 1), `object.spec.clusterIP == "None"`, Ask{}, []string{"m.example.com: yes", "v.example.com: yes"}},
		{"headless, empty", "it is none yet", strings.Replace(aService, "type: NodePort", `clusterIP: ""`, 1), `!has(object.spec.clusterIP)`, Ask{}, []string{"v.example.com: unknown"}},
		{"type", "nothing is allocated there", aService, `object.spec.type == "NodePort" && object.spec.ports.size() == 1`, Ask{}, []string{"m.example.com: yes", "v.example.com: yes"}},
		{"update", "the API server restores a missing field", aService, `has(object.spec.clusterIP)`, Ask{Operation: "UPDATE"}, []string{"m.example.com: no", "v.example.com: unknown"}},
		{"deletion", "it is the stored one", strings.Replace(aService, "type: NodePort", "clusterIP: 10.0.0.1", 1), `has(oldObject.spec.clusterIP)`, Ask{Operation: "DELETE"}, []string{"v.example.com: yes"}},
		{"spread", "keys become part of the selector", strings.Replace(spread, "KEYS", "matchLabelKeys: [app]", 1), `has(object.spec.topologySpreadConstraints[0].labelSelector.matchExpressions)`, Ask{}, []string{"m.example.com: no", "v.example.com: unknown"}},
		{"spread without keys", "nothing becomes part of the selector", strings.Replace(spread, ", KEYS", "", 1), `has(object.spec.topologySpreadConstraints[0].labelSelector.matchExpressions)`, Ask{}, []string{"m.example.com: no", "v.example.com: no"}},
		{"empty imagePullSecrets", "the plugin fills an empty list", strings.Replace(aPod, "spec: {", "spec: {imagePullSecrets: [], ", 1), `object.spec.imagePullSecrets.size() == 0`, Ask{}, []string{"m.example.com: unknown"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := summary(explainOne(t, withCondition(row.expression), row.object, row.ask))
			for _, want := range row.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s\n got %s\nwant %s", row.reason, got, want)
				}
			}
		})
	}
}

// TestLimits checks that a decision is unknown only if the annotation of LimitRanger would change it.
func TestLimits(t *testing.T) {
	annotated := strings.Replace(aPod, "labels:", "annotations: {team: web}, labels:", 1)
	for _, row := range []struct{ name, reason, object, expression, want string }{
		{"any annotation", "there may be one", aPod, `has(object.metadata.annotations)`, "m.example.com: unknown by MatchCondition: condition \"c\": it is false for the object as it is written, but the plugin LimitRanger"},
		{"number", "there may be one more", annotated, `object.metadata.annotations.size() == 1`, "m.example.com: unknown"},
		{"that annotation", "it may be there", aPod, `has(object.metadata.annotations) && "kubernetes.io/limit-ranger" in object.metadata.annotations`, "m.example.com: unknown"},
		{"another annotation", "it is there", annotated, `object.metadata.annotations["team"] == "web"`, "m.example.com: yes"},
		{"another annotation, missing", "no plugin adds it", aPod, `has(object.metadata.annotations) && "team" in object.metadata.annotations`, "m.example.com: no"},
		{"another annotation, any", "there is one already", annotated, `has(object.metadata.annotations)`, "m.example.com: yes"},
		{"unguarded", "an error becomes none", aPod, `"team" in object.metadata.annotations`, "m.example.com: unknown"},
		{"of another kind", "LimitRanger leaves it", aService, `has(object.metadata.annotations)`, "m.example.com: no"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := summary(explainOne(t, withCondition(row.expression), row.object, Ask{}))
			if !strings.Contains(got, row.want) {
				t.Errorf("%s\n got %s\nwant %s", row.reason, got, row.want)
			}
		})
	}
	for known, want := range map[bool]string{true: "m.example.com: no", false: "m.example.com: unknown"} {
		w, err := FromFiles(read(t, withCondition(`has(object.metadata.annotations) || has(object.spec.containers[0].resources.limits)`)), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.noLimits = func(_ context.Context, namespace string) (bool, error) { return known && namespace == "shop", nil }
		report, err := w.Explain(t.Context(), read(t, aPod), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		if got := summary(report.Objects[0]); !strings.HasPrefix(got, want) {
			t.Errorf("a cluster in which it is %t that there are no LimitRanges: %s", known, got)
		}
	}
}

const podPolicy = `
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'app': 'db'}}}"}}]
---
`

// TestPolicies checks that a decision is unknown if it depends on fields which a MutatingAdmissionPolicy may change.
func TestPolicies(t *testing.T) {
	const note = "MutatingAdmissionPolicy labels may change the object before webhooks receive it"
	for _, row := range []struct {
		name, reason, fields, object string
		want                         []string
	}{
		{"selector", "labels may change", ", objectSelector: {matchLabels: {app: db}}", aPod, []string{"m.example.com: unknown by ObjectSelector: depends on MutatingAdmissionPolicy labels, which may change", note}},
		{"condition", "the object may change", ", matchConditions: [{name: c, expression: 'object.metadata.name == \"web\"'}]", aPod, []string{"m.example.com: unknown by MatchCondition", note}},
		{"condition on the user", "that is not changed", ", matchConditions: [{name: c, expression: 'request.userInfo.username == \"admin\"'}]", aPod, []string{"m.example.com: yes", note}},
		{"nothing", "the object does not matter", "", aPod, []string{"m.example.com: yes", note}},
		{"another kind", "it is not for that", ", objectSelector: {matchLabels: {app: db}}", aService, []string{"m.example.com: no"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := summary(explainOne(t, podPolicy+configuration("Mutating", "m", "m.example.com", row.fields), row.object, Ask{}))
			for _, want := range row.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s\n got %s\nwant %s", row.reason, got, want)
				}
			}
			if strings.Contains(got, note) != slices.Contains(row.want, note) {
				t.Errorf("%s: %s", row.reason, got)
			}
		})
	}
	for bound, want := range map[string]string{"labels": "yes", "other": "no"} {
		w, err := FromFiles(read(t, configuration("Mutating", "m", "m.example.com", ", objectSelector: {matchLabels: {app: db}}")), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.policies.unbound = false // as in a cluster
		if err := w.policies.add(read(t, podPolicy+"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: "+bound+"}}")); err != nil {
			t.Fatal(err)
		}
		report, err := w.Explain(t.Context(), read(t, aPod), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		if got := summary(report.Objects[0]); !strings.HasPrefix(got, "m.example.com: "+want) {
			t.Errorf("bound is %s: %s", bound, got)
		}
	}
}
