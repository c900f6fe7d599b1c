// SPDX-License-Identifier: Apache-2.0

// Package policy has the rules of a team that operates clusters: requirements on workloads, protection against
// accidental deletion, and the owner of each namespace.
package policy

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	// EnforceLabel on a namespace, with the value "true", turns on the rules for its workloads.
	EnforceLabel = "policy.example.com/enforce"
	// TeamLabel names the owner of a namespace. It is required.
	TeamLabel = "policy.example.com/team"
	// OwnerLabel is the deprecated form of TeamLabel. It causes a warning.
	OwnerLabel = "owner"
	// NameLabel is required on Pods and Deployments.
	NameLabel = "app.kubernetes.io/name"
	// ProtectedLabel on an object, with any value, prevents its deletion unless
	// AllowDeletionAnnotation is "true".
	ProtectedLabel = "policy.example.com/protected"
	// AllowDeletionAnnotation permits the deletion of a protected object. So a deletion takes two
	// steps.
	AllowDeletionAnnotation = "policy.example.com/allow-deletion"
)

// Hooks returns the hooks that enforce the policy. They record new namespaces in the ledger.
func Hooks(ledger Ledger) []*webhook.Hook {
	return []*webhook.Hook{
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:              "pods.policy.example.com",
			Rules:             webhook.Rules(webhook.OnWrite("", "v1", "pods")),
			NamespaceSelector: enforced(),
		}, validatePod),
		// The Pods of a Deployment are also checked, but then only the ReplicaSet controller gets
		// the error. This hook reports it to the user.
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:              "deployments.policy.example.com",
			Rules:             webhook.Rules(webhook.OnWrite("apps", "v1", "deployments")),
			NamespaceSelector: enforced(),
		}, validateDeployment),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:           "protected.policy.example.com",
			Rules:          webhook.Rules(webhook.OnDelete("", "v1", "namespaces", "configmaps")),
			ObjectSelector: having(ProtectedLabel),
		}, validateDeletion),
		// An eviction deletes the Pod without a DELETE review, so only this hook sees it.
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:              "evictions.policy.example.com",
			Rules:             webhook.Rules(webhook.OnCreate("", "v1", "pods/eviction")),
			NamespaceSelector: enforced(),
		}, validateEviction),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:        "namespaces.policy.example.com",
			Rules:       webhook.Rules(webhook.OnCreate("", "v1", "namespaces")),
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun), // the ledger
		}, validateNamespace(ledger)),
	}
}

// enforced selects the namespaces that have opted in. So the rules cannot block the workloads of the
// cluster itself.
func enforced() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{EnforceLabel: "true"}}
}

func having(label string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: label, Operator: metav1.LabelSelectorOpExists},
	}}
}
