// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// This hook has one registration, and a typed handler for each kind.
func ExampleValidatingKinds() {
	hook := webhook.ValidatingKinds(admissionregistrationv1.ValidatingWebhook{
		Name:  "owner.example.com",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"), webhook.OnCreate("apps", "v1", "deployments")),
	}, webhook.On(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.Object.Labels["owner"] == "" {
			return webhook.Deny("a Pod needs the label owner")
		}
		return nil
	}), webhook.On(func(_ context.Context, req *webhook.Request[appsv1.Deployment]) error {
		if req.Object.Labels["owner"] == "" {
			return webhook.Deny("a Deployment needs the label owner")
		}
		return nil
	}))

	fmt.Println(hook.Check())
	createPod(hook, `{"metadata":{"name":"web"},"spec":{"containers":[{"name":"app"}]}}`)
	// Output:
	// <nil>
	// denied with 403 Forbidden: a Pod needs the label owner
}

// This hook has one handler for Pods and for the Pod templates of all workloads. It already denies a Deployment that
// uses the host network, and not only its Pods.
func ExampleValidatingPodTemplates() {
	hook := webhook.ValidatingPodTemplates(admissionregistrationv1.ValidatingWebhook{Name: "network.example.com"},
		func(_ context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error {
			if req.Object.Spec.HostNetwork {
				return webhook.DenyInvalid(field.ErrorList{field.Forbidden(req.FieldPath().Child("spec", "hostNetwork"), "use a Service")})
			}
			return nil
		})

	createPod(hook, `{"metadata":{"name":"web"},"spec":{"hostNetwork":true,"containers":[{"name":"app"}]}}`)
	// Output:
	// denied with 422 Invalid: Pod "web" is invalid: spec.hostNetwork: Forbidden: use a Service
	//   cause: spec.hostNetwork: Forbidden: use a Service
}
