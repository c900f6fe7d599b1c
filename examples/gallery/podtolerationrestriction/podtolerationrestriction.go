// SPDX-License-Identifier: Apache-2.0

// Package podtolerationrestriction reimplements Kubernetes' admission controller PodTolerationRestriction as hooks: an
// annotation on a Namespace, or a default, adds tolerations to its new Pods. Another annotation lists the tolerations
// that its Pods may have. A Pod that requests CPU or memory also gets the toleration for nodes with memory pressure.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction. The hooks differ from it as follows:
//
//   - A Pod with a toleration that is not allowed is denied with the code 403 and the reason Forbidden. The original
//     also intends a denial, but returns a plain error, for which the API server answers 500 Internal Server Error.
//   - Unknown fields of the configuration file are errors of [Load]. The original ignores them.
//   - [Load] also returns an error if the whitelist of the file does not allow a default of the file. The original denies
//     the Pods of all namespaces without annotations. A [Config] that is written in Go may have such lists.
//   - If the Namespace exists but cannot be read, or an annotation is not valid, the hook fails and the failurePolicy
//     decides. With the default, Fail, the API server answers with the code 500, as for the original. The message
//     differs.
//   - Until the cache of Namespaces has synced, the program is not ready, so the failurePolicy decides. The original waits
//     up to ten seconds and then denies.
//   - Pods in kube-system, and in the namespace of the webhook, are not changed. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
package podtolerationrestriction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/tolerations"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// The annotations of a Namespace. The value is a list of tolerations as JSON. An empty value means an empty list, which
// replaces the list of the configuration.
const (
	DefaultAnnotation   = "scheduler.alpha.kubernetes.io/defaultTolerations"
	WhitelistAnnotation = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

// Hooks returns the hook that adds tolerations, and the hook that checks them after all mutating webhooks.
func Hooks(namespaces *reads.Reader[*corev1.Namespace], config Config) []*webhook.Hook {
	p := &policy{namespaces, config}
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:               "set.podtolerationrestriction.example.com",
			Rules:              webhook.Rules(webhook.OnWrite("", "v1", "pods")),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, p.mutate),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:  "check.podtolerationrestriction.example.com",
			Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods")),
		}, p.validate),
	}
}

type policy struct {
	namespaces *reads.Reader[*corev1.Namespace]
	config     Config
}

// mutate adds the default tolerations of the namespace to new Pods. To all Pods that are not BestEffort it adds the
// toleration for memory pressure. Then it checks the Pod as validate does.
func (p *policy) mutate(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	var extra []corev1.Toleration
	if req.Operation == admissionv1.Create {
		defaults, ok, err := p.annotated(ctx, req.Namespace, DefaultAnnotation)
		if err != nil {
			return err
		}
		if !ok {
			defaults = p.config.Default
		}
		extra = append(extra, defaults...)
	}
	if !isBestEffort(req.Object) {
		extra = append(extra, corev1.Toleration{
			Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	if spec := &req.Object.Spec; len(extra) > 0 {
		spec.Tolerations = tolerations.Merge(append(spec.Tolerations, extra...))
	}
	return p.validate(ctx, req)
}

// validate denies a Pod with a toleration that its namespace does not allow. The Namespace is read only if the Pod has
// tolerations.
func (p *policy) validate(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	if len(req.Object.Spec.Tolerations) == 0 {
		return nil
	}
	whitelist, ok, err := p.annotated(ctx, req.Namespace, WhitelistAnnotation)
	if err != nil {
		return err
	}
	scope := "namespace"
	if !ok {
		whitelist, scope = p.config.Whitelist, "cluster"
	}
	if len(whitelist) > 0 && !allAllowed(req.Object.Spec.Tolerations, whitelist) {
		return webhook.Denyf("pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist", scope)
	}
	return nil
}

// annotated returns the tolerations in an annotation of a Namespace, and whether the Namespace has the annotation.
func (p *policy) annotated(ctx context.Context, name, key string) ([]corev1.Toleration, bool, error) {
	namespace, err := p.namespaces.Get(ctx, "", name)
	if errors.Is(err, reads.ErrNotFound) {
		return nil, false, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	if err != nil {
		return nil, false, err // a failure: the failurePolicy decides
	}
	text, ok := namespace.Annotations[key]
	if !ok || text == "" {
		return nil, ok, nil
	}
	var list []corev1.Toleration
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, false, fmt.Errorf("the annotation %s of the namespace %s is not valid: %w", key, name, err)
	}
	return list, true, nil
}
