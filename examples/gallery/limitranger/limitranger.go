// SPDX-License-Identifier: Apache-2.0

// Package limitranger reimplements Kubernetes' admission controller LimitRanger as hooks: the LimitRanges of a
// namespace give containers default requests and limits. They also set a minimum, a maximum and a ratio for what
// containers, Pods and claims may use.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/limitranger. The hooks differ from it as follows:
//
//   - LimitRanges are applied in the order of their names, and so are the resources in each of them. The original takes
//     both from maps, in an order that changes from call to call. The order decides which of two defaults a container
//     gets, which LimitRange the annotation describes, and which LimitRange a denial names.
//   - If the LimitRanges cannot be read, the hook fails and the failurePolicy decides. The original denies the request.
//   - If the cache has no LimitRange of a namespace, the hooks ask the API server, and remember for 30 seconds that
//     there is none. The original also remembers the LimitRanges that it found that way for 30 seconds.
//   - Until the cache of LimitRanges has synced, the program is not ready, so the failurePolicy decides. The original waits
//     up to ten seconds and then denies.
//   - Objects in kube-system, and in the namespace of the webhook, are not limited. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
package limitranger

import (
	"context"
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hooks returns the hook that sets the defaults of containers, and the hook that checks Pods and claims after all
// mutating webhooks. The Reader must return all LimitRanges of a namespace for any name.
func Hooks(ranges *reads.Reader[[]*corev1.LimitRange]) []*webhook.Hook {
	p := &policy{ranges}
	// Other updates cannot change what a container requests.
	create, resize := webhook.OnCreate("", "v1", "pods"), webhook.OnUpdate("", "v1", "pods/resize")
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:               "set.limitranger.example.com",
			Rules:              webhook.Rules(create, resize),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, p.mutate),
		webhook.ValidatingKinds(admissionregistrationv1.ValidatingWebhook{
			Name:  "check.limitranger.example.com",
			Rules: webhook.Rules(create, resize, webhook.OnWrite("", "v1", "persistentvolumeclaims")),
		}, webhook.On(p.validatePod), webhook.On(p.validateClaim)),
	}
}

type policy struct {
	ranges *reads.Reader[[]*corev1.LimitRange]
}

// mutate sets the requests and limits that the containers of a Pod lack.
func (p *policy) mutate(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	ranges, err := p.rangesFor(ctx, req.Namespace, req.IsDeleting())
	for _, r := range ranges {
		setDefaults(r, req.Object)
	}
	return err
}

// validatePod denies a Pod if a container or the Pod as a whole is outside of the limits.
func (p *policy) validatePod(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	ranges, err := p.rangesFor(ctx, req.Namespace, req.IsDeleting())
	if err != nil {
		return err
	}
	reason := firstViolated(ranges, func(limit corev1.LimitRangeItem) []error { return podErrors(limit, &req.Object.Spec) })
	if reason != nil {
		return forbidden.Error(req.AdmissionRequest(), req.Object, reason.Error())
	}
	return nil
}

// validateClaim denies a claim that requests less or more storage than it may.
func (p *policy) validateClaim(ctx context.Context, req *webhook.Request[corev1.PersistentVolumeClaim]) error {
	ranges, err := p.rangesFor(ctx, req.Namespace, req.IsDeleting())
	if err != nil {
		return err
	}
	reason := firstViolated(ranges, func(limit corev1.LimitRangeItem) []error { return claimErrors(limit, &req.Object.Spec) })
	if reason != nil {
		return forbidden.Error(req.AdmissionRequest(), req.Object, reason.Error())
	}
	return nil
}

// rangesFor returns the LimitRanges of the namespace. It returns none for an object that is being deleted.
func (p *policy) rangesFor(ctx context.Context, namespace string, deleting bool) ([]*corev1.LimitRange, error) {
	if deleting {
		return nil, nil
	}
	ranges, err := p.ranges.Get(ctx, namespace, "*")
	if errors.Is(err, reads.ErrNotFound) {
		return nil, nil
	}
	return ranges, err
}

// firstViolated returns all errors of the first LimitRange that is violated, or nil.
func firstViolated(ranges []*corev1.LimitRange, check func(corev1.LimitRangeItem) []error) error {
	for _, r := range ranges {
		var errs []error
		for _, limit := range r.Spec.Limits {
			errs = append(errs, check(limit)...)
		}
		if len(errs) > 0 {
			return utilerrors.NewAggregate(errs)
		}
	}
	return nil
}
