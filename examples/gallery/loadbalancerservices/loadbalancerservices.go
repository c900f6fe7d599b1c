// SPDX-License-Identifier: Apache-2.0

// Package loadbalancerservices provides a hook that denies Services of type LoadBalancer. Each of them costs money and
// exposes the cluster to the outside. A label on a Namespace allows them there. A Service that already has this type
// can still be updated and deleted.
//
// The hook reads no Namespaces. Its namespaceSelector leaves out kube-system and the namespaces with the label, and its
// matchCondition leaves out Services of other types. The API server does not call the hook for these, so they do not
// depend on the webhook. The selector replaces the default one, so the hook is also called for load balancers in its
// own namespace.
package loadbalancerservices

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Label on a Namespace, with the value "true", allows Services of type LoadBalancer there.
const Label = "loadbalancerservices.example.com/allowed"

// Hook returns the hook that denies the Services.
func Hook() *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "loadbalancerservices.example.com",
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "services")),
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: Label, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{metav1.NamespaceSystem}},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "load-balancer", Expression: "has(object.spec.type) && object.spec.type == 'LoadBalancer'",
		}},
	}, validate)
}

// validate denies a Service that becomes a load balancer.
func validate(_ context.Context, req *webhook.Request[corev1.Service]) error {
	old, err := req.OldObject()
	if err != nil {
		return err
	}
	if !isLoadBalancer(req.Object) || isLoadBalancer(old) {
		return nil
	}
	return forbidden.Error(req.AdmissionRequest(), req.Object, fmt.Sprintf(
		"the namespace %s does not allow Services of type LoadBalancer; a cluster administrator can allow them with: kubectl label namespace %[1]s %s=true",
		req.Namespace, Label))
}

func isLoadBalancer(service *corev1.Service) bool {
	return service != nil && service.Spec.Type == corev1.ServiceTypeLoadBalancer
}
