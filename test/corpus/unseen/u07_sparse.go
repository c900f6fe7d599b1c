// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A topic is the Go type of the custom resource Topic, with the fields that the webhooks need.
type topic struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              topicSpec `json:"spec"`
}

type topicSpec struct {
	TLS           *topicTLS `json:"tls,omitempty"`
	CleanupPolicy *string   `json:"cleanupPolicy,omitempty"`
	Retention     *string   `json:"retention,omitempty"`
}

type topicTLS struct {
	MinVersion string `json:"minVersion,omitempty"`
}

func sparseBugs() []Case {
	return []Case{{
		Name:    "U07b1-two-annotations-two-maps",
		Kind:    "Pod",
		Summary: "sets two annotations for scraping on Pods with a monitoring label",
		Why: "CREATE a Pod without annotations: each annotation comes with an operation that adds an empty map first, so the " +
			"second one deletes what the first one wrote. The second call adds it.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			return scrapeAnnotations(pod, func(map[string]any) bool { return true })
		}),
		Sample: scrapedPod,
		Proof:  twiceAfter(func(o object) { delete(dict(o, "metadata"), "annotations") }),
	}, {
		Name:    "U07b2-tls-appended-to-nothing",
		Kind:    "Ingress",
		Summary: "appends a TLS entry for each host that a wildcard certificate covers",
		Why:     "CREATE an Ingress without tls: the patch adds to /spec/tls/-, which does not exist, so the request fails.",
		Webhook: ingressesOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, ing object) ([]operation, error) {
			return appendEntries(wildcardEntries(ing)), nil
		}),
		Sample: wildcardIngress,
		Proof:  rejectedAfter(func(o object) { delete(dict(o, "spec"), "tls") }),
	}, {
		Name:    "U07b3-stream-template-metadata",
		Kind:    "StreamJob",
		Summary: "sets the savepoint of a StreamJob as an annotation of its Pods",
		Why: "CREATE a StreamJob whose template has no metadata, which the schema permits: the webhook reads it nevertheless, " +
			"fails with a KeyError, and the API server rejects the StreamJob.",
		Webhook: streamJobsOnWrite,
		Sample:  savepointStreamJob,
		CRDs:    []string{streamJobCRD},
		Proof:   rejectedAfter(func(o object) { delete(dict(o, "spec", "template"), "metadata") }),
	}, {
		Name:    "U07b4-topic-without-tls",
		Kind:    "Topic",
		Summary: "raises the TLS version of regulated topics",
		Why:     "CREATE a regulated Topic without spec.tls: the webhook dereferences a nil pointer, and the call fails.",
		Webhook: topicsOnWrite,
		build: typed(func(req *webhook.Request[topic]) error {
			if req.Object.Labels["compliance"] == "pci" {
				req.Object.Spec.TLS.MinVersion = "1.3"
			}
			return nil
		}),
		Sample: regulatedTopic,
		CRDs:   []string{topicCRD},
		Proof:  rejectedAfter(func(o object) { delete(dict(o, "spec"), "tls") }),
	}, {
		Name:    "U07b5-topic-config-null",
		Kind:    "Topic",
		Summary: "sets the smallest number of replicas in sync in the configuration of a Topic",
		Why: "CREATE a Topic with config: null, which the schema permits: the webhook sees that the key is there, and adds " +
			"to null. The patch does not apply.",
		Webhook: topicsOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, t object) ([]operation, error) {
			_, present := dict(t, "spec")["config"]
			return inSync(t, present), nil
		}),
		Sample: durableTopic,
		CRDs:   []string{topicCRD},
		Proof:  rejectedAfter(func(o object) { put(o, nil, "spec", "config") }),
	}, {
		Name:    "U07b6-binary-config-map",
		Kind:    "ConfigMap",
		Summary: "adds the CA of the company to ConfigMaps with trust bundles",
		Why:     "CREATE a ConfigMap with binaryData only: the webhook reads data, fails with a KeyError, and the request fails.",
		Webhook: configMapsOnWrite,
		Sample:  trustConfigMap,
		Proof: rejectedAfter(func(o object) {
			delete(o, "data")
			put(o, "AAEC", "binaryData", "store.jks")
		}),
	}}
}

var scrapeSettings = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9102"}

// scrapeAnnotations sets two annotations. makesMap reports whether an operation must create the map first. Its argument
// is the map with the annotations set so far.
func scrapeAnnotations(pod object, makesMap func(written map[string]any) bool) ([]operation, error) {
	if text(pod, "metadata", "labels", "monitoring.example.com/scrape") == "" {
		return nil, nil
	}
	have, written := dict(pod, "metadata", "annotations"), map[string]any{}
	var ops []operation
	for _, key := range sortedKeys(scrapeSettings) {
		if have[key] == scrapeSettings[key] {
			continue
		}
		if have == nil && makesMap(written) {
			ops = append(ops, add("/metadata/annotations", object{}))
		}
		written[key] = scrapeSettings[key]
		ops = append(ops, add(pointer("metadata", "annotations", key), scrapeSettings[key]))
	}
	return ops, nil
}

// wildcardEntries returns TLS entries for the hosts of an Ingress that have none.
func wildcardEntries(ing object) []any {
	var entries []any
	covered := map[any]bool{}
	for _, entry := range list(ing, "spec", "tls") {
		for _, host := range list(entry, "hosts") {
			covered[host] = true
		}
	}
	for _, rule := range list(ing, "spec", "rules") {
		host := text(rule, "host")
		if strings.HasSuffix(host, ".apps.example.com") && !covered[host] {
			covered[host] = true
			entries = append(entries, object{"hosts": []any{host}, "secretName": "apps-wildcard"})
		}
	}
	return entries
}

func appendEntries(entries []any) []operation {
	var ops []operation
	for _, entry := range entries {
		ops = append(ops, add("/spec/tls/-", entry))
	}
	return ops
}

// inSync sets a value in the configuration of a durable Topic. hasMap is set if the handler found the map.
func inSync(t object, hasMap bool) []operation {
	const key = "min.insync.replicas"
	switch {
	case annotation(t, "data.example.com/durability") != "high" || text(t, "spec", "config", key) == "2":
		return nil
	case !hasMap:
		return []operation{add("/spec/config", object{key: "2"})}
	default:
		return []operation{add(pointer("spec", "config", key), "2")}
	}
}

func sparseDoneRight() []Case {
	return []Case{{
		Name:    "U07c1-two-annotations-one-map",
		Kind:    "Pod",
		Summary: "sets two annotations for scraping on Pods with a monitoring label",
		Why:     "The map is added once, before the first annotation, and only if there is none.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			return scrapeAnnotations(pod, func(written map[string]any) bool { return len(written) == 0 })
		}),
		Sample: scrapedPod,
		Proof:  allSteps(twice, twiceAfter(func(o object) { delete(dict(o, "metadata"), "annotations") })),
	}, {
		Name:    "U07c2-tls-list-created",
		Kind:    "Ingress",
		Summary: "appends a TLS entry for each host that a wildcard certificate covers",
		Why:     "If there is no list, it is added with the entries.",
		Webhook: ingressesOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, ing object) ([]operation, error) {
			entries := wildcardEntries(ing)
			if len(entries) > 0 && list(ing, "spec", "tls") == nil {
				return []operation{add("/spec/tls", entries)}, nil
			}
			return appendEntries(entries), nil
		}),
		Sample: wildcardIngress,
		Proof:  allSteps(twice, twiceAfter(func(o object) { delete(dict(o, "spec"), "tls") })),
	}, {
		Name:    "U07c3-stream-template-annotated",
		Kind:    "StreamJob",
		Summary: "sets the savepoint of a StreamJob as an annotation of its Pods",
		Why:     "Metadata and annotations of the template are created where they are absent or null.",
		Webhook: streamJobsOnWrite,
		Sample:  savepointStreamJob,
		CRDs:    []string{streamJobCRD},
		Proof:   allSteps(twice, twiceAfter(func(o object) { delete(dict(o, "spec", "template"), "metadata") })),
	}, {
		Name:    "U07c4-topic-tls-checked",
		Kind:    "Topic",
		Summary: "raises the TLS version of regulated topics that use TLS",
		Why:     "Topics without spec.tls are left alone.",
		Webhook: topicsOnWrite,
		build: typed(func(req *webhook.Request[topic]) error {
			if tls := req.Object.Spec.TLS; req.Object.Labels["compliance"] == "pci" && tls != nil {
				tls.MinVersion = "1.3"
			}
			return nil
		}),
		Sample: regulatedTopic,
		CRDs:   []string{topicCRD},
		Proof:  allSteps(twice, twiceAfter(func(o object) { delete(dict(o, "spec"), "tls") })),
	}, {
		Name:    "U07c5-topic-config-created",
		Kind:    "Topic",
		Summary: "sets the smallest number of replicas in sync in the configuration of a Topic",
		Why:     "A map that is absent or null is replaced by one with the key.",
		Webhook: topicsOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, t object) ([]operation, error) {
			return inSync(t, dict(t, "spec", "config") != nil), nil
		}),
		Sample: durableTopic,
		CRDs:   []string{topicCRD},
		Proof:  allSteps(twice, twiceAfter(func(o object) { put(o, nil, "spec", "config") })),
	}, {
		Name:    "U07c6-trust-config-map",
		Kind:    "ConfigMap",
		Summary: "adds the CA of the company to ConfigMaps with trust bundles",
		Why:     "data is created where it is absent.",
		Webhook: configMapsOnWrite,
		Sample:  trustConfigMap,
		Proof: allSteps(twice, twiceAfter(func(o object) {
			delete(o, "data")
			put(o, "AAEC", "binaryData", "store.jks")
		})),
	}, {
		Name:    "U07c7-claim-labels",
		Kind:    "PersistentVolumeClaim",
		Summary: "labels claims with the cost center and the owner, which are the namespace, in two operations",
		Why:     "The map is added once if there is none, and both labels come after it.",
		Webhook: claimsOnWrite,
		build: raw(func(req *admissionv1.AdmissionRequest, claim object) ([]operation, error) {
			labels := dict(claim, "metadata", "labels")
			var ops []operation
			if labels == nil {
				ops = append(ops, add("/metadata/labels", object{}))
			}
			for _, key := range []string{"cost-center", "owner"} {
				if labels[key] == nil {
					ops = append(ops, add(pointer("metadata", "labels", key), req.Namespace))
				}
			}
			return ops, nil
		}),
		Sample: plainClaim,
	}}
}

const (
	scrapedPod = podHead + `
metadata:
  name: cart
  namespace: shop
  labels: {monitoring.example.com/scrape: "yes"}
  annotations: {owner: checkout-team}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	wildcardIngress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: cart, namespace: shop}
spec:
  tls: [{hosts: [pay.example.com], secretName: pay-tls}]
  rules:
  - {host: pay.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: pay, port: {number: 80}}}}]}}
  - {host: cart.apps.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}]}}
`
	savepointStreamJob = `
apiVersion: streams.example.com/v1
kind: StreamJob
metadata: {name: clicks, namespace: shop}
spec:
  savepoint: "s3://savepoints/clicks/41"
  template:
    metadata: {labels: {app: clicks}}
    spec: {containers: [{name: main, image: "registry.example.com/streams/clicks:12"}]}
`
	regulatedTopic = `
apiVersion: data.example.com/v1
kind: Topic
metadata: {name: payments, namespace: shop, labels: {compliance: pci}}
spec: {cluster: main, partitions: 12, tls: {ciphers: [TLS_AES_128_GCM_SHA256]}}
`
	durableTopic = `
apiVersion: data.example.com/v1
kind: Topic
metadata: {name: orders, namespace: shop, annotations: {data.example.com/durability: high}}
spec: {cluster: main, config: {compression.type: zstd}}
`
	trustConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: trust, namespace: shop, labels: {trust.example.com/bundle: "true"}}
data: {partner.pem: "-----BEGIN CERTIFICATE-----"}
`
)
