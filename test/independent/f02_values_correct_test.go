// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const logFormatSample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: dispatch, namespace: logistics}
spec:
  selector:
    matchLabels: {app: dispatch}
  template:
    metadata:
      labels: {app: dispatch}
      annotations: {logs.northwind.io/container: dispatch}
    spec:
      containers:
        - name: dispatch
          image: registry.northwind.io/logistics/dispatch:7.3.0
          args: ["serve", "--listen=:8080"]
        - name: cache
          image: registry.northwind.io/base/redis:7.2
`

var _ = add(hookCase{
	Name:    "F02c1-flag-in-any-form",
	Summary: "The logging team wants JSON logs: the container that an annotation names gets --log-format=json after its args, unless command or args have the flag in any form.",
	Why:     "The flag is found as a word, with one or two dashes, in any argument or variable. If the args are empty, end the flags with -- or start a shell, the webhook does nothing.",
	Webhook: register("logformat2.northwind.io", "apps", "v1", "deployments", create, update),
	Samples: []string{logFormatSample},
	New: func() http.Handler {
		flag := regexp.MustCompile(`(^|[^\w-])--?log-format($|[^\w-])`)
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			target := str(e.get("spec", "template", "metadata", "annotations", "logs.northwind.io/container"))
		containers:
			for i, c := range objects(e.get("spec", "template", "spec", "containers")) {
				command, _ := c["command"].([]any)
				args, _ := c["args"].([]any)
				if target == "" || str(c["name"]) != target || len(args) == 0 {
					continue
				}
				words := append(append([]any{}, command...), args...)
				for _, word := range words {
					if str(word) == "--" || str(word) == "-c" {
						continue containers
					}
				}
				for _, v := range objects(c["env"]) {
					words = append(words, v["value"]) // An argument may be $(OPTIONS).
				}
				for _, word := range words {
					if flag.MatchString(str(word)) {
						continue containers
					}
				}
				e.push("--log-format=json", under(templateSpec, "containers", index(i), "args")...)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		for _, args := range [][]any{
			{"serve", "--log-format", "text"},
			{"serve", "-log-format=text"},
			{"launch", "--", "serve", "--log-format=json"},
			{"sh", "-c", "exec /app serve --log-format=json"},
			{"exec /app serve '--log-format=text'"},
			{`--run=["serve","--log-format=json"]`},
		} {
			object := p.object(logFormatSample)
			reach(object, "spec", "template", "spec", "containers", "0").(map[string]any)["args"] = args
			out := p.created(object)
			if got := reach(out, "spec", "template", "spec", "containers", "0", "args").([]any); len(got) != len(args) {
				return fmt.Sprint("the flag is added to ", args)
			}
		}
		live := p.created(p.object(logFormatSample))
		other := p.object(logFormatSample)
		reach(other, "spec", "template", "spec", "containers", "0").(map[string]any)["args"] = []any{"serve", "--audit-log-format=xml"}
		if got := fmt.Sprint(reach(p.created(other), "spec", "template", "spec", "containers", "0", "args")); got != "[serve --audit-log-format=xml --log-format=json]" {
			return "another flag is taken for this one: " + got
		}
		if out := p.updated(live, p.object(logFormatSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})

var queueCRD = crdOf("messaging.northwind.io", "v1", "Queue", "queues", `
            spec:
              type: object
              properties:
                partitions: {type: integer, minimum: 1}
                retention: {type: string}
                deadLetter:
                  type: object
                  properties:
                    queue: {type: string}
                    maxAttempts: {type: integer}
`)

const queueSample = `
apiVersion: messaging.northwind.io/v1
kind: Queue
metadata:
  name: orders
  namespace: retail
  labels: {compliance: audited}
spec:
  partitions: 12
  retention: 90m
  deadLetter: {queue: orders-dead, maxAttempts: 5}
`

var _ = add(hookCase{
	Name:    "F02c2-least-retention",
	Summary: "The compliance office wants audited queues to keep messages for at least a day: a shorter or missing retention becomes 24h.",
	Why:     "Durations are compared as durations, so 1440m or 86400s is long enough and stays as it is. What cannot be read is left to the validation.",
	Webhook: onlyLabelled(register("retention.northwind.io", "messaging.northwind.io", "v1", "queues", create, update), "compliance", "audited"),
	Samples: []string{queueSample},
	CRDs:    []string{queueCRD},
	New: func() http.Handler {
		return runtimeStyle(func(_ context.Context, r admission.Request) admission.Response {
			var queue map[string]json.RawMessage
			if err := json.Unmarshal(r.Object.Raw, &queue); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			var spec *struct {
				Retention *string `json:"retention"`
			}
			if raw := queue["spec"]; raw != nil {
				if err := json.Unmarshal(raw, &spec); err != nil {
					return admission.Allowed("") // The schema denies it.
				}
			}
			if spec == nil {
				return admission.Patched("", jsonpatch.NewOperation("add", "/spec", map[string]any{"retention": "24h"}))
			}
			if spec.Retention != nil {
				if d, err := time.ParseDuration(*spec.Retention); err != nil || d >= 24*time.Hour {
					return admission.Allowed("")
				}
			}
			return admission.Patched("", jsonpatch.NewOperation("add", "/spec/retention", "24h"))
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(queueSample))
		if str(reach(live, "spec", "retention")) != "24h" || !same(reach(live, "spec", "deadLetter"), normal(p.object(queueSample))["spec"].(map[string]any)["deadLetter"]) {
			return fmt.Sprint("not raised, or something else is lost: ", live)
		}
		for _, form := range []string{"1440m", "86400s", "24h0m0s", "1000h", "forever"} {
			object := copyOf(live)
			set(object, form, "spec", "retention")
			if got := str(reach(p.updated(live, object), "spec", "retention")); got != form {
				return form + " becomes " + got
			}
		}
		for _, spec := range []any{nil, map[string]any{}, map[string]any{"retention": nil}} {
			object := copyOf(live)
			object["spec"] = spec
			if got := str(reach(p.updated(live, object), "spec", "retention")); got != "24h" {
				return "a sparse spec is not filled"
			}
		}
		return ""
	},
})

const clusterAttributes = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: fleet, namespace: logistics}
spec:
  selector:
    matchLabels: {app: fleet}
  template:
    metadata:
      labels: {app: fleet}
      annotations: {otel.northwind.io/attributes: "true"}
    spec:
      containers:
        - name: fleet
          image: registry.northwind.io/logistics/fleet:2.0.0
          env:
            - {name: OTEL_RESOURCE_ATTRIBUTES, value: "service.name=fleet"}
        - name: maps
          image: registry.northwind.io/logistics/maps:1.1.0
`

var _ = add(hookCase{
	Name:    "F02c3-cluster-pair-by-key",
	Summary: "The tracing team wants the name of the cluster in OTEL_RESOURCE_ATTRIBUTES of annotated Deployments. A pair is added unless one with this key is there.",
	Why:     "Keys are trimmed, unescaped and compared, and a value of another party is kept. A variable that comes from elsewhere, by valueFrom or perhaps envFrom, is left alone.",
	Webhook: register("otelcluster.northwind.io", "apps", "v1", "deployments", create, update),
	Samples: []string{clusterAttributes},
	New: func() http.Handler {
		const variable, key, pair = "OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name", "k8s.cluster.name=eu1"
		has := func(value string) bool {
			for _, have := range strings.Split(value, ",") {
				name, _, _ := strings.Cut(have, "=")
				name = strings.TrimSpace(name)
				if plain, err := url.PathUnescape(name); err == nil {
					name = plain
				}
				if name == key {
					return true
				}
			}
			return false
		}
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "template", "metadata", "annotations", "otel.northwind.io/attributes")) != "true" {
				return nil
			}
			for i, c := range objects(e.get("spec", "template", "spec", "containers")) {
				env := under(templateSpec, "containers", index(i), "env")
				last := -1 // Of two variables with one name, the last one counts.
				for j, v := range objects(c["env"]) {
					if str(v["name"]) == variable {
						last = j
					}
				}
				if last < 0 {
					if sources, _ := c["envFrom"].([]any); c != nil && len(sources) == 0 {
						e.push(map[string]any{"name": variable, "value": pair}, env...)
					}
					continue
				}
				value := str(e.get(under(env, index(last), "value")...))
				if e.get(under(env, index(last), "valueFrom")...) != nil || has(value) {
					continue
				}
				if trimmed := strings.TrimSpace(value); trimmed == "" || strings.HasSuffix(trimmed, ",") {
					value = trimmed + pair
				} else {
					value += "," + pair
				}
				e.set(value, under(env, index(last), "value")...)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(clusterAttributes))
		path := []string{"spec", "template", "spec", "containers", "0", "env", "0"}
		for _, value := range []string{
			"k8s.cluster.name=eu1,service.name=fleet", "service.name=fleet, k8s.cluster.name = eu1",
			"k8s%2Ecluster%2Ename=eu1", "k8s.cluster.name=mine", "a=b,k8s.cluster.name=eu1,c=d,",
		} {
			object := copyOf(live)
			reach(object, path...).(map[string]any)["value"] = value
			if got := reach(p.updated(live, object), path...).(map[string]any)["value"]; got != value {
				return fmt.Sprint(value, " becomes ", got)
			}
		}
		if out := p.updated(live, p.object(clusterAttributes)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})
