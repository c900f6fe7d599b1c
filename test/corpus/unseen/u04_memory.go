// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func memoryBugs() []Case {
	return []Case{{
		Name:    "U04b1-proxy-settings-by-name",
		Kind:    "Pod",
		Summary: "turns proxy annotations into a variable, and keeps the result by the name of the Pod",
		Why: "CREATE the Pod web-0 with concurrency 4, delete it, CREATE web-0 with concurrency 8: the second Pod gets " +
			"PROXY_SETTINGS of the first one.",
		Webhook: podsOnCreate,
		build: withState(func() func(*webhook.Request[corev1.Pod]) error {
			return proxySettings(func(pod *corev1.Pod, namespace string) string { return namespace + "/" + pod.Name })
		}),
		Sample: proxyPod,
		Proof:  remembers(concurrency("8")),
	}, {
		Name:    "U04b2-injected-once-per-name",
		Kind:    "Pod",
		Summary: "adds a tracing sidecar, and remembers which Pods have it",
		Why: "A ReplicaSet creates two Pods with generateName: both have the empty name when the webhook sees them, so " +
			"it takes the second one for the first and adds nothing.",
		Webhook: podsOnCreate,
		build: withState(func() func(*webhook.Request[corev1.Pod]) error {
			var done sync.Map
			return func(req *webhook.Request[corev1.Pod]) error {
				if req.Object.Labels["tracing.example.com/mode"] != "sidecar" || hasContainer(&req.Object.Spec, "tracer") {
					return nil
				}
				if _, again := done.LoadOrStore(req.Namespace+"/"+req.Name, true); !again {
					req.Object.Spec.Containers = append(req.Object.Spec.Containers, tracer)
				}
				return nil
			}
		}),
		Sample: tracedPod,
		Proof:  remembers(func(o object) { put(o, "search-5d9f8-", "metadata", "generateName") }),
	}, {
		Name:    "U04b3-tenant-by-deployment-name",
		Kind:    "Deployment",
		Summary: "labels the template with the tenant, which is the namespace, and keeps tenants by Deployment name",
		Why:     "CREATE the Deployment api in namespace shop, then api in namespace bank: the second one is labelled shop.",
		Webhook: deploymentsOnWrite,
		build: rawWithState(func() func(*admissionv1.AdmissionRequest, object) ([]operation, error) {
			var tenants sync.Map
			return func(req *admissionv1.AdmissionRequest, d object) ([]operation, error) {
				tenant, _ := tenants.LoadOrStore(req.Name, req.Namespace)
				return labelTemplate(d, "tenant", tenant), nil
			}
		}),
		Sample: tenantDeployment,
		Proof:  remembers(func(o object) { put(o, "bank", "metadata", "namespace") }),
	}, {
		Name:    "U04b4-seen-request-uids",
		Kind:    "Pod",
		Summary: "sets the team's DNS options, once for each request UID",
		Why: "A proxy answers 503 with Retry-After after the webhook has worked, and the API server sends the same request " +
			"again: the UID is known, the answer has no patch, and the Pod is stored without the options.",
		Webhook: podsOnCreate,
		Sample:  dnsPod,
		Proof:   replayed,
	}, {
		Name:    "U04b5-elected-primary-service",
		Kind:    "Service",
		Summary: "makes the first Service with a shared address the primary one, and the others secondary",
		Why: "CREATE a Service: it is elected and labelled primary. The second call of the same request finds that " +
			"a Service is primary already, and labels it secondary.",
		Webhook: servicesOnWrite,
		build: withState(func() func(*webhook.Request[corev1.Service]) error {
			var elect sync.Once
			return func(req *webhook.Request[corev1.Service]) error {
				if req.Object.Annotations["lb.example.com/shared-address"] == "" {
					return nil
				}
				role := "secondary"
				elect.Do(func() { role = "primary" })
				metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "lb.example.com/role", role)
				return nil
			}
		}),
		Sample: sharedService,
		Proof:  twice,
	}, {
		Name:    "U04b6-last-storage-class",
		Kind:    "PersistentVolumeClaim",
		Summary: "gives claims without a class the class that was last used in their namespace, or standard",
		Why: "CREATE a claim without a class: it gets standard. If another claim with the class fast was created before, " +
			"the same claim gets fast, and another replica of the webhook says standard.",
		Webhook: claimsOnCreate,
		Sample:  plainClaim,
		Proof: func(t *Trial) string {
			other := t.Sample()
			put(other, "fast", "spec", "storageClassName")
			used := t.Instance()
			used.Create(other)
			return differ("the result depends on an earlier claim", t.Instance().Create(t.Sample()), used.Create(t.Sample()))
		},
	}}
}

// proxySettings returns a handler that caches the settings of Pods under the key of each Pod.
func proxySettings(key func(pod *corev1.Pod, namespace string) string) func(*webhook.Request[corev1.Pod]) error {
	var settings sync.Map
	return func(req *webhook.Request[corev1.Pod]) error {
		spec, ok := req.Object.Annotations[proxyAnnotation]
		if !ok {
			return nil
		}
		value, _ := settings.LoadOrStore(key(req.Object, req.Namespace), "threads="+strings.TrimSpace(spec)+";mode=sidecar")
		eachContainer(&req.Object.Spec, func(c *corev1.Container) { setEnv(c, "PROXY_SETTINGS", value.(string)) })
		return nil
	}
}

const proxyAnnotation = "proxy.example.com/concurrency"

var tracer = corev1.Container{Name: "tracer", Image: "registry.example.com/tracing/agent:1.60"}

// labelTemplate returns operations that set a label of the Pod template.
func labelTemplate(d object, key string, value any) []operation {
	switch labels := dict(d, "spec", "template", "metadata", "labels"); {
	case labels == nil || labels[key] == value || annotation(d, "tenancy.example.com/managed") != "true":
		return nil
	default:
		return []operation{add(pointer("spec", "template", "metadata", "labels", key), value)}
	}
}

// concurrency returns an edit that turns the sample into another Pod with the same name.
func concurrency(value string) edit {
	return func(o object) { put(o, value, "metadata", "annotations", proxyAnnotation) }
}

const (
	proxyPod = podHead + `
metadata: {name: web-0, namespace: shop, annotations: {proxy.example.com/concurrency: "4"}}
spec: {containers: [{name: web, image: "registry.example.com/shop/web:7.7"}]}
`
	tracedPod = podHead + `
metadata: {generateName: cart-7c6d4-, namespace: shop, labels: {tracing.example.com/mode: sidecar}}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	tenantDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop, annotations: {tenancy.example.com/managed: "true"}}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: api, image: "registry.example.com/shop/api:2.2"}]}
`
	dnsPod = podHead + `
metadata: {name: cart, namespace: shop, labels: {dns.example.com/profile: low-ndots}}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	sharedService = `
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop, annotations: {lb.example.com/shared-address: auto}}
spec: {type: LoadBalancer, selector: {app: cart}, ports: [{port: 443, targetPort: 8443}]}
`
	plainClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
`
)
