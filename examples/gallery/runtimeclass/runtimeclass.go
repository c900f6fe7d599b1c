// SPDX-License-Identifier: Apache-2.0

// Package runtimeclass reimplements Kubernetes' admission controller RuntimeClass as hooks: a Pod with a RuntimeClass
// gets its overhead, its node selector and its tolerations. A Pod cannot set an overhead of its own.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/runtimeclass. The hooks differ from it as follows:
//
//   - If the RuntimeClass cannot be read, the hook fails and the failurePolicy decides. The user then gets the API
//     server's message for a failed webhook.
//   - A Pod whose RuntimeClass has an empty name is denied with 403. The original answers with 500.
//   - A Pod with an empty overhead and no RuntimeClass is admitted. The original denies it, but the API server leaves an
//     empty map out of the object that it sends to a webhook.
//   - Pods in kube-system, and in the namespace of the webhook, are not changed. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
package runtimeclass

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/examples/gallery/tolerations"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hooks returns the hook that sets the fields, and the hook that checks the overhead after all mutating webhooks.
func Hooks(classes *reads.Reader[*nodev1.RuntimeClass]) []*webhook.Hook {
	p := &policy{classes}
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:               "set.runtimeclass.example.com",
			Rules:              webhook.Rules(webhook.OnCreate("", "v1", "pods")),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, p.mutate),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:  "check.runtimeclass.example.com",
			Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		}, p.validate),
	}
}

type policy struct {
	classes *reads.Reader[*nodev1.RuntimeClass]
}

// mutate sets the overhead of a Pod and adds node selector labels and tolerations, as its RuntimeClass defines them. It
// denies a Pod with a conflicting overhead or node selector.
func (p *policy) mutate(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	class, err := p.class(ctx, req)
	if err != nil || class == nil {
		return err
	}
	spec := &req.Object.Spec
	if class.Overhead != nil {
		if len(spec.Overhead) > 0 && !equality.Semantic.DeepEqual(class.Overhead.PodFixed, spec.Overhead) {
			return deny(req, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
		}
		spec.Overhead = class.Overhead.PodFixed.DeepCopy()
	}
	if class.Scheduling == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		want := class.Scheduling.NodeSelector[key]
		if has, ok := spec.NodeSelector[key]; ok && has != want {
			return deny(req, fmt.Sprintf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, want, key, has))
		}
	}
	if spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{}
	}
	maps.Copy(spec.NodeSelector, class.Scheduling.NodeSelector)
	spec.Tolerations = tolerations.Merge(slices.Concat(spec.Tolerations, class.Scheduling.Tolerations))
	return nil
}

// validate denies a Pod whose overhead differs from that of its RuntimeClass. A Pod without a RuntimeClass must have no
// overhead.
func (p *policy) validate(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	class, err := p.class(ctx, req)
	overhead := req.Object.Spec.Overhead
	switch {
	case err != nil:
		return err
	case class != nil && class.Overhead != nil:
		if !equality.Semantic.DeepEqual(class.Overhead.PodFixed, overhead) {
			return deny(req, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
		}
	case overhead != nil:
		return deny(req, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
	}
	return nil
}

// class returns the RuntimeClass of the Pod, or nil if the Pod names none.
func (p *policy) class(ctx context.Context, req *webhook.Request[corev1.Pod]) (*nodev1.RuntimeClass, error) {
	name := req.Object.Spec.RuntimeClassName
	if name == nil {
		return nil, nil
	}
	class, err := p.classes.Get(ctx, "", *name)
	if errors.Is(err, reads.ErrNotFound) {
		return nil, deny(req, fmt.Sprintf("pod rejected: RuntimeClass %q not found", *name))
	}
	return class, err
}

func deny(req *webhook.Request[corev1.Pod], reason string) error {
	return forbidden.Error(req.AdmissionRequest(), req.Object, reason)
}
