// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const t07DatabaseSample = `
apiVersion: db.fjord.example/v1
kind: PostgresCluster
metadata: {name: ledger, namespace: finance}
spec:
  instances: 3
`

var _ = add(hookCase{
	Name:    "T07b1-parameters-whole-map",
	Summary: "A PostgresCluster without max_connections gets it: the patch adds the map of parameters with the default in it.",
	Why:     "That is right for an absent or empty map only. If the author or another webhook later has other parameters but not this one, the map is replaced, and their parameters are lost.",
	Webhook: register("postgres.fjord.example", "db.fjord.example", "v1", "postgresclusters", create, update),
	Samples: []string{t07DatabaseSample},
	CRDs: []string{crdOf("db.fjord.example", "v1", "PostgresCluster", "postgresclusters", `
            spec:
              type: object
              properties:
                instances: {type: integer}
                parameters:
                  type: object
                  additionalProperties: {type: string}`)},
	New: func() http.Handler {
		return serve(func(req *admissionv1.AdmissionRequest) ([]byte, error) {
			var cluster struct {
				Spec struct {
					Parameters map[string]string `json:"parameters"`
				} `json:"spec"`
			}
			if err := json.Unmarshal(req.Object.Raw, &cluster); err != nil {
				return nil, err
			}
			if cluster.Spec.Parameters["max_connections"] != "" {
				return nil, nil
			}
			return operations([]patchOp{{"add", "/spec/parameters", map[string]string{"max_connections": "200"}}})
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t07DatabaseSample))
		other := copyOf(live)
		set(other, map[string]any{"work_mem": "64MB"}, "spec", "parameters")
		out := p.updated(live, other)
		if reach(out, "spec", "parameters", "work_mem") != "64MB" {
			return fmt.Sprintf("the parameters are %v", reach(out, "spec", "parameters"))
		}
		return ""
	},
})

const t07BackupSample = `
apiVersion: backup.fjord.example/v1
kind: BackupPlan
metadata: {name: nightly, namespace: finance}
spec:
  schedule: "0 1 * * *"
`

var _ = add(hookCase{
	Name:    "T07c1-retention-null-is-forever",
	Summary: "A BackupPlan that does not set retention keeps backups for 30 days. An empty retention gets 30 days too, but null means that backups are kept for ever.",
	Why:     "The field is nullable, and the webhook tells null from absent by the presence of the key. Absent and empty become 30 days, which is then kept. Null stays null in each call.",
	Webhook: register("retention.fjord.example", "backup.fjord.example", "v1", "backupplans", create, update),
	Samples: []string{t07BackupSample},
	CRDs: []string{crdOf("backup.fjord.example", "v1", "BackupPlan", "backupplans", `
            spec:
              type: object
              properties:
                schedule: {type: string}
                retention:
                  type: object
                  nullable: true
                  properties:
                    days: {type: integer}
                    copies: {type: integer}`)},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			spec, _ := e.get("spec").(map[string]any)
			value, there := spec["retention"]
			if there && value == nil {
				return nil
			}
			retention, _ := value.(map[string]any)
			if retention["days"] == nil && retention["copies"] == nil {
				e.set(30, "spec", "retention", "days")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t07BackupSample))
		for _, c := range []struct{ given, want any }{
			{nil, nil},
			{map[string]any{}, map[string]any{"days": 30.0}},
			{map[string]any{"days": 0.0}, map[string]any{"days": 0.0}},
			{map[string]any{"copies": 7.0}, map[string]any{"copies": 7.0}},
		} {
			other := copyOf(live)
			set(other, c.given, "spec", "retention")
			out := p.updated(live, other)
			if got := reach(out, "spec", "retention"); !same(got, c.want) || !same(p.updated(out, out), out) {
				return fmt.Sprintf("%v becomes %v", c.given, got)
			}
		}
		if out := p.updated(live, p.object(t07BackupSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})

const t07PoolSample = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: pricing
  namespace: shop
  annotations: {nodes.fjord.example/pool: general}
spec:
  replicas: 2
  selector:
    matchLabels: {app: pricing}
  template:
    metadata:
      labels: {app: pricing}
    spec:
      containers:
        - name: pricing
          image: registry.fjord.example/shop/pricing:10
`

const t07PoolKey = "nodes.fjord.example/pool"

type t07Pool struct{ decoder admission.Decoder }

func (x *t07Pool) Handle(_ context.Context, req admission.Request) admission.Response {
	d := &appsv1.Deployment{}
	if err := x.decoder.Decode(req, d); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	pool := d.Annotations[t07PoolKey]
	if pool == "" {
		return admission.Allowed("no pool")
	}
	spec := &d.Spec.Template.Spec
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := spec.Affinity.NodeAffinity
	if node.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		node.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	required := node.RequiredDuringSchedulingIgnoredDuringExecution
	want := corev1.NodeSelectorRequirement{Key: t07PoolKey, Operator: corev1.NodeSelectorOpIn, Values: []string{pool}}
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{want}}}
	}
	for i := range required.NodeSelectorTerms { // it is enough that one of the terms is met
		term := &required.NodeSelectorTerms[i]
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
			continue // such a term is never met
		}
		at := slices.IndexFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == t07PoolKey })
		if at < 0 {
			term.MatchExpressions = append(term.MatchExpressions, want)
		} else {
			term.MatchExpressions[at] = want
		}
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, raw)
}

var _ = add(hookCase{
	Name:    "T07c2-node-pool-in-each-term",
	Summary: "The pool of nodes in the annotation of a Deployment is required in the affinity of its pods. Each level that is absent is built, and each term gets the requirement.",
	Why:     "A term that has the key gets the value of the annotation in place, and only one without it is extended. So a later term of another webhook gets it too, a change of the annotation is followed, and nothing is doubled.",
	Webhook: register("pools.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t07PoolSample},
	New: func() http.Handler {
		return &admission.Webhook{Handler: &t07Pool{admission.NewDecoder(clientgoscheme.Scheme)}}
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t07PoolSample))
		node := []string{"spec", "template", "spec", "affinity", "nodeAffinity"}
		required := under(node, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		for _, sparse := range []any{nil, map[string]any{}, map[string]any{"nodeAffinity": nil}, map[string]any{"nodeAffinity": map[string]any{}}} {
			other := copyOf(live)
			set(other, sparse, "spec", "template", "spec", "affinity")
			if out := p.updated(live, other); !same(reach(out, required...), reach(live, required...)) {
				return fmt.Sprintf("%v becomes %v", sparse, reach(out, node...))
			}
		}
		other := copyOf(live)
		terms := append(reach(other, required...).([]any), map[string]any{"matchExpressions": []any{map[string]any{"key": "arch", "operator": "Exists"}}})
		set(other, terms, required...)
		set(other, "large", "metadata", "annotations", t07PoolKey)
		out := p.updated(live, other)
		for _, term := range objects(reach(out, required...)) {
			if text := fmt.Sprint(term["matchExpressions"]); strings.Count(text, t07PoolKey) != 1 || !strings.Contains(text, "[large]") {
				return text
			}
		}
		if !same(p.updated(out, out), out) {
			return "it changes again"
		}
		return ""
	},
})

const t07ConfigSample = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  namespace: shop
  labels: {config.fjord.example/kind: service}
data:
  log.level: WARN
`

var t07Defaults = map[string]string{"log.level": "info", "log.format": "json"}

var _ = add(hookCase{
	Name:    "T07c3-config-keys",
	Summary: "ConfigMaps of services get default keys for logs, and the level in small letters. In an update of an immutable ConfigMap, the keys come from the old object.",
	Why:     "A key in data or in binaryData is kept. An immutable ConfigMap that is replaced by its manifest gets what it had, so the server sees no change. Another value by the author is not hidden, and the server rejects it.",
	Webhook: register("config.fjord.example", "", "v1", "configmaps", create, update),
	Samples: []string{t07ConfigSample},
	New: func() http.Handler {
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("metadata", "labels", "config.fjord.example/kind")) != "service" {
				return nil
			}
			var old corev1.ConfigMap
			if r.Operation == admissionv1.Update {
				if err := json.Unmarshal(r.OldObject.Raw, &old); err != nil {
					return err
				}
			}
			fixed := old.Immutable != nil && *old.Immutable
			for _, key := range []string{"log.format", "log.level"} {
				if e.get("binaryData", key) != nil {
					continue
				}
				have, there := e.get("data", key).(string)
				want := have
				switch before, had := old.Data[key]; {
				case fixed && (!had || there && !strings.EqualFold(before, have)):
					continue
				case fixed:
					want = before
				case !there:
					want = t07Defaults[key]
				case key == "log.level":
					want = strings.ToLower(have)
				}
				if !there || want != have {
					e.set(want, "data", key)
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t07ConfigSample))
		if got := reach(live, "data"); !same(got, map[string]any{"log.level": "warn", "log.format": "json"}) {
			return fmt.Sprint(got)
		}
		for _, sparse := range []any{nil, map[string]any{}} {
			other := copyOf(live)
			other["data"] = sparse
			if got := reach(p.updated(live, other), "data"); !same(got, map[string]any{"log.level": "info", "log.format": "json"}) {
				return fmt.Sprint(got)
			}
		}
		fixed := p.object(t07ConfigSample)
		fixed["immutable"] = true
		live = p.created(fixed)
		if out := p.updated(live, fixed); !same(out, live) {
			return "the author's manifest changes an immutable ConfigMap"
		}
		old := copyOf(fixed)
		if out := p.updated(old, old); !same(out, old) {
			return "an old immutable ConfigMap is changed"
		}
		return ""
	},
})
