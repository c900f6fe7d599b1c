// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func structureDoneRight() []Case {
	return []Case{{
		Name:    "U02c1-excluded-ports-trimmed",
		Kind:    "Pod",
		Summary: "excludes the health port 15020 from the redirection of a mesh, in a list with commas",
		Why:     "The elements of the list are compared without the blanks around them.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			ports, ok := dict(pod, "metadata", "annotations")[excludedPorts].(string)
			if !ok {
				return nil, nil
			}
			for _, p := range strings.Split(ports, ",") {
				if strings.TrimSpace(p) == "15020" {
					return nil, nil
				}
			}
			return annotate(pod, excludedPorts, strings.TrimPrefix(ports+",15020", ",")), nil
		}),
		Sample: portsPod,
		Proof:  wrongAfter(spaceOut, portsRepeat),
	}, {
		Name:    "U02c2-exporters-parsed",
		Kind:    "Deployment",
		Summary: "adds the audit exporter to a telemetry configuration, which is JSON in an annotation",
		Why:     "The JSON is parsed, only a missing exporter is appended, and what is not such JSON is left alone.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			if have := req.Object.Annotations[telemetry]; have != "" {
				req.Object.Annotations[telemetry] = withExporter(have)
			}
			return nil
		}),
		Sample: telemetryDeployment,
		Proof: againAfter(func(o object) {
			put(o, `{ "exporters": ["prom", "audit"], "sampling": 0.10 }`, "metadata", "annotations", telemetry)
		}),
	}, {
		Name:    "U02c3-memory-floor",
		Kind:    "Deployment",
		Summary: "raises memory limits below 2Gi for the profiler",
		Why:     "Limits are compared as quantities, and 2Gi is 2048Mi.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			floor := resource.MustParse("2048Mi")
			if req.Object.Labels["profiler"] != "on" {
				return nil
			}
			for _, c := range req.Object.Spec.Template.Spec.Containers {
				if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && limit.Cmp(floor) < 0 {
					c.Resources.Limits[corev1.ResourceMemory] = floor
				}
			}
			return nil
		}),
		Sample: profiledDeployment,
	}, {
		Name:    "U02c4-spring-properties-parsed",
		Kind:    "ConfigMap",
		Summary: "turns the health endpoint on in application.properties, unless the file says something about it",
		Why:     "Keys are compared without the blanks around them, and a comment is not a key.",
		Webhook: configMapsOnWrite,
		Sample:  springConfigMap,
		Proof:   wrongAfter(spreadProperties, propertyRepeats),
	}, {
		Name:    "U02c5-log-endpoint-query",
		Kind:    "Pod",
		Summary: "adds the team to the query of the URL in LOG_ENDPOINT",
		Why:     "The query is parsed. A URL with a team is left alone, whatever else it has.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			team := text(pod, "metadata", "labels", "team")
			return eachEndpoint(pod, func(value string) string { return withTeam(value, team) }), nil
		}),
		Sample: endpointPod,
		Proof: wrongAfter(func(o object) {
			have := text(o, "spec", "containers", 0, "env", 1, "value")
			put(o, have+"&region=eu-1", "spec", "containers", 0, "env", 1, "value")
		}, func(o object) string {
			if have := text(o, "spec", "containers", 0, "env", 1, "value"); strings.Count(have, "team=") != 1 {
				return "the URL is broken: " + have
			}
			return ""
		}),
	}, {
		Name:    "U02c6-idle-timeout-cap",
		Kind:    "Ingress",
		Summary: "caps the idle timeout of an Ingress at a minute",
		Why:     "Durations are parsed, so 1m and 60s are both at the cap, and only longer ones are replaced.",
		Webhook: ingressesOnWrite,
		build: typed(func(req *webhook.Request[networkingv1.Ingress]) error {
			const key = "ingress.example.com/idle-timeout"
			if d, err := time.ParseDuration(req.Object.Annotations[key]); err == nil && d > time.Minute {
				req.Object.Annotations[key] = "60s"
			}
			return nil
		}),
		Sample: `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: cart, namespace: shop, annotations: {ingress.example.com/idle-timeout: 5m}}
spec: {defaultBackend: {service: {name: cart, port: {number: 80}}}}
`,
		Proof: againAfter(func(o object) {
			put(o, "1m", "metadata", "annotations", "ingress.example.com/idle-timeout")
		}),
	}, {
		Name:    "U02c7-no-proxy-hosts",
		Kind:    "Pod",
		Summary: "adds the hosts of the cluster to NO_PROXY where HTTPS_PROXY is set",
		Why:     "Hosts are compared without blanks and in lower case, and only missing ones are appended.",
		Webhook: podsOnCreate,
		Sample: podHead + `
metadata: {name: pay, namespace: shop}
spec:
  containers:
  - name: pay
    image: registry.example.com/shop/pay:1.3
    env:
    - {name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}
    - {name: NO_PROXY, value: "localhost, .SVC"}
`,
	}, {
		Name:    "U02c8-json-log-format",
		Kind:    "ConfigMap",
		Summary: "sets the log format in settings.json where it is missing",
		Why:     "A document that has the key is left as it is, other members keep their text, immutable ConfigMaps stay.",
		Webhook: configMapsOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, cm object) ([]operation, error) {
			var settings map[string]json.RawMessage
			have := text(cm, "data", "settings.json")
			if isImmutable(cm) || json.Unmarshal([]byte(have), &settings) != nil || settings == nil || settings["logFormat"] != nil {
				return nil, nil
			}
			settings["logFormat"] = json.RawMessage(`"json"`)
			return []operation{replace("/data/settings.json", string(encode(settings)))}, nil
		}),
		Sample: `
apiVersion: v1
kind: ConfigMap
metadata: {name: cart-settings, namespace: shop}
data: {settings.json: '{"limit": 12345678901234567890, "debug": false}', README: "see the wiki"}
`,
	}}
}

// withExporter appends the exporter to the list in a JSON document.
func withExporter(doc string) string {
	var config map[string]json.RawMessage
	var exporters []string
	if json.Unmarshal([]byte(doc), &config) != nil || json.Unmarshal(config["exporters"], &exporters) != nil ||
		slices.Contains(exporters, "audit") {
		return doc
	}
	config["exporters"] = encode(append(exporters, "audit"))
	return string(encode(config))
}

// withTeam adds the parameter to the query of a URL.
func withTeam(value, team string) string {
	u, err := url.Parse(value)
	if err != nil || u.Query().Has("team") {
		return value
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "team=" + url.QueryEscape(team)
	return u.String()
}
