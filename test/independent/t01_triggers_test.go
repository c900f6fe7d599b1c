// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

const t01AgentSample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: billing, namespace: finance}
spec:
  replicas: 2
  selector:
    matchLabels: {app: billing}
  template:
    metadata:
      labels: {app: billing}
      annotations: {agent.fjord.example/inject: "true"}
    spec:
      containers:
        - name: billing
          image: registry.fjord.example/finance/billing:4.1.0
`

const t01AgentMount = "/fjord/secrets"

func t01Mounts(container map[string]any) bool {
	return slices.ContainsFunc(objects(container["volumeMounts"]), func(m map[string]any) bool {
		return strings.TrimRight(str(m["mountPath"]), "/") == t01AgentMount
	})
}

var _ = add(hookCase{
	Name:    "T01b1-agent-status-annotation",
	Summary: "A secret agent is injected in annotated Deployments, with a mount of the secrets in each container. The annotation agent.fjord.example/status: injected tells that this is done.",
	Why:     "The status switches the webhook off for good. A container that another webhook or a later UPDATE adds gets no mount, because the status says that all is done.",
	Webhook: register("agent.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t01AgentSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			annotations := []string{"spec", "template", "metadata", "annotations"}
			if str(e.get(under(annotations, "agent.fjord.example/inject")...)) != "true" ||
				str(e.get(under(annotations, "agent.fjord.example/status")...)) == "injected" {
				return nil
			}
			mount := map[string]any{"name": "fjord-secrets", "mountPath": t01AgentMount}
			for i := range objects(e.get(under(templateSpec, "containers")...)) {
				e.push(mount, under(templateSpec, "containers", index(i), "volumeMounts")...)
			}
			e.push(map[string]any{"name": "fjord-secrets", "emptyDir": map[string]any{"medium": "Memory"}}, under(templateSpec, "volumes")...)
			e.push(map[string]any{
				"name": "fjord-agent", "image": "registry.fjord.example/agent:2.3", "volumeMounts": []any{mount},
			}, under(templateSpec, "containers")...)
			e.set("injected", under(annotations, "agent.fjord.example/status")...)
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t01AgentSample))
		out := p.updated(live, withFront(live, map[string]any{"name": "late", "image": "registry.fjord.example/late:1"}))
		for _, c := range objects(reach(out, "spec", "template", "spec", "containers")) {
			if !t01Mounts(c) {
				return fmt.Sprintf("container %v has no secrets", c["name"])
			}
		}
		return ""
	},
})

const t01TailSample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders, namespace: shop}
spec:
  replicas: 2
  selector:
    matchLabels: {app: orders}
  template:
    metadata:
      labels: {app: orders}
      annotations: {logs.fjord.example/tail: "Yes"}
    spec:
      containers:
        - name: orders
          image: registry.fjord.example/shop/orders:9.0.2
`

// t01Without returns the list without the items of a name.
func t01Without(list []map[string]any, name string) []any {
	out := []any{}
	for _, item := range list {
		if str(item["name"]) != name {
			out = append(out, item)
		}
	}
	return out
}

func t01TailOn(e *editor) {
	containers := under(templateSpec, "containers")
	at := slices.Index(names(e.get(containers...)), "log-tail")
	if at < 0 {
		at = len(names(e.get(containers...)))
		e.push(map[string]any{"name": "log-tail", "image": "registry.fjord.example/log-tail:0.9", "args": []any{"--state=/var/lib/tail"}}, containers...)
	}
	mounts := under(containers, index(at), "volumeMounts")
	mounted := slices.ContainsFunc(objects(e.get(mounts...)), func(m map[string]any) bool {
		return strings.TrimRight(str(m["mountPath"]), "/") == "/var/lib/tail"
	})
	if !mounted {
		e.push(map[string]any{"name": "tail-state", "mountPath": "/var/lib/tail"}, mounts...)
	}
	volumes := under(templateSpec, "volumes")
	if t01Used(e, "tail-state") && !slices.Contains(names(e.get(volumes...)), "tail-state") {
		e.push(map[string]any{"name": "tail-state", "emptyDir": map[string]any{}}, volumes...)
	}
}

func t01Used(e *editor, volume string) bool {
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range objects(e.get(under(templateSpec, list)...)) {
			if slices.Contains(names(c["volumeMounts"]), volume) {
				return true
			}
		}
	}
	return false
}

func t01TailOff(e *editor) {
	containers := under(templateSpec, "containers")
	all := objects(e.get(containers...))
	if rest := t01Without(all, "log-tail"); len(rest) > 0 && len(rest) < len(all) {
		e.set(rest, containers...)
	}
	volumes := under(templateSpec, "volumes")
	all = objects(e.get(volumes...))
	switch rest := t01Without(all, "tail-state"); {
	case t01Used(e, "tail-state") || len(rest) == len(all):
	case len(rest) == 0:
		e.drop(volumes...)
	default:
		e.set(rest, volumes...)
	}
}

var _ = add(hookCase{
	Name:    "T01c1-log-tail-switch",
	Summary: "The annotation logs.fjord.example/tail of the pods may be yes, on, 1 or true, or the opposite. The webhook writes it as true or false, and adds or removes the container log-tail.",
	Why:     "The words true and false mean the same in the next call. The container, its mount and its volume are each added only if absent, and a removed part is restored. Off removes what on has added. Without the annotation nothing is done.",
	Webhook: register("tail.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t01TailSample, strings.Replace(t01TailSample, `"Yes"`, `"0"`, 1)},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			annotation := []string{"spec", "template", "metadata", "annotations", "logs.fjord.example/tail"}
			value := str(e.get(annotation...))
			switch strings.ToLower(strings.TrimSpace(value)) {
			case "true", "yes", "on", "1":
				if value != "true" {
					e.set("true", annotation...)
				}
				t01TailOn(e)
			case "false", "no", "off", "0":
				if value != "false" {
					e.set("false", annotation...)
				}
				t01TailOff(e)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t01TailSample))
		if out := p.updated(live, p.object(t01TailSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		off := copyOf(live)
		set(off, "off", "spec", "template", "metadata", "annotations", "logs.fjord.example/tail")
		out := p.updated(live, off)
		spec := reach(out, templateSpec...).(map[string]any)
		if got := names(spec["containers"]); !slices.Equal(got, []string{"orders"}) || spec["volumes"] != nil {
			return fmt.Sprintf("off leaves %q and %v", got, spec["volumes"])
		}
		bare := copyOf(live)
		delete(reach(bare, templateSpec...).(map[string]any), "volumes")
		if again := p.updated(live, bare); !same(again, live) {
			return "the volume is not restored"
		}
		return ""
	},
})

const t01NamespaceSample = `
apiVersion: v1
kind: Namespace
metadata:
  name: cards
  labels: {compliance.fjord.example/scope: pci}
`

var t01Levels = []string{"privileged", "baseline", "restricted"}

var _ = add(hookCase{
	Name:    "T01c2-pod-security-ratchet",
	Summary: "Each namespace enforces at least the baseline Pod Security level, and restricted if the label compliance.fjord.example/scope is pci or hipaa. Warnings are at least as strict as what is enforced.",
	Why:     "The webhook only raises a level, to the highest of what is asked. A stricter level is kept, so no call undoes another. The version of the policy is only set if it is absent.",
	Webhook: register("podsecurity.fjord.example", "", "v1", "namespaces", create, update),
	Samples: []string{t01NamespaceSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if strings.HasPrefix(str(e.get("metadata", "name")), "kube-") {
				return nil
			}
			wanted := 1
			if scope := str(e.get("metadata", "labels", "compliance.fjord.example/scope")); scope == "pci" || scope == "hipaa" {
				wanted = 2
			}
			for _, mode := range []string{"enforce", "warn"} {
				key := "pod-security.kubernetes.io/" + mode
				have := slices.Index(t01Levels, str(e.get("metadata", "labels", key)))
				if have < wanted {
					e.set(t01Levels[wanted], "metadata", "labels", key)
				}
				wanted = max(have, wanted)
			}
			if str(e.get("metadata", "labels", "pod-security.kubernetes.io/enforce-version")) == "" {
				e.set("latest", "metadata", "labels", "pod-security.kubernetes.io/enforce-version")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t01NamespaceSample))
		lower := copyOf(live)
		set(lower, "privileged", "metadata", "labels", "pod-security.kubernetes.io/enforce")
		if out := p.updated(live, lower); !same(out, live) {
			return "a lower level stays"
		}
		plain := p.object(t01NamespaceSample)
		plain["metadata"].(map[string]any)["labels"] = map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}
		out := p.created(plain)
		if got := reach(out, "metadata", "labels", "pod-security.kubernetes.io/warn"); got != "restricted" {
			return fmt.Sprint("warns about ", got)
		}
		plain["metadata"].(map[string]any)["labels"] = nil
		out = p.created(plain)
		if got := reach(out, "metadata", "labels", "pod-security.kubernetes.io/enforce"); got != "baseline" {
			return fmt.Sprint("enforces ", got)
		}
		return ""
	},
})
