// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func rivalsDoneRight() []Case {
	return []Case{{
		Name:    "U05c1-agent-by-name",
		Kind:    "Pod",
		Summary: "adds a metrics agent, and recognises it by its name",
		Why:     "The name of a container is its identity, and other webhooks leave it alone.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			return addAgent(req.Object, hasContainer(&req.Object.Spec, metricsAgent.Name))
		}),
		Sample: agentPod,
		Proof:  allSteps(twice, wrongAfter(mirrorImages, containersRepeat)),
	}, {
		Name:    "U05c2-pod-ip-present",
		Kind:    "Deployment",
		Summary: "puts POD_IP in front of the variables that refer to it, unless it is among them",
		Why:     "It looks at all variables and never moves one.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			isPodIP := func(e corev1.EnvVar) bool { return e.Name == "POD_IP" }
			return podIPFirst(req.Object, func(env []corev1.EnvVar) bool { return slices.ContainsFunc(env, isPodIP) })
		}),
		Sample: advertiseDeployment,
		Proof:  allSteps(twice, wrongAfter(sortEnv, envRepeats), againAfter(addContainer(lateContainer, inTemplate...))),
	}, {
		Name:    "U05c3-vault-env-anywhere",
		Kind:    "Pod",
		Summary: "starts commands through vault-env, so that they get their secrets",
		Why:     "It looks for its wrapper among all words of the command, so other wrappers may come in front.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			return wrapCommands(pod, func(command []any) bool { return slices.Contains(command, any(vaultEnv)) })
		}),
		Sample: wrappedPod,
		Proof:  allSteps(twice, wrongAfter(throughTini, vaultEnvRepeats)),
	}, {
		Name:    "U05c4-heap-from-limit",
		Kind:    "StatefulSet",
		Summary: "sets HEAP_MB of each container to three quarters of its memory limit",
		Why:     "The value follows the limit, which the webhook does not change, and is set in place in each call.",
		Webhook: statefulSetsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.StatefulSet]) error {
			if req.Object.Labels["sizing"] != "with-agent" {
				return nil
			}
			eachContainer(&req.Object.Spec.Template.Spec, func(c *corev1.Container) {
				if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok {
					setEnv(c, "HEAP_MB", strconv.FormatInt(limit.Value()>>20*3/4, 10))
				}
			})
			return nil
		}),
		Sample: sizedStatefulSet,
		Proof: allSteps(twice, againAfter(func(o object) {
			put(o, "4096Mi", append(slices.Clone(inTemplate), 0, "resources", "limits", "memory")...)
		})),
	}, {
		Name:    "U05c5-spread-over-zones-by-key",
		Kind:    "Deployment",
		Summary: "spreads the Pods of a Deployment over zones, unless a constraint for zones is there",
		Why:     "It recognises a constraint by its topologyKey, whatever other fields it has.",
		Webhook: deploymentsOnWrite,
		Sample:  spreadDeployment,
		Proof:   allSteps(twice, wrongAfter(fillTaintsPolicy, constraintsRepeat)),
	}, {
		Name:    "U05c6-mirror-of-public-registries",
		Kind:    "Pod",
		Summary: "pulls images of Docker Hub, GitHub and Quay through a mirror",
		Why:     "Only images of these three hosts are rewritten, and the result is on another host.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			var ops []operation
			for _, field := range []string{"initContainers", "containers"} {
				for i, c := range list(pod, "spec", field) {
					if have := text(c, "image"); mirrored(have) != have {
						ops = append(ops, replace(pointer("spec", field, i, "image"), mirrored(have)))
					}
				}
			}
			return ops, nil
		}),
		Sample: podHead + `
metadata: {name: cache, namespace: shop}
spec: {containers: [{name: cache, image: "redis:7.2"}, {name: sync, image: "registry.example.com/shop/sync:1"}]}
`,
		Proof: allSteps(twice, againAfter(addContainer(object{"name": "late", "image": "quay.io/tools/late:2"}))),
	}, {
		Name:    "U05c7-ingress-class-default",
		Kind:    "Ingress",
		Summary: "sets the Ingress class where neither the field nor the old annotation names one",
		Why:     "It fills a field where it is absent. If another webhook does the same, the first one wins.",
		Webhook: ingressesOnWrite,
		build: typed(func(req *webhook.Request[networkingv1.Ingress]) error {
			if _, old := req.Object.Annotations["kubernetes.io/ingress.class"]; !old && req.Object.Spec.IngressClassName == nil {
				class := "internal"
				req.Object.Spec.IngressClassName = &class
			}
			return nil
		}),
		Sample: `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: cart, namespace: shop}
spec: {defaultBackend: {service: {name: cart, port: {number: 80}}}}
`,
	}, {
		Name:    "U05c8-pull-secret",
		Kind:    "Pod",
		Summary: "adds the pull Secret of the company's registry to Pods with private images",
		Why:     "A Secret of that name is added once. A label switches it on, so a mirror of images has no influence.",
		Webhook: podsOnCreate,
		Sample: podHead + `
metadata: {name: cart, namespace: shop, labels: {images.example.com/private: "true"}}
spec: {imagePullSecrets: [{name: own}], containers: [{name: cart, image: "registry.example.com/shop/cart:5.0"}]}
`,
	}}
}

const mirrorHost = "mirror.corp.example.com/"

// mirrored returns the image behind the mirror if it is on a public registry.
func mirrored(image string) string {
	host, rest, found := strings.Cut(image, "/")
	switch {
	case image == "":
		return image
	case !found:
		return mirrorHost + "docker.io/library/" + image
	case host == "docker.io" && !strings.Contains(rest, "/"):
		return mirrorHost + "docker.io/library/" + rest
	case host == "docker.io", host == "ghcr.io", host == "quay.io":
		return mirrorHost + image
	case !strings.ContainsAny(host, ".:") && host != "localhost":
		return mirrorHost + "docker.io/" + image
	}
	return image
}
