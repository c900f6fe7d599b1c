// SPDX-License-Identifier: Apache-2.0

// Command vpa serves the webhook of the Vertical Pod Autoscaler on a loopback address, which it prints.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/patch"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/recommendation"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/vpa"
	autoscaling "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/limitrange"
	vpaapi "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/vpa"
)

func main() {
	log.Fatal(run())
}

func run() error {
	limits := limitrange.NewNoopLimitsCalculator()
	provider := recommendation.NewProvider(limits, vpaapi.NewCappingRecommendationProcessor(limits))
	server := logic.NewAdmissionServer(pod.NewDefaultPreProcessor(), vpa.NewDefaultPreProcessor(), limits, matcher{}, []patch.Calculator{
		patch.NewResourceUpdatesCalculator(provider, resource.QuantityValue{}), patch.NewObservedContainersCalculator(),
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, http.HandlerFunc(server.Serve))
}

// matcher stands for the lookup in a cluster. Every Pod with the label app=web belongs to one VerticalPodAutoscaler. Its
// recommender also knows extended resources, and leaves them at their limits.
type matcher struct{}

func (matcher) GetMatchingVPA(_ context.Context, p *corev1.Pod) *autoscaling.VerticalPodAutoscaler {
	if p.Labels["app"] != "web" {
		return nil
	}
	target := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	for _, c := range p.Spec.Containers {
		for name, limit := range c.Resources.Limits {
			if c.Name == "web" && strings.Contains(string(name), "/") {
				target[name] = limit
			}
		}
	}
	return &autoscaling.VerticalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: p.Namespace},
		Status: autoscaling.VerticalPodAutoscalerStatus{
			Recommendation: &autoscaling.RecommendedPodResources{
				ContainerRecommendations: []autoscaling.RecommendedContainerResources{{ContainerName: "web", Target: target}},
			},
		},
	}
}
