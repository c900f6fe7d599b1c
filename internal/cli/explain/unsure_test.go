// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"
)

const aService = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}}`

// both sorts of webhooks, with one condition.
func withCondition(expression string) string {
	fields := fmt.Sprintf(", matchConditions: [{name: c, expression: '%s'}]", expression)
	return configuration("Mutating", "m", "m.example.com", fields) + "---" + configuration("Validating", "v", "v.example.com", fields)
}

// TestRegistry: what the API server allocates between mutating and validating webhooks is not guessed.
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
		{"update", "what is missing is put back", aService, `has(object.spec.clusterIP)`, Ask{Operation: "UPDATE"}, []string{"m.example.com: no", "v.example.com: unknown"}},
		{"deletion", "it is the stored one", strings.Replace(aService, "type: NodePort", "clusterIP: 10.0.0.1", 1), `has(oldObject.spec.clusterIP)`, Ask{Operation: "DELETE"}, []string{"v.example.com: yes"}},
		{"spread", "keys become part of the selector", strings.Replace(spread, "KEYS", "matchLabelKeys: [app]", 1), `has(object.spec.topologySpreadConstraints[0].labelSelector.matchExpressions)`, Ask{}, []string{"m.example.com: no", "v.example.com: unknown"}},
		{"spread without keys", "nothing becomes part of the selector", strings.Replace(spread, ", KEYS", "", 1), `has(object.spec.topologySpreadConstraints[0].labelSelector.matchExpressions)`, Ask{}, []string{"m.example.com: no", "v.example.com: no"}},
		{"secrets of nobody", "an empty list is filled", strings.Replace(aPod, "spec: {", "spec: {imagePullSecrets: [], ", 1), `object.spec.imagePullSecrets.size() == 0`, Ask{}, []string{"m.example.com: unknown"}},
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
