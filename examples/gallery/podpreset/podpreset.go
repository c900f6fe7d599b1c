// SPDX-License-Identifier: Apache-2.0

// Package podpreset reimplements PodPreset, an admission controller that Kubernetes removed in version 1.20, as a hook:
// presets add environment variables, volumes and mounts to the new Pods of a namespace that their selectors match. If a
// part of a preset conflicts with the Pod, or with another preset, the Pod gets none of its presets. An annotation on
// the Pod names each preset that was applied.
//
// The original was k8s.io/kubernetes/plugin/pkg/admission/podpreset. The hook differs from it as follows:
//
//   - The presets come from a configuration file, since the API settings.k8s.io/v1alpha1 is gone. The file lists
//     objects of that API. After a change of the file, the program must be restarted.
//   - The value of the annotation is a hash of the preset. The original wrote the resourceVersion.
//   - The hook runs again if another webhook changes the Pod, and adds only what is missing. The original appended the
//     sources of envFrom each time.
//   - The path of a mount also conflicts with a device at that path, and with another spelling of the path, such as
//     "/data/". The API server rejects the first, and the kubelet ignores one mount of the second.
//   - The user gets a warning about a conflict. The original only logged it.
//   - Pods in kube-system, and in the namespace of the webhook, are not changed. Otherwise a cluster could not repair
//     itself while the webhook is down.
package podpreset

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	// ExcludeAnnotation on a Pod with the value "true" excludes the Pod from all presets.
	ExcludeAnnotation = "podpreset.admission.kubernetes.io/exclude"
	// AppliedPrefix is the beginning of the key of the annotation that the hook adds for a preset. The name of the preset
	// follows.
	AppliedPrefix = "podpreset.admission.kubernetes.io/podpreset-"
)

// Hook returns the hook that applies the presets, in their order.
func Hook(presets []Preset) *webhook.Hook {
	presets = withDefaults(presets)
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:               "podpreset.example.com",
		Rules:              webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
	}, func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		pod := req.Object
		_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		if isMirror || pod.Annotations[ExcludeAnnotation] == "true" {
			return nil
		}
		matching, err := match(presets, req.Namespace, pod)
		if err != nil {
			return err
		}
		changed, err := apply(matching, pod)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Info("the Pod gets no presets because of a conflict", "generateName", pod.GenerateName, "conflict", err.Error())
			req.Warnf("the presets of this Pod are not applied: %v", err)
			return nil
		}
		*pod = *changed
		return nil
	})
}

// match returns the presets of the namespace that select the Pod.
func match(presets []Preset, namespace string, pod *corev1.Pod) (matching []Preset, err error) {
	for _, p := range presets {
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("the selector of preset %s is not valid: %s", p.Name, err) //nolint:errorlint // a wrapped field error would deny the Pod
		}
		if p.Namespace == namespace && selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, p)
		}
	}
	return matching, nil
}
