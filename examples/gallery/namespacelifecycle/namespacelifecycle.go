// SPDX-License-Identifier: Apache-2.0

// Package namespacelifecycle reimplements one part of Kubernetes' admission controller NamespaceLifecycle as a hook:
// some Namespaces cannot be deleted. The original, which is enabled by default, has a fixed list of them. The hook can
// protect others as well.
//
// The original is k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle. The hook differs from it as follows:
//
//   - It does not deny the creation of objects in a Namespace that is being deleted. The original sees each deletion in
//     its own API server. For the next 30 s, it does not trust its cache of Namespaces. A webhook is called before a
//     deletion is stored, and only one replica of it is called. So the other replicas could admit an object after the
//     namespace controller has looked for remaining objects, and the object would stay.
//   - It does not deny objects in a Namespace that does not exist. Package namespaceexists does.
//   - It denies in the validating phase, and the original in the mutating one. Nothing in between can change a
//     deletion.
//   - If the webhook is down, no user can delete a protected Namespace. Other Namespaces are not affected, because the
//     API server does not call the hook for them.
package namespacelifecycle

import (
	"context"
	"errors"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Protected returns the names of the Namespaces that the original protects.
func Protected() []string {
	return []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
}

// Hook returns the hook that denies the deletion of the Namespaces with these names. It needs at least one name.
func Hook(protected ...string) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "namespacelifecycle.example.com",
		Rules: webhook.Rules(webhook.OnDelete("", "v1", "namespaces")),
		// The default selector leaves out kube-system.
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Clone(protected),
		}}},
	}, func(_ context.Context, req *webhook.Request[corev1.Namespace]) error {
		if slices.Contains(protected, req.Name) {
			return apierrors.NewForbidden(corev1.Resource("namespaces"), req.Name, errors.New("this namespace may not be deleted"))
		}
		return nil
	})
}
