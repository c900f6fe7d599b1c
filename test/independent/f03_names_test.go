// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const metricsService = `
apiVersion: v1
kind: Service
metadata:
  name: billing
  namespace: finance
  annotations: {metrics.northwind.io/expose: "true"}
spec:
  selector: {app: billing}
  ports:
    - {name: http, port: 80, protocol: TCP, targetPort: 8080}
`

var _ = add(hookCase{
	Name:    "F03b1-service-port-by-name",
	Summary: "The monitoring team wants a port 9102 called metrics in annotated Services. It is appended unless a port has that name.",
	Why:     "A port name is free, but a port number can be there only once. If the author or a webhook for naming conventions calls the port http-metrics, a second port 9102 makes the Service invalid.",
	Webhook: register("metrics.northwind.io", "", "v1", "services", create, update),
	Samples: []string{metricsService},
	New: func() http.Handler {
		return serve(func(r *admissionv1.AdmissionRequest) ([]byte, error) {
			var service corev1.Service
			if err := json.Unmarshal(r.Object.Raw, &service); err != nil {
				return nil, err
			}
			if service.Annotations["metrics.northwind.io/expose"] != "true" || service.Spec.Type == corev1.ServiceTypeExternalName || len(service.Spec.Ports) == 0 {
				return nil, nil
			}
			for _, port := range service.Spec.Ports {
				if port.Name == "metrics" || port.Name == "" {
					return nil, nil
				}
			}
			return operations([]patchOp{{Op: "add", Path: "/spec/ports/-", Value: corev1.ServicePort{
				Name: "metrics", Port: 9102, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(9102),
			}}})
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(metricsService))
		renamed := copyOf(live)
		for _, port := range objects(reach(renamed, "spec", "ports")) {
			if !strings.HasPrefix(str(port["name"]), "http") {
				port["name"] = "http-" + str(port["name"])
			}
		}
		n := 0
		for _, port := range objects(reach(p.updated(live, renamed), "spec", "ports")) {
			if fmt.Sprint(port["port"]) == "9102" {
				n++
			}
		}
		if n > 1 {
			return "port 9102/TCP is there twice"
		}
		return ""
	},
})

const metricsPair = `
apiVersion: v1
kind: Service
metadata:
  name: invoices
  namespace: finance
  labels: {northwind.io/scrape: "true"}
spec:
  selector: {app: invoices}
  ports:
    - {name: http, port: 80, protocol: TCP, targetPort: 8080}
    - {name: admin, port: 8081, protocol: TCP, targetPort: 8081}
`

var _ = add(hookCase{
	Name:    "F03c1-service-port-by-name-and-number",
	Summary: "The monitoring team wants a port 9102 called metrics in labelled Services. It is appended only if no port has that name or that number, and all ports have names.",
	Why:     "Both things that must be unique in a Service are compared. A port that was renamed is found by its number.",
	Webhook: onlyLabelled(register("scrape.northwind.io", "", "v1", "services", create, update), "northwind.io/scrape", "true"),
	Samples: []string{metricsPair},
	New: func() http.Handler {
		return serve(func(r *admissionv1.AdmissionRequest) ([]byte, error) {
			var service corev1.Service
			if err := json.Unmarshal(r.Object.Raw, &service); err != nil {
				return nil, err
			}
			if service.Spec.Type == corev1.ServiceTypeExternalName || len(service.Spec.Ports) == 0 {
				return nil, nil
			}
			for _, port := range service.Spec.Ports {
				if port.Name == "metrics" || port.Name == "" || port.Port == 9102 {
					return nil, nil
				}
			}
			return operations([]patchOp{{Op: "add", Path: "/spec/ports/-", Value: map[string]any{
				"name": "metrics", "port": 9102, "protocol": "TCP", "targetPort": 9102,
			}}})
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(metricsPair))
		for _, change := range []map[string]any{
			{"name": "http-metrics"}, {"port": 9200}, {"protocol": "UDP"}, {"targetPort": "prom"},
		} {
			object := copyOf(live)
			port := reach(object, "spec", "ports", "2").(map[string]any)
			for key, value := range change {
				port[key] = value
			}
			if out := p.updated(live, object); !same(normal(out), normal(object)) {
				return fmt.Sprint("a second port beside ", change)
			}
		}
		if out := p.updated(live, p.object(metricsPair)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})

var routeCRD = crdOf("edge.northwind.io", "v1beta1", "Route", "routes", `
            spec:
              type: object
              required: [host]
              properties:
                host: {type: string}
                gateway: {type: string}
                setHeaders:
                  type: array
                  nullable: true
                  items:
                    type: object
                    required: [name]
                    properties:
                      name: {type: string}
                      value: {type: string}
`)

const routeSample = `
apiVersion: edge.northwind.io/v1beta1
kind: Route
metadata: {name: portal, namespace: web}
spec:
  host: portal.northwind.example
  gateway: public
  setHeaders:
    - {name: X-Frame-Options, value: DENY}
`

// routeHook appends a header to Routes of the public gateway; equal compares the names of headers.
func routeHook(equal func(a, b string) bool) http.Handler {
	return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
		if str(e.get("spec", "gateway")) != "public" {
			return nil
		}
		for _, header := range objects(e.get("spec", "setHeaders")) {
			if equal(str(header["name"]), "X-Request-Source") {
				return nil
			}
		}
		e.push(map[string]any{"name": "X-Request-Source", "value": "internet"}, "spec", "setHeaders")
		return nil
	})
}

func lowerHeaders(route map[string]any) map[string]any {
	route = copyOf(route)
	for _, header := range objects(reach(route, "spec", "setHeaders")) {
		header["name"] = strings.ToLower(str(header["name"]))
	}
	return route
}

var _ = add(hookCase{
	Name:    "F03b2-header-name-case",
	Summary: "The edge team tells backends by a header that a request comes from the internet: the webhook appends the header to Routes of the public gateway, unless it is there.",
	Why:     "Names of headers have no case. After a webhook for HTTP/2 that writes all names in lower case, or if the author does so, the header is there twice.",
	Webhook: register("source.northwind.io", "edge.northwind.io", "v1beta1", "routes", create, update),
	Samples: []string{routeSample},
	CRDs:    []string{routeCRD},
	New:     func() http.Handler { return routeHook(func(a, b string) bool { return a == b }) },
	Proof: func(p *prover) string {
		live := p.created(p.object(routeSample))
		out := p.updated(live, lowerHeaders(live))
		if len(objects(reach(out, "spec", "setHeaders"))) > 2 {
			return fmt.Sprint(reach(out, "spec", "setHeaders"))
		}
		return ""
	},
})

var _ = add(hookCase{
	Name:    "F03c2-header-name-any-case",
	Summary: "As the edge team's other webhook for a header in Routes of the public gateway, but names of headers are compared in their canonical form.",
	Why:     "The header is found in any case, and a value of another party is kept. A list that is absent or null is written as a whole.",
	Webhook: register("source2.northwind.io", "edge.northwind.io", "v1beta1", "routes", create, update),
	Samples: []string{routeSample},
	CRDs:    []string{routeCRD},
	New: func() http.Handler {
		return routeHook(func(a, b string) bool {
			return textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(a)) == textproto.CanonicalMIMEHeaderKey(b)
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(routeSample))
		lower := lowerHeaders(live)
		if out := p.updated(live, lower); !same(normal(out), normal(lower)) {
			return "the header is added again in another case"
		}
		for _, list := range []any{nil, []any{}} {
			sparse := copyOf(live)
			set(sparse, list, "spec", "setHeaders")
			if out := p.updated(live, sparse); len(objects(reach(out, "spec", "setHeaders"))) != 1 {
				return "a sparse list is not filled"
			}
		}
		return ""
	},
})
