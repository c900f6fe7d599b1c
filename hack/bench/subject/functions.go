// SPDX-License-Identifier: Apache-2.0

// Package subject has the measured handlers: the same functions served by admitkit, controller-runtime and
// kubewebhook.
package subject

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	apiv1 "github.com/admitkit/admitkit/hack/bench/api/v1"
)

// functions are the handler functions for a Go type T. The functions for different Go types of one kind do the same.
type functions[T any] struct {
	validate       func(*T) error
	inject         func(*T) error // adds an element to a list, and an annotation
	prepend        func(*T) error // adds the element at the front of the list, and the annotation
	validateUpdate func(old, object *T) error
}

const (
	annotation   = "example.com/injected"
	sidecarName  = "proxy"
	sidecarImage = "registry.example.com/mesh/proxy:v2.3.1"
	monitorName  = "monitor"
)

var (
	errTag       = errors.New("an image has no tag")
	errImmutable = errors.New("the service account must not change")
)

func tagged(image string) error {
	if !strings.Contains(image, ":") {
		return errTag
	}
	return nil
}

func same(old, object string) error {
	if old != object {
		return errImmutable
	}
	return nil
}

func nothing[T any](*T) error { return nil }

var onPod = functions[corev1.Pod]{
	validate: func(pod *corev1.Pod) error {
		for i := range pod.Spec.Containers {
			if err := tagged(pod.Spec.Containers[i].Image); err != nil {
				return err
			}
		}
		return nil
	},
	inject: func(pod *corev1.Pod) error {
		pod.Annotations[annotation] = "true"
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: sidecarName, Image: sidecarImage})
		return nil
	},
	prepend: func(pod *corev1.Pod) error {
		pod.Annotations[annotation] = "true"
		pod.Spec.Containers = slices.Insert(pod.Spec.Containers, 0, corev1.Container{Name: sidecarName, Image: sidecarImage})
		return nil
	},
	validateUpdate: func(old, pod *corev1.Pod) error {
		return same(old.Spec.ServiceAccountName, pod.Spec.ServiceAccountName)
	},
}

// A podView is a projection of a Pod with the fields that the sidecar functions need.
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

var onView = functions[podView]{
	validate: func(pod *podView) error {
		for i := range pod.Spec.Containers {
			if err := tagged(pod.Spec.Containers[i].Image); err != nil {
				return err
			}
		}
		return nil
	},
	inject: func(pod *podView) error {
		pod.Metadata.Annotations[annotation] = "true"
		pod.Spec.Containers = append(pod.Spec.Containers, containerView{sidecarName, sidecarImage})
		return nil
	},
	prepend: func(pod *podView) error {
		pod.Metadata.Annotations[annotation] = "true"
		pod.Spec.Containers = slices.Insert(pod.Spec.Containers, 0, containerView{sidecarName, sidecarImage})
		return nil
	},
}

// An accountView is a projection of a Pod for the validation of updates.
type accountView struct {
	Spec struct {
		ServiceAccountName string `json:"serviceAccountName"`
	} `json:"spec"`
}

func validateAccountUpdate(old, pod *accountView) error {
	return same(old.Spec.ServiceAccountName, pod.Spec.ServiceAccountName)
}

var onMap = functions[unstructured.Unstructured]{
	validate: func(pod *unstructured.Unstructured) error {
		containers, _, err := unstructured.NestedFieldNoCopy(pod.Object, "spec", "containers")
		if err != nil {
			return err
		}
		for _, c := range containers.([]any) {
			if err := tagged(c.(map[string]any)["image"].(string)); err != nil {
				return err
			}
		}
		return nil
	},
	inject: func(pod *unstructured.Unstructured) error {
		return addSidecar(pod, func(list []any, sidecar any) []any { return append(list, sidecar) })
	},
	prepend: func(pod *unstructured.Unstructured) error {
		return addSidecar(pod, func(list []any, sidecar any) []any { return slices.Insert(list, 0, sidecar) })
	},
	validateUpdate: func(old, pod *unstructured.Unstructured) error {
		before, _, err := unstructured.NestedString(old.Object, "spec", "serviceAccountName")
		after, _, errAfter := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
		return errors.Join(err, errAfter, same(before, after))
	},
}

func addSidecar(pod *unstructured.Unstructured, add func(list []any, sidecar any) []any) error {
	if err := unstructured.SetNestedField(pod.Object, "true", "metadata", "annotations", annotation); err != nil {
		return err
	}
	spec := pod.Object["spec"].(map[string]any)
	spec["containers"] = add(spec["containers"].([]any), map[string]any{"name": sidecarName, "image": sidecarImage})
	return nil
}

var onDatabase = functions[apiv1.Database]{
	validate: func(d *apiv1.Database) error { return tagged(d.Spec.Image) },
	inject: func(d *apiv1.Database) error {
		d.Annotations[annotation] = "true"
		d.Spec.Users = append(d.Spec.Users, apiv1.User{Name: monitorName})
		return nil
	},
	prepend: func(d *apiv1.Database) error {
		d.Annotations[annotation] = "true"
		d.Spec.Users = slices.Insert(d.Spec.Users, 0, apiv1.User{Name: monitorName})
		return nil
	},
	validateUpdate: func(old, d *apiv1.Database) error {
		return same(*old.Spec.Storage.StorageClassName, *d.Spec.Storage.StorageClassName)
	},
}
