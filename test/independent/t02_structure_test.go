// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

const t02JavaSample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: quotes, namespace: insurance}
spec:
  replicas: 2
  selector:
    matchLabels: {app: quotes}
  template:
    metadata:
      labels: {app: quotes}
      annotations: {tracing.fjord.example/java: "true"}
    spec:
      containers:
        - name: quotes
          image: registry.fjord.example/insurance/quotes:2.7.0
          env:
            - {name: JAVA_TOOL_OPTIONS, value: -Xmx512m}
`

const t02Agent = "-javaagent:/fjord/tracing.jar"

var _ = add(hookCase{
	Name:    "T02b1-java-options-prefix",
	Summary: "The tracing agent goes to the front of JAVA_TOOL_OPTIONS, unless the value starts with it.",
	Why:     "Another webhook that puts its own option in front moves the agent to the second place. The next call does not see it there and adds it once more, so the JVM loads the agent twice.",
	Webhook: register("java.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t02JavaSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "template", "metadata", "annotations", "tracing.fjord.example/java")) != "true" {
				return nil
			}
			for i, c := range objects(e.get(under(templateSpec, "containers")...)) {
				env := under(templateSpec, "containers", index(i), "env")
				at := slices.Index(names(c["env"]), "JAVA_TOOL_OPTIONS")
				if at < 0 {
					e.push(map[string]any{"name": "JAVA_TOOL_OPTIONS", "value": t02Agent}, env...)
					continue
				}
				if value := str(e.get(under(env, index(at), "value")...)); !strings.HasPrefix(value, t02Agent) {
					e.set(strings.TrimSpace(t02Agent+" "+value), under(env, index(at), "value")...)
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t02JavaSample))
		other := copyOf(live)
		variable := reach(other, "spec", "template", "spec", "containers", "0", "env", "0").(map[string]any)
		variable["value"] = "-javaagent:/apm/apm.jar " + str(variable["value"])
		out := p.updated(live, other)
		value := str(reach(out, "spec", "template", "spec", "containers", "0", "env", "0", "value"))
		if strings.Count(value, t02Agent) != 1 {
			return value
		}
		return ""
	},
})

const t02ProxySample = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: rates, namespace: treasury}
spec:
  schedule: "15 4 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: rates
              image: registry.fjord.example/treasury/rates:1.8
              env:
                - {name: NO_PROXY, value: "bank.example, .SVC"}
`

var t02Direct = []string{"localhost", "127.0.0.1", ".svc", ".cluster.local", "10.0.0.0/8"}

// t02Union returns the entries of the list without duplicates, and then the missing entries.
func t02Union(value string) string {
	var out []string
	for _, entry := range append(strings.Split(value, ","), t02Direct...) {
		entry = strings.TrimSpace(entry)
		if entry != "" && !slices.ContainsFunc(out, func(s string) bool { return strings.EqualFold(s, entry) }) {
			out = append(out, entry)
		}
	}
	return strings.Join(out, ",")
}

var _ = add(hookCase{
	Name:    "T02c1-no-proxy-union",
	Summary: "Containers of CronJobs get the addresses of the proxy, and NO_PROXY gets the entries of the cluster. Doubles and blanks are removed from it. A no_proxy is only extended.",
	Why:     "The list is split, and only entries that are not there are appended, whatever the case of letters or the order. So the result has nothing to add. Variables from a Secret or ConfigMap are left alone.",
	Webhook: register("proxy.fjord.example", "batch", "v1", "cronjobs", create, update),
	Samples: []string{t02ProxySample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			pod := []string{"spec", "jobTemplate", "spec", "template", "spec"}
			for _, list := range []string{"initContainers", "containers"} {
				for i := range objects(e.get(under(pod, list)...)) {
					env := under(pod, list, index(i), "env")
					for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
						if !slices.Contains(names(e.get(env...)), name) {
							e.push(map[string]any{"name": name, "value": "http://proxy.fjord.example:3128"}, env...)
						}
					}
					if !slices.Contains(names(e.get(env...)), "NO_PROXY") {
						e.push(map[string]any{"name": "NO_PROXY", "value": t02Union("")}, env...)
					}
					for j, v := range objects(e.get(env...)) {
						if !strings.EqualFold(str(v["name"]), "NO_PROXY") || v["valueFrom"] != nil {
							continue
						}
						if want := t02Union(str(v["value"])); want != str(v["value"]) {
							e.set(want, under(env, index(j), "value")...)
						}
					}
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t02ProxySample))
		if out := p.updated(live, p.object(t02ProxySample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		value := []string{"spec", "jobTemplate", "spec", "template", "spec", "containers", "0", "env", "0", "value"}
		if got := reach(live, value...); got != "bank.example,.SVC,localhost,127.0.0.1,.cluster.local,10.0.0.0/8" {
			return fmt.Sprint(got)
		}
		other := copyOf(live)
		reach(other, value[:len(value)-1]...).(map[string]any)["value"] = "10.0.0.0/8,.cluster.local,.svc,127.0.0.1,localhost,other.example"
		if out := p.updated(live, other); !same(out, other) {
			return "another order is changed"
		}
		return ""
	},
})

const t02AlbSample = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: portal
  namespace: web
  annotations:
    alb.ingress.kubernetes.io/listen-ports: '[{"HTTP": 80}]'
spec:
  ingressClassName: alb
  defaultBackend:
    service: {name: portal, port: {number: 8080}}
`

const (
	t02Ports    = "alb.ingress.kubernetes.io/listen-ports"
	t02Redirect = "alb.ingress.kubernetes.io/ssl-redirect"
)

var _ = add(hookCase{
	Name:    "T02c2-listen-ports-json",
	Summary: "Ingresses of class alb must listen on HTTPS. If no port does, the webhook adds 443 to the JSON list of the ports. The redirect must go to a port with HTTPS.",
	Why:     "The list is parsed, so blanks and order do not matter, and a list that has HTTPS is not written again. A redirect to one of its ports is kept, and follows if the port goes. A value that is no such list is left for the controller to complain about.",
	Webhook: register("alb.fjord.example", "networking.k8s.io", "v1", "ingresses", create, update),
	Samples: []string{t02AlbSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "ingressClassName")) != "alb" {
				return nil
			}
			ports := []map[string]int{{"HTTP": 80}}
			if value := str(e.get("metadata", "annotations", t02Ports)); value != "" {
				ports = nil
				if err := json.Unmarshal([]byte(value), &ports); err != nil {
					return nil
				}
			}
			var secure []string
			for _, port := range ports {
				if n, there := port["HTTPS"]; there {
					secure = append(secure, strconv.Itoa(n))
				}
			}
			if len(secure) == 0 {
				secure = []string{"443"}
				value, err := json.Marshal(append(ports, map[string]int{"HTTPS": 443}))
				if err != nil {
					return err
				}
				e.set(string(value), "metadata", "annotations", t02Ports)
			}
			if !slices.Contains(secure, str(e.get("metadata", "annotations", t02Redirect))) {
				e.set(secure[0], "metadata", "annotations", t02Redirect)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t02AlbSample))
		if got := reach(live, "metadata", "annotations", t02Ports); got != `[{"HTTP":80},{"HTTPS":443}]` {
			return fmt.Sprint(got)
		}
		other := copyOf(live)
		set(other, `[ {"HTTPS": 443}, {"HTTP": 80} ]`, "metadata", "annotations", t02Ports)
		if out := p.updated(live, other); !same(out, other) {
			return "another form of the list is changed"
		}
		set(other, `[{"HTTPS":8443}]`, "metadata", "annotations", t02Ports)
		if got := reach(p.updated(live, other), "metadata", "annotations", t02Redirect); got != "8443" {
			return fmt.Sprint("redirects to ", got)
		}
		if out := p.updated(live, p.object(t02AlbSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})

const t02GatesSample = `
apiVersion: agents.fjord.example/v1
kind: AgentConfig
metadata: {name: default, namespace: platform}
spec:
  featureGates: "Turbo=1, Audit=false,Turbo=true"
`

// t02Gates sorts the gates; the last value of a gate counts. FIPS is always on.
func t02Gates(value string) string {
	gates := map[string]string{}
	for _, item := range strings.Split(value, ",") {
		name, on, _ := strings.Cut(strings.TrimSpace(item), "=")
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		gates[name] = strings.TrimSpace(on)
		if b, err := strconv.ParseBool(gates[name]); err == nil {
			gates[name] = strconv.FormatBool(b)
		}
	}
	gates["FIPS"] = "true"
	var out []string
	for name, on := range gates {
		out = append(out, name+"="+on)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

var _ = add(hookCase{
	Name:    "T02c3-feature-gates-sorted",
	Summary: "The feature gates of an AgentConfig are a string. The webhook sorts them, keeps the last value of each, writes true or false, and switches FIPS on.",
	Why:     "The gates pass through a map, but they are sorted before they are joined. The sorted form of the sorted form is itself.",
	Webhook: register("gates.fjord.example", "agents.fjord.example", "v1", "agentconfigs", create, update),
	Samples: []string{t02GatesSample},
	CRDs: []string{crdOf("agents.fjord.example", "v1", "AgentConfig", "agentconfigs", `
            spec:
              type: object
              properties:
                featureGates: {type: string}
                logLevel: {type: string}`)},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			have := str(e.get("spec", "featureGates"))
			if want := t02Gates(have); want != have {
				e.set(want, "spec", "featureGates")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t02GatesSample))
		if got := reach(live, "spec", "featureGates"); got != "Audit=false,FIPS=true,Turbo=true" {
			return fmt.Sprint(got)
		}
		off := copyOf(live)
		set(off, "FIPS=false,Turbo=true,Audit=f", "spec", "featureGates")
		if out := p.updated(live, off); !same(out, live) {
			return fmt.Sprint(out)
		}
		empty := copyOf(live)
		empty["spec"] = map[string]any{}
		if out := p.updated(live, empty); reach(out, "spec", "featureGates") != "FIPS=true" {
			return fmt.Sprint(out)
		}
		return ""
	},
})
