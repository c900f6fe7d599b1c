// SPDX-License-Identifier: Apache-2.0

package seats

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	// Required is the label of a Namespace whose Pods need a seat. Its value must be "true".
	Required = "seats.example.com/required"
	// Mark is the name of the scheduling gate and of the label that these Pods get.
	Mark = "seats.example.com/seat"
)

// Hooks returns the hook that marks new Pods, and the hook that reserves a seat for each of them.
func Hooks(ledger *Ledger) []*webhook.Hook {
	rules := webhook.Rules(webhook.OnCreate("", "v1", "pods"))
	required := &metav1.LabelSelector{MatchLabels: map[string]string{Required: "true"}}
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name: "mark.seats.example.com", Rules: rules, NamespaceSelector: required,
		}, mark),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: "reserve.seats.example.com", Rules: rules, NamespaceSelector: required,
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun), // the ledger
		}, reserve(ledger)),
	}
}

// mark adds the gate and the label to the Pod. A Pod that already has a node cannot wait, so mark denies it.
func mark(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	if req.Object.Spec.NodeName != "" {
		return field.Forbidden(field.NewPath("spec", "nodeName"), "the Pod must wait for a seat before it gets a node: use spec.nodeSelector")
	}
	if !gated(req.Object) {
		req.Object.Spec.SchedulingGates = append(req.Object.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: Mark})
	}
	metav1.SetMetaDataLabel(&req.Object.ObjectMeta, Mark, "")
	return nil
}

// reserve takes a seat for the Pod. A validating hook does this, because it sees the UID of the new Pod. On a dry run,
// the hook gives the same answer but writes nothing.
func reserve(ledger *Ledger) func(context.Context, *webhook.Request[corev1.Pod]) error {
	return func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		if _, labelled := req.Object.Labels[Mark]; !labelled || !gated(req.Object) {
			return webhook.Denyf("the Pod lacks the label or the scheduling gate %s: another webhook has removed it", Mark)
		}
		var free bool
		err := ledger.change(ctx, func(taken entries) error {
			free = ledger.take(taken, req.Object, time.Now().Add(ledger.Hold))
			return nil
		}, req.SideEffect)
		if err != nil {
			return fmt.Errorf("cannot reserve a seat: %v", err.Error()) // not %w: an error of the API server would deny the Pod
		}
		if !free {
			return webhook.Denyf("all %d seats are taken: delete a Pod, or wait until one has finished", ledger.Seats)
		}
		return nil
	}
}

func gated(pod *corev1.Pod) bool { return slices.ContainsFunc(pod.Spec.SchedulingGates, isMark) }

func isMark(gate corev1.PodSchedulingGate) bool { return gate.Name == Mark }
