// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func memoryDoneRight() []Case {
	return []Case{{
		Name:    "U04c1-proxy-settings-by-value",
		Kind:    "Pod",
		Summary: "turns proxy annotations into a variable, and keeps the result by the annotation",
		Why:     "The key of the cache is all that the result depends on.",
		Webhook: podsOnCreate,
		build: withState(func() func(*webhook.Request[corev1.Pod]) error {
			return proxySettings(func(pod *corev1.Pod, _ string) string { return pod.Annotations[proxyAnnotation] })
		}),
		Sample: proxyPod,
		Proof:  allSteps(twice, remembers(concurrency("8")), againAfter(addContainer(lateContainer))),
	}, {
		Name:    "U04c2-injections-counted",
		Kind:    "Pod",
		Summary: "adds a tracing sidecar, and counts how many Pods got it",
		Why:     "The count is for a metric and never reaches an answer.",
		Webhook: podsOnCreate,
		build: withState(func() func(*webhook.Request[corev1.Pod]) error {
			var injected atomic.Int64
			return func(req *webhook.Request[corev1.Pod]) error {
				if req.Object.Labels["tracing.example.com/mode"] == "sidecar" && !hasContainer(&req.Object.Spec, "tracer") {
					req.Object.Spec.Containers = append(req.Object.Spec.Containers, tracer)
					injected.Add(1)
				}
				return nil
			}
		}),
		Sample: tracedPod,
		Proof: allSteps(twice, remembers(func(o object) {
			put(o, "search-5d9f8-", "metadata", "generateName")
		})),
	}, {
		Name:    "U04c3-tenant-by-namespace",
		Kind:    "Deployment",
		Summary: "labels the template with the tenant, and keeps the tenants by namespace",
		Why:     "The tenant depends on the namespace alone, which is the key.",
		Webhook: deploymentsOnWrite,
		build: rawWithState(func() func(*admissionv1.AdmissionRequest, object) ([]operation, error) {
			var tenants sync.Map
			return func(req *admissionv1.AdmissionRequest, d object) ([]operation, error) {
				tenant, _ := tenants.LoadOrStore(req.Namespace, req.Namespace)
				return labelTemplate(d, "tenant", tenant), nil
			}
		}),
		Sample: tenantDeployment,
		Proof:  allSteps(twice, remembers(func(o object) { put(o, "bank", "metadata", "namespace") })),
	}, {
		Name:    "U04c4-repeated-uids-logged",
		Kind:    "Pod",
		Summary: "sets the team's DNS options, and logs UIDs that it has seen before",
		Why:     "The answer does not depend on the UIDs.",
		Webhook: podsOnCreate,
		Sample:  dnsPod,
		Proof:   allSteps(twice, replayed),
	}, {
		Name:    "U04c5-primary-by-declaration",
		Kind:    "Service",
		Summary: "makes a Service with a shared address the primary one if it declares that, and otherwise secondary",
		Why:     "The role depends on the Service alone. The webhook fills it in where it is absent.",
		Webhook: servicesOnWrite,
		build: typed(func(req *webhook.Request[corev1.Service]) error {
			if req.Object.Annotations["lb.example.com/shared-address"] == "" || req.Object.Labels["lb.example.com/role"] != "" {
				return nil
			}
			metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "lb.example.com/role", "secondary")
			return nil
		}),
		Sample: sharedService,
	}, {
		Name:    "U04c6-answers-by-document",
		Kind:    "Pod",
		Summary: "sends a tier to its pool of nodes, and keeps answers by a hash of the whole object",
		Why:     "Equal objects get equal answers, and the answer depends on nothing but the object.",
		Webhook: podsOnCreate,
		build: rawWithState(func() func(*admissionv1.AdmissionRequest, object) ([]operation, error) {
			var answers sync.Map
			return func(req *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
				answer, _ := answers.LoadOrStore(sha256.Sum256(req.Object.Raw), poolOf(pod))
				return answer.([]operation), nil
			}
		}),
		Sample: podHead + `
metadata: {name: cart, namespace: shop, labels: {tier: critical}}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`,
	}, {
		Name:    "U04c7-storage-class-of-namespace",
		Kind:    "PersistentVolumeClaim",
		Summary: "gives claims without a class the one of their namespace, and remembers which that is",
		Why:     "The class depends on the name of the namespace alone.",
		Webhook: claimsOnCreate,
		Sample:  plainClaim,
		Proof:   allSteps(twice, remembers(func(o object) { put(o, "shop-prod", "metadata", "namespace") })),
	}}
}

// poolOf returns operations that assign critical Pods without a pool to their pool.
func poolOf(pod object) []operation {
	switch selector := dict(pod, "spec", "nodeSelector"); {
	case text(pod, "metadata", "labels", "tier") != "critical" || selector["pool"] != nil:
		return nil
	case selector == nil:
		return []operation{add("/spec/nodeSelector", object{"pool": "critical"})}
	default:
		return []operation{add("/spec/nodeSelector/pool", "critical")}
	}
}
