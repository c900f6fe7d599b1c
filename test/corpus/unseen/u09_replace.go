// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"encoding/json"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func replaceBugs() []Case {
	return []Case{{
		Name:    "U09b1-job-proxy-on-update",
		Kind:    "Job",
		Summary: "sets the proxy variables of Jobs that use the internet",
		Why: "A Job was created before the webhook was installed. UPDATE it with suspend: true: the webhook adds variables to " +
			"its template, which is immutable, so the API server rejects the update.",
		Webhook: jobsOnWrite,
		build: typed(func(req *webhook.Request[batchv1.Job]) error {
			if req.Object.Labels["egress"] == "internet" {
				eachContainer(&req.Object.Spec.Template.Spec, func(c *corev1.Container) { setEnv(c, proxyEnv, proxyURL) })
			}
			return nil
		}),
		Sample: egressJob,
		Proof: updatesOlder(func(o object) { put(o, true, "spec", "suspend") },
			immutable("spec", "template")),
	}, {
		Name:    "U09b2-volume-class-follows-tier",
		Kind:    "StatefulSet",
		Summary: "sets the storage class of the volume claim templates by the tier in an annotation",
		Why: "CREATE a StatefulSet with the tier ssd; UPDATE it from the manifest with the tier changed to hdd, which is an " +
			"annotation and may change: the webhook changes volumeClaimTemplates, which are immutable.",
		Webhook: statefulSetsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.StatefulSet]) error {
			setClaimClasses(req.Object, tierClasses[req.Object.Annotations[tierAnnotation]])
			return nil
		}),
		Sample: tieredStatefulSet,
		Proof:  replacedWith(slowTier, immutable("spec", "volumeClaimTemplates")),
	}, {
		Name:    "U09b3-node-pool-on-create-only",
		Kind:    "Deployment",
		Summary: "sends the Pods of a Deployment to the pool of their team, and does nothing on UPDATE",
		Why: "CREATE a Deployment; a deployment tool UPDATEs it with its full manifest: the node selector is gone, a rollout " +
			"begins, and the new Pods run anywhere.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			if req.Operation == admissionv1.Create {
				toTeamPool(req.Object)
			}
			return nil
		}),
		Sample: teamDeployment,
		Proof: replacedWith(func(o object) { put(o, 3.0, "spec", "replicas") },
			kept("spec", "template", "spec", "nodeSelector")),
	}, {
		Name:    "U09b4-version-in-selector",
		Kind:    "Deployment",
		Summary: "labels the template and the selector of a Deployment with its release track",
		Why: "A Deployment was created before the webhook was installed. UPDATE its replicas: the webhook adds the label to the " +
			"selector, which is immutable, so the API server rejects the update.",
		Webhook: deploymentsOnWrite,
		Sample:  trackDeployment,
		Proof: updatesOlder(func(o object) { put(o, 3.0, "spec", "replicas") },
			immutable("spec", "selector")),
	}, {
		Name:    "U09b5-annotations-carried-over",
		Kind:    "Gateway",
		Summary: "records who created a Gateway, and carries the annotations of the stored Gateway over on UPDATE",
		Why: "CREATE a Gateway with the annotation maintenance; UPDATE it from a manifest without it: the webhook copies all old " +
			"annotations, so the user can never remove one.",
		Webhook: gatewaysOnWrite,
		build:   raw(carryAnnotations),
		Sample:  maintainedGateway,
		CRDs:    []string{gatewayCRD},
		Proof: replacedWith(func(o object) { delete(dict(o, "metadata", "annotations"), maintenance) },
			maintenanceStays),
	}}
}

const (
	proxyEnv       = "HTTPS_PROXY"
	proxyURL       = "http://egress.example.com:3128"
	tierAnnotation = "storage.example.com/tier"
	maintenance    = "net.example.com/maintenance"
	creator        = "net.example.com/created-by"
)

var tierClasses = map[string]string{"ssd": "fast", "hdd": "slow"}

func setClaimClasses(set *appsv1.StatefulSet, class string) {
	for i := range set.Spec.VolumeClaimTemplates {
		if class != "" {
			set.Spec.VolumeClaimTemplates[i].Spec.StorageClassName = &class
		}
	}
}

func toTeamPool(d *appsv1.Deployment) {
	team := d.Labels["pool.example.com/team"]
	if team == "" {
		return
	}
	spec := &d.Spec.Template.Spec
	if spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{}
	}
	spec.NodeSelector["pool.example.com/team"] = team
}

// carryAnnotations records the creator, and keeps all annotations of the stored object.
func carryAnnotations(req *admissionv1.AdmissionRequest, gw object) ([]operation, error) {
	if req.Operation == admissionv1.Create {
		return annotate(gw, creator, req.UserInfo.Username), nil
	}
	var old object
	if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
		return nil, err
	}
	var ops []operation
	if dict(gw, "metadata", "annotations") == nil {
		ops = append(ops, add("/metadata/annotations", object{}))
	}
	stored := dict(old, "metadata", "annotations")
	for _, key := range sortedKeys(stored) {
		if _, there := dict(gw, "metadata", "annotations")[key]; !there {
			ops = append(ops, add(pointer("metadata", "annotations", key), stored[key]))
		}
	}
	return ops, nil
}

func maintenanceStays(_, result object) string {
	if annotation(result, maintenance) != "" {
		return "the annotation that the user removed is back"
	}
	return ""
}

func slowTier(o object) { put(o, "hdd", "metadata", "annotations", tierAnnotation) }

func replaceDoneRight() []Case {
	return []Case{{
		Name:    "U09c1-job-proxy-carried-over",
		Kind:    "Job",
		Summary: "sets the proxy variables of Jobs that use the internet",
		Why: "On UPDATE, a container gets the variable exactly if it had it before, so the immutable template " +
			"stays as it is, for older Jobs and when a manifest is sent again.",
		Webhook: jobsOnWrite,
		build:   typed(carryProxy),
		Sample:  egressJob,
		Proof: allSteps(twice,
			updatesOlder(func(o object) { put(o, true, "spec", "suspend") }, immutable("spec", "template")),
			replacedWith(func(o object) { put(o, true, "spec", "suspend") }, immutable("spec", "template"))),
	}, {
		Name:    "U09c2-volume-class-kept",
		Kind:    "StatefulSet",
		Summary: "sets the storage class of the volume claim templates by the tier in an annotation",
		Why:     "The tier counts on CREATE only. On UPDATE, the templates keep the classes that are stored.",
		Webhook: statefulSetsOnWrite,
		build:   typed(keepClaimClasses),
		Sample:  tieredStatefulSet,
		Proof: allSteps(twice, replacedWith(slowTier, immutable("spec", "volumeClaimTemplates")),
			updatesOlder(slowTier, immutable("spec", "volumeClaimTemplates"))),
	}, {
		Name:    "U09c3-node-pool-on-each-write",
		Kind:    "Deployment",
		Summary: "sends the Pods of a Deployment to the pool of their team",
		Why:     "The template of a Deployment may change, and the selector is set in each write.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			toTeamPool(req.Object)
			return nil
		}),
		Sample: teamDeployment,
		Proof: allSteps(twice, replacedWith(func(o object) { put(o, 3.0, "spec", "replicas") },
			kept("spec", "template", "spec", "nodeSelector"))),
	}, {
		Name:    "U09c4-version-in-template",
		Kind:    "Deployment",
		Summary: "labels the template of a Deployment with its release track",
		Why:     "The selector stays as it is, and the template may change.",
		Webhook: deploymentsOnWrite,
		Sample:  trackDeployment,
		Proof: allSteps(twice, updatesOlder(func(o object) { put(o, 3.0, "spec", "replicas") },
			immutable("spec", "selector"))),
	}, {
		Name:    "U09c5-creator-kept",
		Kind:    "Gateway",
		Summary: "records who created a Gateway, and keeps this one annotation on UPDATE",
		Why:     "Only the webhook's own annotation is carried over. Gateways without it stay without it.",
		Webhook: gatewaysOnWrite,
		build: raw(func(req *admissionv1.AdmissionRequest, gw object) ([]operation, error) {
			if req.Operation == admissionv1.Create {
				return annotate(gw, creator, req.UserInfo.Username), nil
			}
			var old object
			if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil || annotation(old, creator) == "" {
				return nil, err
			}
			return annotate(gw, creator, annotation(old, creator)), nil
		}),
		Sample: maintainedGateway,
		CRDs:   []string{gatewayCRD},
		Proof: allSteps(twice, replacedWith(func(o object) { delete(dict(o, "metadata"), "annotations") },
			kept("metadata", "annotations", creator)),
			replacedWith(func(o object) { delete(dict(o, "metadata", "annotations"), maintenance) }, maintenanceStays)),
	}, {
		Name:    "U09c6-claim-class-restored",
		Kind:    "PersistentVolumeClaim",
		Summary: "gives claims a default class, and restores it when the original manifest is sent again",
		Why:     "The class is immutable, so a claim that comes without one gets the one that is stored.",
		Webhook: claimsOnWrite,
		build: typed(func(req *webhook.Request[corev1.PersistentVolumeClaim]) error {
			class := "standard"
			old, err := req.OldObject()
			if err != nil || req.Object.Spec.StorageClassName != nil {
				return err
			}
			if old == nil {
				req.Object.Spec.StorageClassName = &class
			} else {
				req.Object.Spec.StorageClassName = old.Spec.StorageClassName
			}
			return nil
		}),
		Sample: plainClaim,
		Proof: allSteps(twice, replacedWith(func(object) {}, immutable("spec", "storageClassName")),
			updatesOlder(func(object) {}, immutable("spec", "storageClassName"))),
	}, {
		Name:    "U09c7-topic-cleanup-on-each-write",
		Kind:    "Topic",
		Summary: "sets the cleanup policy of topics that say that they are a table",
		Why:     "The field may change, and it is set on CREATE and UPDATE alike.",
		Webhook: topicsOnWrite,
		Sample: `
apiVersion: data.example.com/v1
kind: Topic
metadata: {name: customers, namespace: shop, annotations: {data.example.com/shape: table}}
spec: {cluster: main}
`,
		CRDs: []string{topicCRD},
		Proof: allSteps(twice, replacedWith(func(o object) { put(o, 3.0, "spec", "partitions") },
			kept("spec", "cleanupPolicy"))),
	}}
}

// carryProxy sets the variable on CREATE, and on UPDATE where the stored container has it.
func carryProxy(req *webhook.Request[batchv1.Job]) error {
	if req.Operation == admissionv1.Create {
		if req.Object.Labels["egress"] == "internet" {
			eachContainer(&req.Object.Spec.Template.Spec, func(c *corev1.Container) { defaultEnv(c, proxyEnv, proxyURL) })
		}
		return nil
	}
	old, err := req.OldObject()
	if err != nil {
		return err
	}
	stored := map[string]corev1.EnvVar{}
	eachContainer(&old.Spec.Template.Spec, func(c *corev1.Container) {
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == proxyEnv && e.Value == proxyURL })
		if i >= 0 {
			stored[c.Name] = c.Env[i]
		}
	})
	eachContainer(&req.Object.Spec.Template.Spec, func(c *corev1.Container) {
		if e, had := stored[c.Name]; had {
			defaultEnv(c, e.Name, e.Value)
		}
	})
	return nil
}

func keepClaimClasses(req *webhook.Request[appsv1.StatefulSet]) error {
	set := req.Object
	old, err := req.OldObject()
	switch {
	case err != nil:
		return err
	case old == nil:
		setClaimClasses(set, tierClasses[set.Annotations[tierAnnotation]])
		return nil
	}
	for i := range set.Spec.VolumeClaimTemplates {
		claim := &set.Spec.VolumeClaimTemplates[i]
		for _, stored := range old.Spec.VolumeClaimTemplates {
			if stored.Name == claim.Name && claim.Spec.StorageClassName == nil {
				claim.Spec.StorageClassName = stored.Spec.StorageClassName
			}
		}
	}
	return nil
}

const (
	egressJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: fetch-rates, namespace: shop, labels: {egress: internet}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: fetch, image: "registry.example.com/shop/rates:1.2"}]}
`
	tieredStatefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: index, namespace: shop, annotations: {storage.example.com/tier: ssd}}
spec:
  serviceName: index
  selector: {matchLabels: {app: index}}
  template:
    metadata: {labels: {app: index}}
    spec:
      containers:
      - name: index
        image: registry.example.com/shop/index:6.0
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 50Gi}}}
`
	teamDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop, labels: {pool.example.com/team: checkout}}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	trackDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop, labels: {release.example.com/track: canary}}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	maintainedGateway = `
apiVersion: net.example.com/v1
kind: Gateway
metadata: {name: edge, namespace: shop, annotations: {net.example.com/maintenance: sunday}}
spec: {class: edge, endpoints: [{name: https, port: 443}]}
`
)
