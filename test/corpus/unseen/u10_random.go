// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func randomBugs() []Case {
	return []Case{{
		Name:    "U10b1-token-volume-by-prefix",
		Kind:    "Pod",
		Summary: "mounts a token for the cloud from a volume with a generated name, as kube-api-access volumes have",
		Why: "CREATE the same Pod twice: the volumes have different names. And a Pod with a volume token-cache of its own gets " +
			"that one mounted as its token, because the webhook recognises its volume by the prefix.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			return mountToken(req.Object, "token-"+randomHex(3),
				func(name string) bool { return strings.HasPrefix(name, "token-") })
		}),
		Sample: cloudPod,
		Proof:  unsteady,
	}, {
		Name:    "U10b2-rollout-id",
		Kind:    "Deployment",
		Summary: "labels the template with the id of the rollout, so that logs can be told apart",
		Why: "CREATE a Deployment, then UPDATE it with what is stored: the template has another id, so each write, even one of " +
			"the status page's annotation, rolls all Pods out again.",
		Webhook: deploymentsOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, d object) ([]operation, error) {
			if dict(d, "spec", "template", "metadata", "labels") == nil || annotation(d, "release.example.com/trace") != "true" {
				return nil, nil
			}
			return []operation{add("/spec/template/metadata/labels/rollout-id", randomHex(4))}, nil
		}),
		Sample: tracedDeployment,
		Proof:  twice,
	}, {
		Name:    "U10b3-one-trace-id-per-pod",
		Kind:    "Pod",
		Summary: "sets the same random TRACE_ROOT in all containers of a Pod",
		Why: "CREATE a Pod; another webhook adds a container; the second call draws another id for it, so the containers of one " +
			"Pod report to two traces.",
		Webhook: podsOnCreate,
		Sample:  rootPod,
		Proof:   wrongAfter(addContainer(lateContainer), rootsDiffer),
	}, {
		Name:    "U10b4-endpoint-ids",
		Kind:    "Gateway",
		Summary: "gives the endpoints of a Gateway ids where they have none",
		Why: "CREATE a Gateway; UPDATE it with the same manifest, which has no ids: the endpoints get new random ids, and the " +
			"controller takes them for other endpoints and drops their connections.",
		Webhook: gatewaysOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, gw object) ([]operation, error) {
			return endpointIDs(gw, func(object) string { return "ep-" + randomHex(6) }), nil
		}),
		Sample: endpointGateway,
		CRDs:   []string{gatewayCRD},
		Proof:  replacedWith(func(object) {}, kept("spec", "endpoints")),
	}, {
		Name:    "U10b5-random-node-port",
		Kind:    "Service",
		Summary: "moves node ports of game servers into a range of their own",
		Why: "CREATE a Service: each port gets a random node port of the range. The second call, and each UPDATE, draws others, " +
			"so the clients' ports change.",
		Webhook: servicesOnWrite,
		build: typed(func(req *webhook.Request[corev1.Service]) error {
			if req.Object.Labels["games.example.com/expose"] == "node-port" {
				for i := range req.Object.Spec.Ports {
					req.Object.Spec.Ports[i].NodePort = 31000 + mathrand.Int32N(1000)
				}
			}
			return nil
		}),
		Sample: gameService,
		Proof:  twice,
	}}
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	if _, err := rand.Read(b); err != nil {
		return "00"
	}
	return hex.EncodeToString(b)
}

func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// mountToken mounts the token. It uses the first volume for which isOwn returns true, or adds a volume with the name.
func mountToken(pod *corev1.Pod, name string, isOwn func(string) bool) error {
	audience := pod.Annotations["cloud.example.com/audience"]
	if audience == "" {
		return nil
	}
	if i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return isOwn(v.Name) }); i >= 0 {
		name = pod.Spec.Volumes[i].Name
	} else {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, Path: "token"}}}}}})
	}
	var err error
	eachContainer(&pod.Spec, func(c *corev1.Container) {
		if e := ensureMount(c, corev1.VolumeMount{Name: name, MountPath: "/var/run/cloud"}); e != nil {
			err = e
		}
	})
	return err
}

// mountNamespaceToken mounts the token from the volume with the given name. It updates the audience of this volume, and
// denies the Pod if the volume is not a token.
func mountNamespaceToken(pod *corev1.Pod, name string) error {
	audience := pod.Annotations["cloud.example.com/audience"]
	for _, v := range pod.Spec.Volumes {
		if v.Name != name || audience == "" {
			continue
		}
		if v.Projected == nil || len(v.Projected.Sources) != 1 || v.Projected.Sources[0].ServiceAccountToken == nil {
			return webhook.Denyf("the volume %s is not a token", name)
		}
		token := v.Projected.Sources[0].ServiceAccountToken
		token.Audience, token.Path = audience, "token"
	}
	return mountToken(pod, name, func(have string) bool { return have == name })
}

func endpointIDs(gw object, id func(endpoint object) string) []operation {
	var ops []operation
	for i, e := range list(gw, "spec", "endpoints") {
		if endpoint, ok := e.(object); ok && text(e, "id") == "" {
			ops = append(ops, add(pointer("spec", "endpoints", i, "id"), id(endpoint)))
		}
	}
	return ops
}

func rootsDiffer(o object) string {
	first := ""
	for _, c := range list(o, "spec", "containers") {
		root := text(c, "env", max(named(list(c, "env"), "TRACE_ROOT"), 0), "value")
		if first == "" {
			first = root
		}
		if root == "" || root != first {
			return fmt.Sprintf("container %s has the root %q, others have %q", text(c, "name"), root, first)
		}
	}
	return ""
}

func randomDoneRight() []Case {
	return []Case{{
		Name:    "U10c1-token-volume-by-hash",
		Kind:    "Pod",
		Summary: "mounts a token for the cloud from a volume whose name has a hash of the namespace",
		Why:     "The name depends on the namespace alone, and the audience is set in place. What conflicts is denied.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			return mountNamespaceToken(req.Object, "token-"+shortHash(req.Namespace))
		}),
		Sample: cloudPod,
		Proof: allSteps(twice, unsteady, againAfter(addContainer(lateContainer)), againAfter(func(o object) {
			put(o, "other.example.com", "metadata", "annotations", "cloud.example.com/audience")
		})),
	}, {
		Name:    "U10c2-config-id",
		Kind:    "Deployment",
		Summary: "labels the template with a hash of the settings in an annotation, so that a change rolls out",
		Why:     "The hash is over the user's annotation, which the webhook does not write.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			if settings, ok := req.Object.Annotations["release.example.com/trace"]; ok {
				metav1.SetMetaDataLabel(&req.Object.Spec.Template.ObjectMeta, "settings-id", shortHash(settings))
			}
			return nil
		}),
		Sample: tracedDeployment,
		Proof:  allSteps(twice, replacedWith(func(object) {}, kept("spec", "template"))),
	}, {
		Name:    "U10c3-trace-root-of-app",
		Kind:    "Pod",
		Summary: "sets TRACE_ROOT in all containers to an id made of namespace and app",
		Why:     "All containers get the same id in each call, the late ones too, and it follows the label of the app.",
		Webhook: podsOnCreate,
		Sample:  rootPod,
		Proof: allSteps(twice, unsteady, againAfter(addContainer(lateContainer)),
			wrongAfter(addContainer(lateContainer), rootsDiffer),
			againAfter(func(o object) { put(o, "basket", "metadata", "labels", "app") })),
	}, {
		Name:    "U10c4-endpoint-ids-by-name",
		Kind:    "Gateway",
		Summary: "gives the endpoints of a Gateway ids where they have none",
		Why:     "The id is a hash of the endpoint's name, which is its key, so the same manifest gets the same ids.",
		Webhook: gatewaysOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, gw object) ([]operation, error) {
			return endpointIDs(gw, func(e object) string { return "ep-" + shortHash(text(e, "name")) }), nil
		}),
		Sample: endpointGateway,
		CRDs:   []string{gatewayCRD},
		Proof:  allSteps(twice, unsteady, replacedWith(func(object) {}, kept("spec", "endpoints"))),
	}, {
		Name:    "U10c5-source-ranges-of-games",
		Kind:    "Service",
		Summary: "restricts load balancers of game servers to the company's networks, in a fixed order",
		Why:     "It fills a list where it is absent, from a map whose keys are sorted.",
		Webhook: servicesOnWrite,
		build: typed(func(req *webhook.Request[corev1.Service]) error {
			if spec := &req.Object.Spec; req.Object.Labels["games.example.com/expose"] == "node-port" &&
				spec.Type == corev1.ServiceTypeLoadBalancer && len(spec.LoadBalancerSourceRanges) == 0 {
				for _, office := range sortedKeys(officeRanges) {
					spec.LoadBalancerSourceRanges = append(spec.LoadBalancerSourceRanges, officeRanges[office])
				}
			}
			return nil
		}),
		Sample: gameService,
		Proof:  allSteps(twice, unsteady),
	}, {
		Name:    "U10c6-cron-minute-by-hash",
		Kind:    "CronJob",
		Summary: "spreads CronJobs that say @hourly over the hour",
		Why: "The minute is a hash of namespace and group, so the same manifest gets the same minute, and the result is not " +
			"@hourly any more.",
		Webhook: cronJobsOnWrite,
		build: typed(func(req *webhook.Request[batchv1.CronJob]) error {
			group, ok := req.Object.Annotations["batch.example.com/spread"]
			if ok && req.Object.Spec.Schedule == "@hourly" {
				sum := sha256.Sum256([]byte(req.Namespace + "\x00" + group))
				req.Object.Spec.Schedule = strconv.Itoa(int(sum[0])%60) + " * * * *"
			}
			return nil
		}),
		Sample: `
apiVersion: batch/v1
kind: CronJob
metadata: {name: sweep, namespace: shop, annotations: {batch.example.com/spread: cleanup}}
spec:
  schedule: "@hourly"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: sweep, image: "registry.example.com/shop/sweep:1"}]}
`,
		Proof: allSteps(twice, unsteady, replacedWith(func(object) {}, kept("spec", "schedule"))),
	}, {
		Name:    "U10c7-run-group",
		Kind:    "Job",
		Summary: "labels Jobs with a group that is a hash of namespace and an annotation",
		Why:     "It does not depend on the generated name, so a second call and another instance say the same.",
		Webhook: jobsOnCreate,
		Sample: `
apiVersion: batch/v1
kind: Job
metadata: {generateName: import-, namespace: shop, annotations: {batch.example.com/group: "catalog/full"}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: import, image: "registry.example.com/shop/import:3"}]}
`,
		Proof: allSteps(twice, unsteady),
	}}
}

var officeRanges = map[string]string{"berlin": "198.51.100.0/26", "lisbon": "198.51.100.64/26", "oslo": "203.0.113.0/24"}

const (
	cloudPod = podHead + `
metadata: {name: upload, namespace: shop, annotations: {cloud.example.com/audience: sts.cloud.example.com}}
spec: {containers: [{name: upload, image: "registry.example.com/shop/upload:1.0"}]}
`
	tracedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop, annotations: {release.example.com/trace: "true"}}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	rootPod = podHead + `
metadata: {name: cart, namespace: shop, labels: {app: cart, tracing.example.com/root: "true"}}
spec: {containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`
	endpointGateway = `
apiVersion: net.example.com/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {class: edge, endpoints: [{name: https, port: 443}, {name: grpc, port: 8443}]}
`
	gameService = `
apiVersion: v1
kind: Service
metadata: {name: arena, namespace: shop, labels: {games.example.com/expose: node-port}}
spec: {type: LoadBalancer, selector: {app: arena}, ports: [{name: game, port: 7777, protocol: UDP}]}
`
)
