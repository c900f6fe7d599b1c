// SPDX-License-Identifier: Apache-2.0

// Package priority reimplements Kubernetes' admission controller Priority as hooks: a Pod gets the value of its
// PriorityClass as its priority, and only one PriorityClass can be the default.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/priority. The hooks differ from it as follows:
//
//   - PodGroups are not handled. Their API is not enabled by default.
//   - Pods in kube-system, and in the namespace of the webhook, are not changed. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
package priority

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hooks returns the hook that sets the priority of Pods, and the hook that checks PriorityClasses.
func Hooks(classes schedulinglisters.PriorityClassLister) []*webhook.Hook {
	p := &policy{classes}
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:               "set.priority.example.com",
			Rules:              webhook.Rules(webhook.OnWrite("", "v1", "pods")),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, p.mutate),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:  "check.priority.example.com",
			Rules: webhook.Rules(webhook.OnWrite("scheduling.k8s.io", "v1", "priorityclasses")),
		}, p.validate),
	}
}

type policy struct {
	classes schedulinglisters.PriorityClassLister
}

// mutate sets the priority and the preemption policy of a new Pod. An update that omits them keeps those of the old
// Pod.
func (p *policy) mutate(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	old, err := req.OldObject()
	if err != nil {
		return err
	}
	spec := &req.Object.Spec
	if old != nil {
		spec.Priority = either(spec.Priority, old.Spec.Priority)
		spec.PreemptionPolicy = either(spec.PreemptionPolicy, old.Spec.PreemptionPolicy)
		return nil
	}
	class, err := p.class(req)
	if err != nil {
		return err
	}
	spec.PriorityClassName = class.Name
	if has := spec.Priority; has != nil && *has != class.Value {
		return deny(req, fmt.Sprintf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *has, class.Value))
	}
	spec.Priority = ptr.To(class.Value)
	if class.PreemptionPolicy == nil {
		return nil
	}
	if has := spec.PreemptionPolicy; has != nil && *has != *class.PreemptionPolicy {
		return deny(req, fmt.Sprintf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *has, *class.PreemptionPolicy))
	}
	spec.PreemptionPolicy = ptr.To(*class.PreemptionPolicy)
	return nil
}

// either returns first, or second if first is nil.
func either[T any](first, second *T) *T {
	if first != nil {
		return first
	}
	return second
}

// class returns the class that the Pod names, or the default one. If there is no default, it returns a class without a
// name and with the value 0.
func (p *policy) class(req *webhook.Request[corev1.Pod]) (*schedulingv1.PriorityClass, error) {
	name := req.Object.Spec.PriorityClassName
	if name == "" {
		class, err := p.defaultClass()
		if class == nil {
			class = &schedulingv1.PriorityClass{PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority)}
		}
		return class, err
	}
	class, err := p.classes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil, deny(req, fmt.Sprintf("no PriorityClass with name %s was found", name))
	}
	return class, err
}

// defaultClass returns the default class with the lowest value. It returns nil if there is none.
func (p *policy) defaultClass() (*schedulingv1.PriorityClass, error) {
	all, err := p.classes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var lowest *schedulingv1.PriorityClass
	for _, class := range all {
		if class.GlobalDefault && (lowest == nil || class.Value < lowest.Value) {
			lowest = class
		}
	}
	return lowest, nil
}

// validate denies a PriorityClass that is marked as the default if there is already another default.
func (p *policy) validate(_ context.Context, req *webhook.Request[schedulingv1.PriorityClass]) error {
	class := req.Object
	if !class.GlobalDefault {
		return nil
	}
	other, err := p.defaultClass()
	if err != nil || other == nil {
		return err
	}
	old, err := req.OldObject()
	if err == nil && (old == nil || other.Name != class.Name) {
		return forbidden.Error(req.AdmissionRequest(), class, fmt.Sprintf("PriorityClass %s is already marked as default. Only one default can exist", other.Name))
	}
	return err
}

func deny(req *webhook.Request[corev1.Pod], reason string) error {
	return forbidden.Error(req.AdmissionRequest(), req.Object, reason)
}
