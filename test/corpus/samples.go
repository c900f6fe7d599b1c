// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Sample objects of the held-out webhooks. The harness does not generate objects of these kinds.

func metaOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "shop"}}
}

func typeOf(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func sampleIngress() *networkingv1.Ingress {
	path := func(path, service string) networkingv1.HTTPIngressPath {
		return networkingv1.HTTPIngressPath{Path: path, PathType: ptr.To(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}},
		}}
	}
	rule := func(host string, paths ...networkingv1.HTTPIngressPath) networkingv1.IngressRule {
		return networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths}}}
	}
	return &networkingv1.Ingress{
		TypeMeta: typeOf("networking.k8s.io/v1", "Ingress"), ObjectMeta: metaOf("shop"),
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{rule("shop.example.com", path("/", "web")), rule("api.example.com", path("/v1", "api"), path("/v2", "api"))}},
	}
}

func sampleClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta: typeOf("v1", "PersistentVolumeClaim"), ObjectMeta: metaOf("data"),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		},
	}
}

func sampleNamespace(name string) *corev1.Namespace {
	n := &corev1.Namespace{TypeMeta: typeOf("v1", "Namespace"), ObjectMeta: metaOf(name)}
	n.Namespace = ""
	return n
}

func sampleAutoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta: typeOf("autoscaling/v2", "HorizontalPodAutoscaler"), ObjectMeta: metaOf("web"),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MinReplicas:    ptr.To[int32](1), MaxReplicas: 1,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](80)},
			}}},
		},
	}
}

func sampleNetworkPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta: typeOf("networking.k8s.io/v1", "NetworkPolicy"), ObjectMeta: metaOf("web"),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}}},
		},
	}
}

func sampleBudget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		TypeMeta: typeOf("policy/v1", "PodDisruptionBudget"), ObjectMeta: metaOf("web"),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
}

// zeroWidget returns a Widget with retries set to 0, which is not the default.
func zeroWidget() *unstructured.Unstructured {
	w := sampleWidget()
	at(w.Object, "spec")["retries"] = int64(0)
	return w
}

// numberWidget returns a Widget with a number in a field that is usually a string.
func numberWidget() *unstructured.Unstructured {
	w := sampleWidget()
	at(w.Object, "spec")["memory"] = int64(1000)
	return w
}

// limitedPod returns a Pod with CPU and memory limits.
func limitedPod() *corev1.Pod {
	limits := corev1.ResourceList{corev1.ResourceMemory: overhead.DeepCopy(), corev1.ResourceCPU: resource.MustParse("2")}
	return samplePod(nil, corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1", Resources: corev1.ResourceRequirements{Limits: limits}}}})
}

func probedPod() *corev1.Pod {
	probe := corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	return samplePod(nil, corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1", LivenessProbe: &probe}}})
}

func sampleService() *corev1.Service {
	return &corev1.Service{
		TypeMeta: typeOf("v1", "Service"), ObjectMeta: metaOf("web"),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP}},
		},
	}
}
