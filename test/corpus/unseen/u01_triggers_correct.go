// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func triggersDoneRight() []Case {
	return []Case{{
		Name:    "U01c1-gpu-profile-toleration-once",
		Kind:    "Pod",
		Summary: "adds the toleration of a GPU slice to training Pods with a CUDA image and a known profile",
		Why:     "The toleration is added only if no equal one is there.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			spec := &req.Object.Spec
			if wantsGPU(req.Object) && !slices.Contains(spec.Tolerations, gpuToleration(req.Object)) {
				spec.Tolerations = append(spec.Tolerations, gpuToleration(req.Object))
			}
			return nil
		}),
		Sample: gpuPod,
	}, {
		Name:    "U01c2-java-agent-flag-once",
		Kind:    "Pod",
		Summary: "puts the flag of the APM agent in front of -jar in Java containers of Pods that want observability",
		Why:     "A container that has the flag anywhere among its arguments is left alone, each container by itself.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			return javaAgent(pod, func(args []any) bool { return !slices.Contains(args, any(agentFlag)) })
		}),
		Sample: javaPod,
		Proof: againAfter(addContainer(object{"name": "late", "image": "quay.io/base/jre:17",
			"args": []any{"-jar", "late.jar"}})),
	}, {
		Name:    "U01c3-charge-account-of-gold-namespaces",
		Kind:    "Deployment",
		Summary: "sets the charge account of the namespace, in namespaces with the billing tier gold or platinum",
		Why:     "The value depends on the namespace alone.",
		Webhook: forNamespaces(deploymentsOnWrite, "billing.example.com/tier", "gold", "platinum"),
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			if req.Object.Annotations[chargePath] != "" {
				req.Object.Annotations["billing.example.com/account"] = "acct-" + req.Namespace
			}
			return nil
		}),
		Sample:          chargedDeployment,
		NamespaceLabels: map[string]string{"billing.example.com/tier": "gold"},
	}, {
		Name:    "U01c4-batch-window-env-everywhere",
		Kind:    "CronJob",
		Summary: "tells the containers of a CronJob its batch window",
		Why:     "Each container gets the variable by itself, and its value is set in place.",
		Webhook: cronJobsOnWrite,
		Sample:  windowCronJob,
		Proof:   againAfter(addContainer(lateContainer, "spec", "jobTemplate", "spec", "template", "spec", "containers")),
	}, {
		Name:    "U01c5-backup-pre-stop-default",
		Kind:    "StatefulSet",
		Summary: "flushes PostgreSQL before a container stops, if the container says nothing itself",
		Why:     "It fills preStop only where it is absent, so it never wraps its own command.",
		Webhook: statefulSetsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.StatefulSet]) error {
			if wantsBackup(req.Object) {
				for i := range req.Object.Spec.Template.Spec.Containers {
					defaultPreStop(&req.Object.Spec.Template.Spec.Containers[i])
				}
			}
			return nil
		}),
		Sample: databaseStatefulSet,
	}, {
		Name:    "U01c6-hardening-modes",
		Kind:    "Pod",
		Summary: "reads a hardening annotation such as \"on; mode=strict; v=2\" and sets the seccomp profile",
		Why:     "It sets one field of the Pod, only if it is nil, and knows each spelling of the annotation.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			settings := strings.FieldsFunc(req.Object.Annotations["security.example.com/hardening"],
				func(r rune) bool { return r == ';' || r == ' ' })
			if !slices.Contains(settings, "on") || !slices.Contains(settings, "mode=strict") {
				return nil
			}
			spec := &req.Object.Spec
			if spec.SecurityContext == nil {
				spec.SecurityContext = &corev1.PodSecurityContext{}
			}
			if spec.SecurityContext.SeccompProfile == nil {
				spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
			}
			return nil
		}),
		Sample: podHead + `
metadata:
  name: orders
  namespace: shop
  annotations: {security.example.com/hardening: "on; mode=strict; v=2"}
spec: {containers: [{name: orders, image: "registry.example.com/shop/orders:2.0"}]}
`,
	}, {
		Name:    "U01c7-internal-load-balancer",
		Kind:    "Service",
		Summary: "makes load balancers internal unless the Service says otherwise",
		Why:     "It fills an annotation where it is absent. A match condition and a selector switch it on.",
		Webhook: internalServices(),
		build: raw(func(_ *admissionv1.AdmissionRequest, svc object) ([]operation, error) {
			const key = "service.beta.kubernetes.io/aws-load-balancer-scheme"
			if _, ok := dict(svc, "metadata", "annotations")[key]; ok || text(svc, "spec", "type") != "LoadBalancer" {
				return nil, nil
			}
			return annotate(svc, key, "internal"), nil
		}),
		Sample: `
apiVersion: v1
kind: Service
metadata: {name: orders, namespace: shop, labels: {expose.example.com/zone: dmz}}
spec: {type: LoadBalancer, selector: {app: orders}, ports: [{name: https, port: 443, targetPort: 8443}]}
`,
	}}
}

func defaultPreStop(c *corev1.Container) {
	if repository(c.Image) != "postgres" {
		return
	}
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{}
	}
	if c.Lifecycle.PreStop == nil {
		c.Lifecycle.PreStop = flushBefore(nil)
	}
}

func internalServices() admissionregistrationv1.MutatingWebhook {
	reg := forObjects(servicesOnWrite, "expose.example.com/zone", "dmz", "edge")
	reg.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "load-balancers", Expression: "object.spec.?type.orValue('') == 'LoadBalancer'"}}
	return reg
}
