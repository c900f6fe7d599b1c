// SPDX-License-Identifier: Apache-2.0

// Package podnodeselector reimplements Kubernetes' admission controller PodNodeSelector as hooks: an annotation on a
// Namespace, or a default, lists labels that are added to the node selectors of its Pods. A Pod is denied if its own
// node selector has another value for such a label. A configuration file can also limit the labels that the node
// selectors of Pods in a namespace may have.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/podnodeselector. The hooks differ from it as follows:
//
//   - [Load] returns an error if the content of the configuration file is invalid. The original ignores a document that
//     it cannot read. If the selector of a namespace is invalid, it rejects every Pod there.
//   - [Load] also returns an error if a selector sets a key twice, and if the selector of a namespace does not allow the
//     default. The original uses the last value of a key, and denies the Pods of such a namespace unless its annotation
//     replaces the default. A [Config] that is written in Go may have such selectors.
//   - If the namespace cannot be read or its annotation is not valid, the hook fails and the failurePolicy decides.
//     With the default, Fail, the API server answers with the code 500, as for the original. The message differs.
//   - Until the cache of Namespaces has synced, the program is not ready, so the failurePolicy decides. The original waits
//     up to ten seconds and then denies.
//   - Pods in kube-system, and in the namespace of the webhook, are not changed. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
package podnodeselector

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Annotation on a Namespace lists the labels that are added to the node selectors of its Pods, such as
// "env=test,disk=ssd". If its value is empty, no labels are added, not even the default ones.
const Annotation = "scheduler.alpha.kubernetes.io/node-selector"

// Hooks returns the hook that adds labels to node selectors, and the hook that checks them after all mutating webhooks.
func Hooks(namespaces *reads.Reader[*corev1.Namespace], config Config) []*webhook.Hook {
	p := &policy{namespaces, config}
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:               "set.podnodeselector.example.com",
			Rules:              webhook.Rules(webhook.OnCreate("", "v1", "pods")),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, p.mutate),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:  "check.podnodeselector.example.com",
			Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		}, p.validate),
	}
}

type policy struct {
	namespaces *reads.Reader[*corev1.Namespace]
	config     Config
}

// mutate adds the labels of the namespace to the node selector of the Pod. It denies a Pod whose node selector
// conflicts with them, or is not allowed in the namespace.
func (p *policy) mutate(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	required, err := p.required(ctx, req.Namespace)
	if err != nil {
		return err
	}
	spec := &req.Object.Spec
	if !labels.Conflicts(required, spec.NodeSelector) {
		spec.NodeSelector = labels.Merge(required, spec.NodeSelector)
	}
	return p.check(req, required)
}

// validate denies a Pod whose node selector conflicts with the labels of the namespace, or is not allowed there.
func (p *policy) validate(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	required, err := p.required(ctx, req.Namespace)
	if err != nil {
		return err
	}
	return p.check(req, required)
}

// check denies a Pod if its node selector conflicts with the required labels. It also denies a Pod if its node selector
// has a label that the configuration does not allow in the namespace.
func (p *policy) check(req *webhook.Request[corev1.Pod], required labels.Set) error {
	selector := req.Object.Spec.NodeSelector
	deny := func(reason string) error {
		return apierrors.NewForbidden(corev1.Resource("pods"), req.Object.Name, errors.New(reason))
	}
	if labels.Conflicts(required, selector) {
		return deny("pod node label selector conflicts with its namespace node label selector")
	}
	if allowed := p.config.Allowed[req.Namespace]; len(allowed) > 0 && !isSubset(selector, allowed) {
		return deny("pod node label selector labels conflict with its namespace whitelist")
	}
	return nil
}

// required returns the labels that mutate adds to the node selectors of Pods in a namespace.
func (p *policy) required(ctx context.Context, name string) (labels.Set, error) {
	namespace, err := p.namespaces.Get(ctx, "", name)
	if err != nil {
		return nil, err // a failure: the failurePolicy decides
	}
	annotation, ok := namespace.Annotations[Annotation]
	if !ok {
		return p.config.Default, nil
	}
	required, err := labels.ConvertSelectorToLabelsMap(annotation)
	if err != nil {
		return nil, fmt.Errorf("the annotation %s of the namespace %s is not valid: %s", Annotation, name, err) //nolint:errorlint // a wrapped field error would deny the Pod
	}
	return required, nil
}

func isSubset(part, whole labels.Set) bool {
	for key, value := range part {
		if got, ok := whole[key]; !ok || got != value {
			return false
		}
	}
	return true
}
