// SPDX-License-Identifier: Apache-2.0

// Package inject adds a proxy container to the Pods that request it.
//
// The API server may call a mutating webhook again with its own output, after other webhooks and users have
// changed that output. So the hook keeps no state and does not rely on marks in the object. It checks each
// part (the container, the volume, each mount) and adds the missing ones. It recognizes a part by its
// content, not by its name alone. If something else has the name or the path of a part, the hook denies the
// Pod in every call.
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
	// Label on a Pod requests the proxy with "enabled", or declines it with "disabled".
	Label = "sidecar.example.com/inject"
	// StatusAnnotation shows users that a Pod was injected. The hooks never read it.
	StatusAnnotation = "sidecar.example.com/status"
)

// Hooks returns the hook that injects a proxy with this image, and a validating hook. The latter checks, after
// all mutating webhooks, that every Pod that requests the proxy is complete.
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
			// Containers that a later webhook adds also need the mount.
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, mutate),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:           "verify.sidecar.example.com",
			Rules:          newPods(),
			ObjectSelector: labelled(),
		}, validate),
	}
}

// newPods returns rules for CREATE only, because an UPDATE cannot change the containers and volumes of a Pod.
func newPods() []admissionregistrationv1.RuleWithOperations {
	return webhook.Rules(webhook.OnCreate("", "v1", "pods"))
}

// labelled selects every Pod with the label. So a Pod with a misspelt value is denied, not ignored.
func labelled() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: Label, Operator: metav1.LabelSelectorOpExists},
	}}
}

// wanted reports whether the label requests the proxy. The hooks repeat the check of the objectSelector,
// because the cluster administrator can change the selector.
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

// inject adds the missing parts to a Pod that requests the proxy, or denies it.
func inject(pod *corev1.Pod, image string) error {
	if ok, err := wanted(pod); !ok {
		return err
	}
	if errs := conflicts(&pod.Spec); len(errs) > 0 {
		return webhook.DenyInvalid(errs)
	}
	if !hasProxy(&pod.Spec) {
		// Insert it first, so that the proxy starts before every other container. Never move an
		// existing one: two webhooks that move to the front would never agree.
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

// verify denies a Pod that requests the proxy and lacks a part of it. The denial names each missing part. So
// no Pod is stored without its proxy, even if another webhook undid the injection.
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
