// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/lint"
)

// A unit test can check the configuration that a program installs.
func ExampleRun() {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "sidecar"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "sidecar.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "sidecar", Name: "webhook"}},
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](5),
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}},
			}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	for _, f := range lint.Run(lint.Input{Objects: []runtime.Object{configuration}}, lint.Options{}) {
		if f.Suppressed == "" && f.Severity.AtLeast(lint.Warning) {
			fmt.Printf("%s %s of %s: %s\nfix: %s\n", f.Rule, f.Severity, f.Webhook, f.Message, f.Fix)
		}
	}
	// Output:
	// AK201 error of sidecar.example.com: failurePolicy is Fail, and the webhook is called for the Pods of its own Service in namespace sidecar
	// fix: namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [sidecar]}]}
}
