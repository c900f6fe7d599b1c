// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

const t05EnvSample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: tracer, namespace: apps}
spec:
  replicas: 1
  selector:
    matchLabels: {app: tracer}
  template:
    metadata:
      labels: {app: tracer}
    spec:
      containers:
        - name: tracer
          image: registry.fjord.example/apps/tracer:2
          env:
            - {name: AGENT_URL, value: "http://$(NODE_IP):8126"}
            - {name: LEVEL, value: info}
`

// t05Ordered puts NODE_IP before the first variable that refers to it, if one does.
func t05Ordered(env []map[string]any) ([]map[string]any, bool) {
	first := slices.IndexFunc(env, func(v map[string]any) bool { return strings.Contains(str(v["value"]), "$(NODE_IP)") })
	at := slices.IndexFunc(env, func(v map[string]any) bool { return v["name"] == "NODE_IP" })
	if first < 0 || at >= 0 && at < first {
		return env, false
	}
	variable := map[string]any{"name": "NODE_IP", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.hostIP"}}}
	if at >= 0 {
		variable = env[at]
		env = slices.Delete(slices.Clone(env), at, at+1)
	}
	return slices.Insert(slices.Clone(env), first, variable), true
}

var _ = add(hookCase{
	Name:    "T05c3-node-ip-before-use",
	Summary: "A variable can only refer to one before it. In containers with a variable that refers to NODE_IP, the webhook puts NODE_IP before it: it adds the variable, or moves it up.",
	Why:     "NODE_IP only moves if it is absent or too late, so the list with it in place stays as it is. If another webhook sorts the list, NODE_IP moves up once more, and the others keep their order. The author's own NODE_IP is kept.",
	Webhook: register("nodeip.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t05EnvSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			for _, list := range []string{"initContainers", "containers"} {
				for i, c := range objects(e.get(under(templateSpec, list)...)) {
					if env, moved := t05Ordered(objects(c["env"])); moved {
						e.set(env, under(templateSpec, list, index(i), "env")...)
					}
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t05EnvSample))
		path := []string{"spec", "template", "spec", "containers", "0"}
		if got := names(reach(live, under(path, "env")...)); !slices.Equal(got, []string{"NODE_IP", "AGENT_URL", "LEVEL"}) {
			return fmt.Sprintf("%q", got)
		}
		if out := p.updated(live, p.object(t05EnvSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		sorted := copyOf(live)
		env := reach(sorted, path...).(map[string]any)["env"].([]any)
		slices.SortFunc(env, func(a, b any) int {
			return strings.Compare(str(a.(map[string]any)["name"]), str(b.(map[string]any)["name"]))
		})
		out := p.updated(live, sorted)
		if !same(out, live) {
			return fmt.Sprint(out)
		}
		late := p.object(t05EnvSample)
		own := map[string]any{"name": "NODE_IP", "value": "192.0.2.7"}
		container := reach(late, path...).(map[string]any)
		container["env"] = append(container["env"].([]any), own)
		out = p.created(late)
		if got := objects(reach(out, under(path, "env")...)); len(got) != 3 || got[0]["value"] != "192.0.2.7" {
			return fmt.Sprint(got)
		}
		return ""
	},
})
