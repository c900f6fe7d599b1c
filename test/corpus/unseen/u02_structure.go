// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func structureBugs() []Case {
	return []Case{{
		Name:    "U02b1-excluded-ports-list",
		Kind:    "Pod",
		Summary: "excludes the health port 15020 from the redirection of a mesh, in a list with commas",
		Why: "CREATE a Pod; another webhook writes the list with a blank after each comma; the second call looks for " +
			"\"15020\", finds only \" 15020\" and appends the port again.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			ports, ok := dict(pod, "metadata", "annotations")[excludedPorts].(string)
			if !ok || slices.Contains(strings.Split(ports, ","), "15020") {
				return nil, nil
			}
			return annotate(pod, excludedPorts, ports+",15020"), nil
		}),
		Sample: portsPod,
		Proof:  wrongAfter(spaceOut, portsRepeat),
	}, {
		Name:    "U02b2-exporters-in-json",
		Kind:    "Deployment",
		Summary: "adds the audit exporter to a telemetry configuration, which is JSON in an annotation",
		Why: "CREATE a Deployment; a controller adds its exporter at the front of the list and UPDATEs; the webhook " +
			"looks for its exporter right behind the bracket, and inserts it a second time.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			have := req.Object.Annotations[telemetry]
			if have != "" && !strings.Contains(have, `"exporters":["audit"`) {
				req.Object.Annotations[telemetry] = strings.Replace(
					strings.Replace(have, `"exporters":[`, `"exporters":["audit",`, 1), `"audit",]`, `"audit"]`, 1)
			}
			return nil
		}),
		Sample: telemetryDeployment,
		Proof: wrongAfter(func(o object) {
			have := annotation(o, telemetry)
			put(o, strings.Replace(have, `"exporters":[`, `"exporters":["prom",`, 1), "metadata", "annotations", telemetry)
		}, func(o object) string {
			if have := annotation(o, telemetry); strings.Count(have, `"audit"`) != 1 {
				return "the exporter is not there once: " + have
			}
			return ""
		}),
	}, {
		Name:    "U02b3-memory-overhead-mark",
		Kind:    "Deployment",
		Summary: "adds 512Mi for a profiler to the memory limit, and notes the new limit in an annotation",
		Why: "CREATE a Deployment with a limit of 1536Mi: the webhook notes 2048Mi, the API server stores the limit as " +
			"2Gi. On the next UPDATE the texts differ, so the limit becomes 2560Mi.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			for i := range req.Object.Spec.Template.Spec.Containers {
				addOverhead(req.Object, &req.Object.Spec.Template.Spec.Containers[i])
			}
			return nil
		}),
		Sample: profiledDeployment,
		Proof: twiceAfter(func(o object) {
			put(o, "1536Mi", "spec", "template", "spec", "containers", 0, "resources", "limits", "memory")
		}),
	}, {
		Name:    "U02b4-spring-properties",
		Kind:    "ConfigMap",
		Summary: "turns the health endpoint on in application.properties",
		Why: "CREATE a ConfigMap; a formatter writes blanks around the equals signs and UPDATEs; the webhook looks for " +
			"a line that begins with the key and an equals sign, and appends the line again.",
		Webhook: configMapsOnWrite,
		Sample:  springConfigMap,
		Proof:   wrongAfter(spreadProperties, propertyRepeats),
	}, {
		Name:    "U02b5-log-endpoint-team",
		Kind:    "Pod",
		Summary: "adds the team to the query of the URL in LOG_ENDPOINT",
		Why: "CREATE a Pod; another webhook appends &region=eu-1 to the URL; the second call finds that the URL does not " +
			"end with the team, and appends a second query.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			suffix := "?team=" + text(pod, "metadata", "labels", "team")
			return eachEndpoint(pod, func(value string) string {
				if strings.HasSuffix(value, suffix) {
					return value
				}
				return value + suffix
			}), nil
		}),
		Sample: endpointPod,
		Proof: wrongAfter(func(o object) {
			have := text(o, "spec", "containers", 0, "env", 1, "value")
			put(o, have+"&region=eu-1", "spec", "containers", 0, "env", 1, "value")
		}, func(o object) string {
			have := text(o, "spec", "containers", 0, "env", 1, "value")
			u, err := url.Parse(have)
			if err != nil || u.Query().Get("region") != "eu-1" || u.Query().Get("team") != "pay" || strings.Count(have, "team=") != 1 {
				return "the URL is broken: " + have
			}
			return ""
		}),
	}}
}

const (
	excludedPorts = "network.example.com/exclude-ports"
	telemetry     = "telemetry.example.com/config"
	profiler      = "profiler.example.com/limit."
)

// addOverhead raises the memory limit, unless its text equals the recorded one. Equal quantities can be written
// differently.
func addOverhead(d *appsv1.Deployment, c *corev1.Container) {
	limit, ok := c.Resources.Limits[corev1.ResourceMemory]
	if !ok || d.Labels["profiler"] != "on" || d.Annotations[profiler+c.Name] == limit.String() {
		return
	}
	noted := fmt.Sprintf("%dMi", limit.Value()>>20+512)
	c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(noted)
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[profiler+c.Name] = noted
}

// eachEndpoint returns operations that change LOG_ENDPOINT in all containers.
func eachEndpoint(pod object, change func(string) string) []operation {
	if text(pod, "metadata", "labels", "team") == "" {
		return nil
	}
	var ops []operation
	for _, field := range []string{"initContainers", "containers"} {
		for i, c := range list(pod, "spec", field) {
			for j, e := range list(c, "env") {
				have := text(e, "value")
				if text(e, "name") == "LOG_ENDPOINT" && have != "" && change(have) != have {
					ops = append(ops, replace(pointer("spec", field, i, "env", j, "value"), change(have)))
				}
			}
		}
	}
	return ops
}

// spaceOut writes the list with a blank after each comma.
func spaceOut(o object) {
	put(o, strings.ReplaceAll(annotation(o, excludedPorts), ",", ", "), "metadata", "annotations", excludedPorts)
}

func portsRepeat(o object) string {
	ports := strings.Split(strings.ReplaceAll(annotation(o, excludedPorts), " ", ""), ",")
	return repeated("port", ports)
}

// spreadProperties puts blanks around equals signs.
func spreadProperties(o object) {
	const file = "application.properties"
	put(o, strings.ReplaceAll(text(o, "data", file), "=", " = "), "data", file)
}

func propertyRepeats(o object) string {
	var keys []string
	for _, line := range strings.Split(text(o, "data", "application.properties"), "\n") {
		if key, _, ok := strings.Cut(line, "="); ok {
			keys = append(keys, strings.TrimSpace(key))
		}
	}
	return repeated("property", keys)
}

const (
	portsPod = podHead + `
metadata:
  name: cart
  namespace: shop
  annotations: {network.example.com/exclude-ports: "9090,9443"}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	telemetryDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: cart
  namespace: shop
  annotations: {telemetry.example.com/config: '{"sampling":0.1,"exporters":["otlp"]}'}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	profiledDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: search
  namespace: shop
  labels: {profiler: "on"}
spec:
  selector: {matchLabels: {app: search}}
  template:
    metadata: {labels: {app: search}}
    spec:
      containers:
      - name: search
        image: registry.example.com/shop/search:8.2
        resources: {limits: {memory: 1Gi}}
`
	springConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: orders-config, namespace: shop, labels: {framework: spring}}
data:
  application.properties: |
    server.port=8080
    spring.application.name=orders
`
	endpointPod = podHead + `
metadata: {name: pay, namespace: shop, labels: {team: pay}}
spec:
  containers:
  - name: pay
    image: registry.example.com/shop/pay:1.3
    env:
    - {name: MODE, value: live}
    - {name: LOG_ENDPOINT, value: "https://logs.example.com/v2/push"}
`
)
