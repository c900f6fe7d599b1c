// SPDX-License-Identifier: Apache-2.0

// Package sidecarinjection provides hooks that add a proxy container to Pods. They follow the conventions of Istio's
// injector:
//
//   - A label on a Namespace or on a Pod selects the revision of the injector, so that two revisions can run at the
//     same time. The label on the Namespace takes precedence. The revision default also serves namespaces with the
//     label mesh.example.com/injection=enabled, and Pods that opt in.
//   - mesh.example.com/inject=true or false, as a label or an annotation of the Pod, opts in or out. The label takes
//     precedence over the annotation. Pods in the host network get no proxy, nor do static Pods.
//   - Annotations of the Pod choose where the proxy is: an ordinary container at the end; the first container, so that
//     the kubelet starts the others when the proxy is ready; or a native sidecar, which also serves init containers and
//     lets Jobs finish.
//   - The proxy has its own requests and limits. If the Pod itself has resources, the proxy shares these instead.
//   - A user can customize the proxy: a container of the Pod with the name of the proxy is used instead. The image
//     "auto" stands for the image of the injector.
//
// Unlike Istio, the hooks deny unknown values, and Pods that use the name of the proxy's volume or its path for
// something else. They are never called for kube-system. Do not select the namespace of the webhook: its Pods could not
// start again once none of them runs.
//
// The API server calls the hooks again after other webhooks, with Pods that have changed in the meantime. So a hook
// only adds missing parts and replaces the image "auto". It never moves or replaces anything else.
package sidecarinjection

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Labels and annotations by which users control the injection.
const (
	// RevisionLabel on a Namespace or a Pod has the revision of the injector.
	RevisionLabel = "mesh.example.com/rev"
	// InjectionLabel on a Namespace is "enabled" for the revision default. With any other value, the namespace gets no
	// proxies.
	InjectionLabel = "mesh.example.com/injection"
	// InjectLabel is the key of a label or an annotation of a Pod with the value "true" or "false".
	InjectLabel = "mesh.example.com/inject"
	// HoldAnnotation on a Pod with "true" makes its containers wait for the proxy. It takes precedence over the
	// configuration.
	HoldAnnotation = "mesh.example.com/hold-application-until-proxy-starts"
	// NativeAnnotation on a Pod with "true" makes the proxy a native sidecar. It takes precedence over the configuration.
	NativeAnnotation = "mesh.example.com/native-sidecar"
	// StatusAnnotation shows users which revision has injected the Pod. The hooks never read it.
	StatusAnnotation = "mesh.example.com/status"
)

// Hooks returns a hook for each way in which a Namespace or a Pod can select the revision. They differ only in their
// selectors, and at most one of them matches a Pod.
func Hooks(config Config) (all []*webhook.Hook) {
	for _, s := range config.selections() {
		all = append(all, webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:               s.name + ".sidecarinjection.example.com",
			Rules:              webhook.Rules(webhook.OnCreate("", "v1", "pods")),
			NamespaceSelector:  &metav1.LabelSelector{MatchExpressions: append(s.namespace, notSystem)},
			ObjectSelector:     &metav1.LabelSelector{MatchExpressions: s.object},
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error { return config.inject(req.Object) }))
	}
	return all
}

// inject adds the missing parts of the proxy, or denies the Pod.
func (c Config) inject(pod *corev1.Pod) error {
	inject, err := wanted(pod)
	if !inject || err != nil {
		return err
	}
	place, err := c.placeOf(pod)
	if err != nil {
		return err
	}
	if errs := conflicts(&pod.Spec); len(errs) > 0 {
		return webhook.DenyInvalid(errs)
	}
	if proxyOf(&pod.Spec) == nil {
		c.addProxy(&pod.Spec, place)
	}
	own := proxyOf(&pod.Spec)
	if own.Image == autoImage {
		own.Image = c.Image
	}
	if mounted, _ := mountIn(own, nil); !mounted {
		own.VolumeMounts = append(own.VolumeMounts, mount())
	}
	if !hasVolume(&pod.Spec) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume())
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, StatusAnnotation, c.revision())
	return nil
}

// wanted reports whether a Pod that matches the selectors gets a proxy.
func wanted(pod *corev1.Pod) (bool, error) {
	if _, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; isMirror || pod.Spec.HostNetwork {
		return false, nil
	}
	metadata := field.NewPath("metadata")
	if _, ok := pod.Labels[InjectLabel]; ok {
		return parse(pod.Labels, InjectLabel, true, metadata.Child("labels"))
	}
	return parse(pod.Annotations, InjectLabel, true, metadata.Child("annotations"))
}

// parse returns the value of a label or an annotation, which must be "true" or "false". If there is none with this key,
// it returns byDefault.
func parse(values map[string]string, key string, byDefault bool, at *field.Path) (bool, error) {
	switch value, ok := values[key]; {
	case !ok:
		return byDefault, nil
	case value == "true" || value == "false":
		return value == "true", nil
	default:
		return false, field.NotSupported(at.Key(key), value, []string{"true", "false"})
	}
}
