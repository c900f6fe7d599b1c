// SPDX-License-Identifier: Apache-2.0

// Package subject holds what is measured: the handler functions of the benchmarks and the
// same functions behind admitkit, controller-runtime and kubewebhook.
package subject

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

var errTag = errors.New("an image has no tag")

const (
	annotation   = "example.com/injected"
	sidecarName  = "proxy"
	sidecarImage = "registry.example.com/mesh/proxy:v2.3.1"
)

// Each operation is written once for each shape of the object, and does the same for all.

func validatePod(pod *corev1.Pod) error {
	for i := range pod.Spec.Containers {
		if !strings.Contains(pod.Spec.Containers[i].Image, ":") {
			return errTag
		}
	}
	return nil
}

func appendPod(pod *corev1.Pod) error {
	pod.Annotations[annotation] = "true"
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: sidecarName, Image: sidecarImage})
	return nil
}

func prependPod(pod *corev1.Pod) error {
	pod.Annotations[annotation] = "true"
	pod.Spec.Containers = slices.Insert(pod.Spec.Containers, 0, corev1.Container{Name: sidecarName, Image: sidecarImage})
	return nil
}

// A podView is the projection of a Pod for these operations: it names what they need.
type podView struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Containers []containerView `json:"containers"`
	} `json:"spec"`
}

type containerView struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

func validateView(pod *podView) error {
	for i := range pod.Spec.Containers {
		if !strings.Contains(pod.Spec.Containers[i].Image, ":") {
			return errTag
		}
	}
	return nil
}

func appendView(pod *podView) error {
	pod.Metadata.Annotations[annotation] = "true"
	pod.Spec.Containers = append(pod.Spec.Containers, containerView{sidecarName, sidecarImage})
	return nil
}

func prependView(pod *podView) error {
	pod.Metadata.Annotations[annotation] = "true"
	pod.Spec.Containers = slices.Insert(pod.Spec.Containers, 0, containerView{sidecarName, sidecarImage})
	return nil
}

func nothing[T any](*T) error { return nil }
