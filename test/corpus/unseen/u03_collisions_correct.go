// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func collisionsDoneRight() []Case {
	return []Case{{
		Name:    "U03c1-vault-role-keys-with-hash",
		Kind:    "Pod",
		Summary: "notes the Vault role of each container in an annotation, whose key has the name of the container",
		Why:     "A key that would be too long is cut, and ends with a hash of the whole name, so no two keys are equal.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			if req.Object.Annotations["vault.example.com/inject"] == "true" {
				eachContainer(&req.Object.Spec, func(c *corev1.Container) {
					req.Object.Annotations["vault.example.com/"+roleKey(c.Name)] = req.Namespace + "/" + c.Name
				})
			}
			return nil
		}),
		Sample: vaultPod,
		Proof: allSteps(twice, againAfter(addContainer(lateContainer)), wrongFor(longNames, func(o object) string {
			if n := len(dict(o, "metadata", "annotations")); n != 5 {
				return fmt.Sprintf("there are %d annotations for four containers", n)
			}
			return ""
		})),
	}, {
		Name:    "U03c2-scratch-volume-by-path",
		Kind:    "Deployment",
		Summary: "gives each container a directory of its own in one scratch volume",
		Why:     "The directory is named as the container, which is unique in a Pod. A volume of another type is denied.",
		Webhook: deploymentsOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, d object) ([]operation, error) {
			if isDeleting(d) {
				return nil, nil
			}
			return addScratch(d, func(string) string { return "scratch" }, "name")
		}),
		Sample: scratchDeployment,
		Proof:  allSteps(twice, againAfter(addContainer(lateContainer, inTemplate...))),
	}, {
		Name:    "U03c3-tls-secret-keeps-dots",
		Kind:    "Ingress",
		Summary: "adds a TLS entry for each host that has none, with a Secret named after the host",
		Why:     "Secrets may have dots in their names, so different hosts have different Secrets.",
		Webhook: ingressesOnWrite,
		Sample:  hostIngress,
		Proof:   allSteps(twice, wrongAfter(dashedHost, hostsWithoutTLS)),
	}, {
		Name:    "U03c4-log-shipper-once",
		Kind:    "Pod",
		Summary: "adds a log shipper to Pods that ask for one and have none",
		Why:     "Containers, init containers and ephemeral containers share their names, and it looks at all of them.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			spec := &req.Object.Spec
			isShipper := func(c corev1.EphemeralContainer) bool { return c.Name == logShipper.Name }
			if req.Object.Labels["logs.example.com/ship"] == "yes" && !hasContainer(spec, logShipper.Name) &&
				!slices.ContainsFunc(spec.EphemeralContainers, isShipper) {
				spec.Containers = append(spec.Containers, logShipper)
			}
			return nil
		}),
		Sample: loggingPod,
		Proof:  allSteps(twice, wrongFor(shipperInInit, containersRepeat)),
	}, {
		Name:    "U03c5-upper-case-keys-checked",
		Kind:    "ConfigMap",
		Summary: "copies each key to one that can be the name of a variable: db.host to DB_HOST",
		Why:     "ConfigMaps with two keys that would get one name are denied, in every call alike.",
		Webhook: configMapsOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, cm object) ([]operation, error) {
			if annotation(cm, "config.example.com/as-env") == "" || isDeleting(cm) || isImmutable(cm) {
				return nil, nil
			}
			data, copies, source := dict(cm, "data"), object{}, map[string]string{}
			for _, key := range sortedKeys(data) {
				name := variable(key)
				if name == key {
					continue
				}
				if other, taken := source[name]; taken {
					return nil, fmt.Errorf("%w: the keys %s and %s would both be copied to %s", errDenied, other, key, name)
				}
				if dict(cm, "binaryData")[name] != nil {
					return nil, fmt.Errorf("%w: the key %s is among the binary data", errDenied, name)
				}
				copies[name], source[name] = data[key], key
			}
			return copyKeys(cm, copies), nil
		}),
		Sample: envConfigMap,
	}, {
		Name:    "U03c6-service-port-names",
		Kind:    "Service",
		Summary: "names the ports of a Service that have no name after number and protocol",
		Why:     "Number and protocol together are unique in a Service. If another port has the name, the Service is denied.",
		Webhook: servicesOnWrite,
		Sample: `
apiVersion: v1
kind: Service
metadata: {name: dns, namespace: shop, annotations: {ports.example.com/named: "true"}}
spec:
  selector: {app: dns}
  ports: [{port: 53, protocol: UDP}, {name: metrics, port: 9153, protocol: TCP}]
`,
		Proof: allSteps(twice, againAfter(func(o object) {
			push(o, object{"name": "port-53-tcp", "port": 53.0, "protocol": "TCP", "targetPort": 53.0}, "spec", "ports")
		})),
	}}
}

// roleKey returns a key of at most 63 characters.
func roleKey(container string) string {
	if len(container) <= 58 {
		return "role." + container
	}
	return "role." + container[:41] + "-" + shortHash(container)
}

// longNames adds two containers whose long names differ at the end only.
func longNames(o object) {
	prefix := strings.Repeat("settlement-", 5)
	for _, end := range []string{"reader", "writer"} {
		push(o, object{"name": prefix + end, "image": "registry.example.com/shop/settle:1.0"}, "spec", "containers")
	}
}

func vaultVolumesRepeat(o object) string {
	return repeated("volume", names(list(o, "spec", "volumes")))
}

// sameHash adds a container whose name has the same short hash as that of the first container.
func sameHash(o object) {
	short := func(s string) uint32 {
		h := fnv.New32a()
		h.Write([]byte(s))
		return h.Sum32() & 0xf
	}
	first := text(o, "spec", "template", "spec", "containers", 0, "name")
	for i := range 1000 {
		if name := fmt.Sprintf("worker-%d", i); short(name) == short(first) {
			push(o, object{"name": name, "image": "registry.example.com/shop/worker:1.0"}, inTemplate...)
			return
		}
	}
}

func scratchShared(o object) string {
	var volumes []string
	for _, c := range list(o, inTemplate...) {
		volumes = append(volumes, text(c, "volumeMounts", 0, "name"))
	}
	return repeated("the scratch volume", volumes)
}

// dashedHost adds a rule for a host that differs from the first one by a dash for a dot.
func dashedHost(o object) {
	rule := clone(dict(o, "spec", "rules", 0))
	rule["host"] = "shop-example.com"
	push(o, rule, "spec", "rules")
}

func hostsWithoutTLS(o object) string {
	covered := map[string]bool{}
	for _, entry := range list(o, "spec", "tls") {
		for _, host := range list(entry, "hosts") {
			covered[fmt.Sprint(host)] = true
		}
	}
	for _, rule := range list(o, "spec", "rules") {
		if host := text(rule, "host"); !covered[host] {
			return "no TLS for the host " + host
		}
	}
	return ""
}

// shipperInInit adds the user's own shipper as an init container that keeps running.
func shipperInInit(o object) {
	put(o, []any{object{"name": "log-shipper", "image": "fluent-bit:3", "restartPolicy": "Always"}}, "spec", "initContainers")
}

func containersRepeat(o object) string {
	return repeated("container", append(names(list(o, "spec", "initContainers")), names(list(o, "spec", "containers"))...))
}

const (
	vaultPod = podHead + `
metadata: {name: settle, namespace: shop, annotations: {vault.example.com/inject: "true"}}
spec:
  containers:
  - {name: settle, image: "registry.example.com/shop/settle:1.0"}
  - {name: audit, image: "registry.example.com/shop/audit:1.0"}
`
	scratchDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: thumbs, namespace: shop}
spec:
  selector: {matchLabels: {app: thumbs}}
  template:
    metadata: {labels: {app: thumbs}, annotations: {scratch.example.com/size: 2Gi}}
    spec: {containers: [{name: thumbs, image: "registry.example.com/shop/thumbs:0.9"}]}
`
	hostIngress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: shop, annotations: {tls.example.com/auto: "true"}}
spec:
  rules:
  - host: shop.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}
`
	loggingPod = podHead + `
metadata: {name: cart, namespace: shop, labels: {logs.example.com/ship: "yes"}}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	envConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: cart, namespace: shop, annotations: {config.example.com/as-env: "true"}}
data: {db.host: db.example.com, DEBUG: "0"}
`
)
