// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func zerosDoneRight() []Case {
	return []Case{{
		Name:    "U08c1-security-context-where-needed",
		Kind:    "Pod",
		Summary: "makes the root file systems of the containers that an annotation names read-only",
		Why:     "A securityContext is only added to a container that gets a setting.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			return readOnlyRoots(pod, func(isNamed bool) bool { return isNamed })
		}),
		Sample: readOnlyPod,
	}, {
		Name:    "U08c2-topic-retention-alone",
		Kind:    "Topic",
		Summary: "sets the retention of topics by their class",
		Why:     "The Go type leaves out what is nil, and only the retention changes.",
		Webhook: topicsOnWrite,
		build: typed(func(req *webhook.Request[topic]) error {
			if retention := retentions[req.Object.Labels["data.example.com/class"]]; retention != "" {
				req.Object.Spec.Retention = &retention
			}
			return nil
		}),
		Sample: classTopic,
		CRDs:   []string{topicCRD},
		Proof:  allSteps(twice, orderMatters(byHand(defaultPartitions))),
	}, {
		Name:    "U08c3-storage-class-of-known-tier",
		Kind:    "PersistentVolumeClaim",
		Summary: "sets the storage class of a claim by its tier",
		Why:     "A claim with an unknown tier is left alone. Otherwise the class is filled in where it is absent.",
		Webhook: claimsOnCreate,
		Sample:  tieredClaim,
	}, {
		Name:    "U08c4-profile-settings-that-are-set",
		Kind:    "Deployment",
		Summary: "applies a profile of Pod settings where the template says nothing",
		Why:     "Settings that are not true in the profile are left out.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			if p, ok := podProfiles[req.Object.Annotations["profile.example.com/name"]]; ok {
				applyProfile(&req.Object.Spec.Template.Spec, p, ifTrue(p.automount), ifTrue(p.fqdn))
			}
			return nil
		}),
		Sample: webDeployment,
		Proof:  allSteps(twice, orderMatters(byHand(automountDefault))),
	}, {
		Name:    "U08c5-issuer-if-configured",
		Kind:    "Ingress",
		Summary: "annotates an Ingress with the certificate issuer and the DNS target of its zone",
		Why:     "What is not configured is not written.",
		Webhook: ingressesOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, ing object) ([]operation, error) {
			return zoneAnnotations(ing, func(value string) bool { return value != "" }), nil
		}),
		Sample: zoneIngress,
		Proof:  allSteps(twice, orderMatters(byHand(defaultIssuer))),
	}, {
		Name:    "U08c6-no-token-on-purpose",
		Kind:    "Pod",
		Summary: "turns service account tokens off in Pods that an annotation isolates",
		Why:     "False is what the user asks for with the annotation. It is filled in where nothing is said.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			if spec := &req.Object.Spec; req.Object.Annotations["isolation.example.com/level"] == "full" {
				if no := false; spec.AutomountServiceAccountToken == nil {
					spec.AutomountServiceAccountToken = &no
				}
			}
			return nil
		}),
		Sample: podHead + `
metadata: {name: convert, namespace: shop, annotations: {isolation.example.com/level: full}}
spec: {containers: [{name: convert, image: "registry.example.com/shop/convert:2.5"}]}
`,
	}, {
		Name:    "U08c7-no-history-on-purpose",
		Kind:    "CronJob",
		Summary: "keeps no failed Jobs of CronJobs whose label says so",
		Why:     "Zero is what the user asks for with the label. It is set over the default of the API server in each call.",
		Webhook: cronJobsOnWrite,
		Sample: `
apiVersion: batch/v1
kind: CronJob
metadata: {name: sweep, namespace: shop, labels: {batch.example.com/history: none}}
spec:
  schedule: "@hourly"
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: sweep, image: "registry.example.com/shop/sweep:1"}]}
`,
	}}
}

func ifTrue(b bool) *bool {
	if b {
		return &b
	}
	return nil
}

const (
	readOnlyPod = podHead + `
metadata: {name: cart, namespace: shop, annotations: {security.example.com/read-only: cart}}
spec:
  containers:
  - {name: cart, image: "registry.example.com/shop/cart:5.0"}
  - {name: cache, image: "redis:7.2"}
`
	classTopic = `
apiVersion: data.example.com/v1
kind: Topic
metadata: {name: clicks, namespace: shop, labels: {data.example.com/class: events}}
spec: {cluster: main, owners: [checkout]}
`
	tieredClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, labels: {storage.example.com/tier: gold}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
`
	webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop, annotations: {profile.example.com/name: web}}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	zoneIngress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: cart, namespace: shop, annotations: {dns.example.com/zone: lab}}
spec: {defaultBackend: {service: {name: cart, port: {number: 80}}}}
`
)
