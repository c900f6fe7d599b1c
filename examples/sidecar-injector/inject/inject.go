// SPDX-License-Identifier: Apache-2.0

// Package inject adds a proxy container to the Pods that request it.
//
// The API server may call a mutating webhook again with its own output, after other webhooks and users have changed
// that output. So the hook keeps no state and does not rely on marks in the object: it checks each part (the container, the volume, each mount) and
// adds the ones that are not there. A part is recognised by what makes it work, not by its
// name alone; where something else is in its place the Pod is denied, in every call alike.
package inject

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	// Label is set on a Pod that wants the proxy: "enabled" or, to say no aloud, "disabled".
	Label = "sidecar.example.com/inject"
	// StatusAnnotation tells people that a Pod was injected. The hooks never read it.
	StatusAnnotation = "sidecar.example.com/status"
)

// Hooks returns the hook that injects a proxy with this image, and the validating hook that checks after all mutating webhooks that every
// Pod that requests the proxy is complete.
func Hooks(image string) []*webhook.Hook {
	mutate := func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		return inject(req.Object, image)
	}
	validate := func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		return verify(req.Object)
	}
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:           "inject.sidecar.example.com",
			Rules:          newPods(),
			ObjectSelector: labelled(),
			// Containers that a later webhook adds need the mount too.
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, mutate),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:           "verify.sidecar.example.com",
			Rules:          newPods(),
			ObjectSelector: labelled(),
		}, validate),
	}
}

// newPods leaves out UPDATE: containers and volumes of a Pod cannot change any more.
func newPods() []admissionregistrationv1.RuleWithOperations {
	return webhook.Rules(webhook.OnCreate("", "v1", "pods"))
}

// labelled selects every Pod with the label, whatever its value, so that a misspelt value is
// refused and not silently taken for a no.
func labelled() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: Label, Operator: metav1.LabelSelectorOpExists},
	}}
}

// wanted reads the label. The hooks ask again what the objectSelector asks, since the
// selector in the cluster is somebody else's to change.
func wanted(pod *corev1.Pod) (bool, error) {
	value, labelled := pod.Labels[Label]
	switch {
	case !labelled || value == "disabled":
		return false, nil
	case value == "enabled":
		return true, nil
	}
	return false, field.NotSupported(field.NewPath("metadata", "labels").Key(Label), value, []string{"enabled", "disabled"})
}

// inject completes a Pod that asks for the proxy, or denies it.
func inject(pod *corev1.Pod, image string) error {
	if ok, err := wanted(pod); !ok {
		return err
	}
	if errs := conflicts(&pod.Spec); len(errs) > 0 {
		return webhook.DenyInvalid(errs)
	}
	if !hasProxy(&pod.Spec) {
		// First, so that the proxy runs before every other container. Only when it is absent:
		// a webhook that keeps moving itself to the front never comes to rest.
		pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0, proxy(image))
	}
	if !hasVolume(&pod.Spec) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume())
	}
	for at, c := range containers(&pod.Spec) {
		if mounted, _ := mountOf(c, at); !mounted {
			c.VolumeMounts = append(c.VolumeMounts, mount())
		}
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, StatusAnnotation, "injected")
	return nil
}

// verify denies a Pod that asks for the proxy and lacks a part of it, naming each. It is what
// turns the injection, which another webhook may have undone since, into a guarantee.
func verify(pod *corev1.Pod) error {
	if ok, err := wanted(pod); !ok {
		return err
	}
	errs := conflicts(&pod.Spec)
	if !hasProxy(&pod.Spec) {
		errs = append(errs, field.Required(field.NewPath("spec", "initContainers"), "the container "+ContainerName+" is missing"))
	}
	if !hasVolume(&pod.Spec) {
		errs = append(errs, field.Required(field.NewPath("spec", "volumes"), "the volume "+VolumeName+" is missing"))
	}
	for at, c := range containers(&pod.Spec) {
		if mounted, inTheWay := mountOf(c, at); !mounted && len(inTheWay) == 0 {
			errs = append(errs, field.Required(at.Child("volumeMounts"),
				"container "+c.Name+" must mount the volume "+VolumeName+" at "+MountPath))
		}
	}
	return webhook.DenyInvalid(errs)
}
