// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// C27 to C46: correct webhooks for kinds other than Pods.

func correctOtherKinds() []Case {
	return []Case{
		onTemplates("C27 StatefulSet: environment of the template", "apps/v1", "statefulsets", statefulSetTemplate, ensuredEnv),
		onTemplates("C28 DaemonSet: runs on every node", "apps/v1", "daemonsets", daemonSetTemplate, toleratesAll),
		onTemplates("C29 CronJob: sidecar that ends with the Job", "batch/v1", "cronjobs", cronJobTemplate, nativeSidecar),
		onKind("C30 Job: cleans up, in creates and updates", "batch/v1", "jobs", cleansUp),
		onKind("C31 Job: suspended until its queue admits it", "batch/v1", "jobs", queued).
			registered(onlyLabelled("queue.example.com/name", "shop")).samples(queuedJob()),
		onKind("C32 Service: internal load balancer", "v1", "services", internalBalancer).samples(sampleService()),
		onKind("C33 Service: port for metrics", "v1", "services", metricsPort).samples(sampleService()),
		kindCase("C34 ConfigMap: label, operations by hand", "v1", "configmaps", byHand(labelByHand)),
		onKind("C35 ConfigMap: certificates unless it is immutable", "v1", "configmaps", certificatesAdded),
		onKind("C36 Secret: rotation", "v1", "secrets", rotated),
		onKind("C37 ServiceAccount: adds a pull secret, mounts no token", "v1", "serviceaccounts", accountDefaults),
		onKind("C38 Ingress: adds a class, and TLS for every host", "networking.k8s.io/v1", "ingresses", everyHostSecure).samples(sampleIngress()),
		onKind("C39 PersistentVolumeClaim: class on CREATE, label always", "v1", "persistentvolumeclaims", claimDefaults).samples(sampleClaim()),
		kindCase("C40 Namespace: Pod security, without types", "v1", "namespaces", mapped(namespaceLabels)).samples(sampleNamespace("team-shop")),
		onKind("C41 HorizontalPodAutoscaler: scales down slowly", "autoscaling/v2", "horizontalpodautoscalers", slowDown).samples(sampleAutoscaler()),
		onKind("C42 NetworkPolicy: allows DNS", "networking.k8s.io/v1", "networkpolicies", dnsAllowed).samples(sampleNetworkPolicy()),
		onKind("C43 PodDisruptionBudget: permits the eviction of unhealthy Pods", "policy/v1", "poddisruptionbudgets", unhealthyMayGo).samples(sampleBudget()),
		onDeployments("C44 Deployment: mesh proxy in the template", meshProxy),
		onKind("C45 Deployment: owner team on object and template", "apps/v1", "deployments", teamLabels),
		kindCase("C46 Deployment: checksum of the settings of its namespace", "apps/v1", "deployments", byHand(settingsChecksum)),
	}
}

func statefulSetTemplate(s *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &s.Spec.Template }
func daemonSetTemplate(d *appsv1.DaemonSet) *corev1.PodTemplateSpec     { return &d.Spec.Template }
func cronJobTemplate(c *batchv1.CronJob) *corev1.PodTemplateSpec {
	return &c.Spec.JobTemplate.Spec.Template
}

// toleratesAll adds a toleration for every taint.
var toleratesAll = changes(func(p *corev1.Pod) {
	ensureToleration(p, corev1.Toleration{Operator: corev1.TolerationOpExists})
})

// nativeSidecar adds an init container that keeps running, once.
var nativeSidecar = changes(func(p *corev1.Pod) {
	if !nameTaken(p, "mesh-proxy") {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
			Name: "mesh-proxy", Image: "registry.example.com/mesh/proxy:1.24", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		})
	}
})

// cleansUp sets ttlSecondsAfterFinished if it is nil. The API server permits that even while a Job runs.
var cleansUp = changes(func(j *batchv1.Job) {
	if j.Spec.TTLSecondsAfterFinished == nil {
		j.Spec.TTLSecondsAfterFinished = ptr.To[int32](3600)
	}
	setKey(&j.Labels, "example.com/cleanup", "ttl")
})

// queued suspends Jobs until its controller admits them. It changes the template, which is immutable,
// on CREATE only.
func queued(r *review.Request, j *batchv1.Job) error {
	if j.Annotations["queue.example.com/admitted"] != "true" {
		j.Spec.Suspend = ptr.To(true)
	}
	if _, ok := j.Spec.Template.Annotations["queue.example.com/workload"]; !ok && r.Operation == admissionv1.Create {
		setKey(&j.Spec.Template.Annotations, "queue.example.com/workload", "shop")
	}
	return nil
}

// queuedJob returns a Job with the label that the webhook selects.
func queuedJob() *batchv1.Job {
	j := &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "work", Image: "work:v1"}},
	}}}}
	j.APIVersion, j.Kind = "batch/v1", "Job"
	j.Name, j.Namespace, j.Labels = "sample", "default", map[string]string{"queue.example.com/name": "shop"}
	return j
}

// internalBalancer annotates Services of type LoadBalancer that lack its annotation.
var internalBalancer = changes(func(s *corev1.Service) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	if _, ok := s.Annotations["lb.example.com/internal"]; !ok {
		setKey(&s.Annotations, "lb.example.com/internal", "true")
	}
})

// metricsPort adds a port unless its name, or its number and protocol, are taken. It skips Services
// with an unnamed port, because only a Service with one port may have that.
var metricsPort = changes(func(s *corev1.Service) {
	own := corev1.ServicePort{Name: "metrics", Port: 9090, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(9090)}
	if s.Spec.Type == corev1.ServiceTypeExternalName || slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Name == own.Name || p.Name == "" || p.Port == own.Port && cmp.Or(p.Protocol, corev1.ProtocolTCP) == own.Protocol
	}) {
		return
	}
	s.Spec.Ports = append(s.Spec.Ports, own)
})

// labelByHand adds one label. It adds the labels map only if the map is missing.
func labelByHand(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	labels, ok := member[tree](doc, "metadata", "labels")
	switch {
	case labels["example.com/managed"] != nil:
		return nil, nil
	case !ok:
		return []op{{Op: "add", Path: "/metadata/labels", Value: tree{"example.com/managed": "true"}}}, nil
	}
	return []op{{Op: "add", Path: "/metadata/labels/example.com~1managed", Value: "true"}}, nil
}

// certificatesAdded adds data to a ConfigMap unless it is immutable or the key is in use.
var certificatesAdded = changes(func(c *corev1.ConfigMap) {
	const key = "ca.crt"
	if _, taken := c.BinaryData[key]; taken || ptr.Deref(c.Immutable, false) {
		return
	}
	if _, ok := c.Data[key]; !ok {
		setKey(&c.Data, key, "-----BEGIN CERTIFICATE-----")
	}
})

// rotated annotates a Secret with a word that depends only on the type of the Secret, which is immutable.
var rotated = changes(func(s *corev1.Secret) {
	if s.Type == corev1.SecretTypeTLS {
		setKey(&s.Annotations, "rotation.example.com/kind", "certificate")
		return
	}
	setKey(&s.Annotations, "rotation.example.com/kind", "opaque")
})

// accountDefaults adds its pull secret if it is missing, and sets automountServiceAccountToken to false if it is nil.
var accountDefaults = changes(func(a *corev1.ServiceAccount) {
	own := corev1.LocalObjectReference{Name: "registry-mirror"}
	if !slices.Contains(a.ImagePullSecrets, own) {
		a.ImagePullSecrets = append(a.ImagePullSecrets, own)
	}
	if a.AutomountServiceAccountToken == nil {
		a.AutomountServiceAccountToken = ptr.To(false)
	}
})

// everyHostSecure adds TLS for each host that lacks it, in every call.
var everyHostSecure = changes(func(i *networkingv1.Ingress) {
	if _, old := i.Annotations["kubernetes.io/ingress.class"]; i.Spec.IngressClassName == nil && !old {
		i.Spec.IngressClassName = ptr.To("internal")
	}
	for _, rule := range i.Spec.Rules {
		if rule.Host == "" || slices.ContainsFunc(i.Spec.TLS, func(t networkingv1.IngressTLS) bool {
			return t.SecretName == "wildcard" && slices.Contains(t.Hosts, rule.Host)
		}) {
			continue
		}
		i.Spec.TLS = append(i.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{rule.Host}, SecretName: "wildcard"})
	}
})

// claimDefaults sets the immutable storage class on CREATE only, and a label in every call.
func claimDefaults(r *review.Request, c *corev1.PersistentVolumeClaim) error {
	if _, old := c.Annotations[corev1.BetaStorageClassAnnotation]; r.Operation == admissionv1.Create && c.Spec.StorageClassName == nil && !old {
		c.Spec.StorageClassName = ptr.To("standard")
	}
	setKey(&c.Labels, "example.com/backup", "daily")
	return nil
}

// namespaceLabels adds the labels of Pod Security that are missing.
var namespaceLabels = changes(func(doc tree) {
	labels := at(doc, "metadata", "labels")
	for _, mode := range []string{"enforce", "warn"} {
		if key := "pod-security.kubernetes.io/" + mode; labels[key] == nil {
			labels[key] = "baseline"
		}
	}
})

// slowDown sets the stabilization window for scaling down if it is nil.
var slowDown = changes(func(h *autoscalingv2.HorizontalPodAutoscaler) {
	if h.Spec.Behavior == nil {
		h.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	}
	if h.Spec.Behavior.ScaleDown == nil {
		h.Spec.Behavior.ScaleDown = &autoscalingv2.HPAScalingRules{}
	}
	if h.Spec.Behavior.ScaleDown.StabilizationWindowSeconds == nil {
		h.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = ptr.To[int32](600)
	}
})

// dnsAllowed adds its rule unless the policy has an equal one.
var dnsAllowed = changes(func(n *networkingv1.NetworkPolicy) {
	own := networkingv1.NetworkPolicyEgressRule{Ports: []networkingv1.NetworkPolicyPort{
		{Protocol: ptr.To(corev1.ProtocolUDP), Port: ptr.To(intstr.FromInt32(53))},
		{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(53))},
	}}
	same := func(rule networkingv1.NetworkPolicyEgressRule) bool {
		return len(rule.To) == 0 && slices.EqualFunc(rule.Ports, own.Ports, func(a, b networkingv1.NetworkPolicyPort) bool {
			return ptr.Equal(a.Protocol, b.Protocol) && ptr.Equal(a.Port, b.Port) && ptr.Equal(a.EndPort, b.EndPort)
		})
	}
	if slices.Contains(n.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) && !slices.ContainsFunc(n.Spec.Egress, same) {
		n.Spec.Egress = append(n.Spec.Egress, own)
	}
})

// unhealthyMayGo sets unhealthyPodEvictionPolicy if it is nil, so that unhealthy Pods can be evicted.
var unhealthyMayGo = changes(func(b *policyv1.PodDisruptionBudget) {
	if b.Spec.UnhealthyPodEvictionPolicy == nil {
		b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
})

// teamLabels labels the Deployment. It also labels the template if the label is missing there and the selector cannot
// refer to it.
func teamLabels(r *review.Request, d *appsv1.Deployment) error {
	const key = "example.com/team"
	setKey(&d.Labels, key, "team-of-"+r.Namespace)
	if _, ok := d.Spec.Template.Labels[key]; !ok && d.Spec.Selector != nil && len(d.Spec.Selector.MatchExpressions) == 0 {
		setKey(&d.Spec.Template.Labels, key, "team-of-"+r.Namespace)
	}
	return nil
}

// settingsChecksum annotates the template with a hash of settings that depend only on the namespace.
func settingsChecksum(r *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	const key = "checksum.example.com/settings"
	want := hash([]string{"settings", r.Namespace})
	metadata, ok := member[tree](doc, "spec", "template", "metadata")
	annotations, has := member[tree](metadata, "annotations")
	switch {
	case annotations[key] == want:
		return nil, nil
	case !ok:
		return []op{{Op: "add", Path: "/spec/template/metadata", Value: tree{"annotations": tree{key: want}}}}, nil
	case !has:
		return []op{{Op: "add", Path: "/spec/template/metadata/annotations", Value: tree{key: want}}}, nil
	}
	return []op{{Op: "add", Path: "/spec/template/metadata/annotations/" + pointerToken(key), Value: want}}, nil
}
