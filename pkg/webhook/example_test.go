// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// This mutating hook adds a proxy to every Pod. The patch holds only the changes of the handler: "futureField" stays,
// although the Go types of this program do not have it.
func ExampleMutating() {
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:  "proxy.example.com",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for _, c := range req.Object.Spec.Containers {
			if c.Name == "proxy" {
				return nil // the proxy was injected before
			}
		}
		req.Object.Spec.Containers = append(req.Object.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:2"})
		req.Warn("a proxy was added")
		return nil
	})

	createPod(hook, `{"metadata":{"name":"web"},"spec":{"containers":[{"name":"app","image":"app:1","futureField":1}]}}`)
	createPod(hook, `{"metadata":{"name":"web"},"spec":{"containers":[{"name":"proxy","image":"proxy:1"}]}}`)
	// Output:
	// allowed
	//   patch: [{"op":"add","path":"/spec/containers/1","value":{"name":"proxy","image":"proxy:2","resources":{}}}]
	//   warning: a proxy was added
	// allowed
}

// A projection names only the fields that the handler needs. Other fields are neither decoded nor
// lost. The same handler serves every kind that has these fields.
func ExampleMutating_projection() {
	type meta struct {
		Metadata struct {
			Labels map[string]string `json:"labels,omitempty"`
		} `json:"metadata"`
	}
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:  "team.example.com",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods", "services"), webhook.OnCreate("apps", "v1", "deployments")),
	}, func(_ context.Context, req *webhook.Request[meta]) error {
		if req.Object.Metadata.Labels["team"] == "" {
			req.Object.Metadata.Labels = map[string]string{"team": "none"}
		}
		return nil
	})

	createPod(hook, `{"metadata":{"name":"web"},"spec":{"containers":[{"name":"app"}]}}`)
	// Output:
	// allowed
	//   patch: [{"op":"add","path":"/metadata/labels","value":{"team":"none"}}]
}

// A validating handler can return a denial, which rejects the object under every failurePolicy. After any other error,
// the failurePolicy decides.
func ExampleValidating() {
	var inventory func(image string) (known bool, err error)
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "images.example.com",
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for _, c := range req.Object.Spec.Containers {
			switch known, err := inventory(c.Image); {
			case err != nil:
				return fmt.Errorf("asking the inventory: %w", err)
			case !known:
				return webhook.Denyf("image %q is not in the inventory", c.Image)
			}
		}
		return nil
	})

	pod := `{"metadata":{"name":"web"},"spec":{"containers":[{"name":"app","image":"app:1"}]}}`
	inventory = func(string) (bool, error) { return true, nil }
	createPod(hook, pod)
	inventory = func(string) (bool, error) { return false, nil }
	createPod(hook, pod)
	inventory = func(string) (bool, error) { return false, errors.New("connection refused") }
	createPod(hook, pod)
	// Output:
	// allowed
	// denied with 403 Forbidden: image "app:1" is not in the inventory
	// failed with 500 InternalError: asking the inventory: connection refused
}

// Field errors become the causes of one denial, worded like the API server's own validation.
func ExampleDenyInvalid() {
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "policy.example.com",
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		var errs field.ErrorList
		spec := field.NewPath("spec")
		if req.Object.Spec.HostNetwork {
			errs = append(errs, field.Forbidden(spec.Child("hostNetwork"), "Pods have networks of their own"))
		}
		for i, c := range req.Object.Spec.Containers {
			if !strings.Contains(c.Image, ":") {
				errs = append(errs, field.Invalid(spec.Child("containers").Index(i).Child("image"), c.Image, "must have a tag"))
			}
		}
		return webhook.DenyInvalid(errs)
	})

	createPod(hook, `{"metadata":{"name":"web"},"spec":{"hostNetwork":true,"containers":[{"name":"app","image":"app"}]}}`)
	// Output:
	// denied with 422 Invalid: Pod "web" is invalid: [spec.hostNetwork: Forbidden: Pods have networks of their own, spec.containers[0].image: Invalid value: "app": must have a tag]
	//   cause: spec.hostNetwork: Forbidden: Pods have networks of their own
	//   cause: spec.containers[0].image: Invalid value: "app": must have a tag
}

// SideEffect runs a function that makes changes outside of the object, unless the request is a dry run.
func ExampleRequest_SideEffect() {
	sideEffects := admissionregistrationv1.SideEffectClassNoneOnDryRun
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:        "ticket.example.com",
		Rules:       webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		SideEffects: &sideEffects,
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		return req.SideEffect(func() error {
			fmt.Println("a ticket is opened")
			return nil
		})
	})

	createPod(hook, `{"metadata":{"name":"web"}}`)
	// Output:
	// a ticket is opened
	// allowed
}

// Configurations returns the objects that register hooks with an API server. Every field is
// explicit.
func ExampleConfigurations() {
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:  "proxy.example.com",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })

	configuration, _, err := webhook.Configurations(webhook.ConfigurationOptions{
		Name:    "proxy",
		Service: &admissionregistrationv1.ServiceReference{Namespace: "proxy-system", Name: "webhook"},
	}, hook)
	if err != nil {
		panic(err)
	}
	text, err := yaml.Marshal(configuration)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
	// Output:
	// apiVersion: admissionregistration.k8s.io/v1
	// kind: MutatingWebhookConfiguration
	// metadata:
	//   name: proxy
	// webhooks:
	// - admissionReviewVersions:
	//   - v1
	//   - v1beta1
	//   clientConfig:
	//     service:
	//       name: webhook
	//       namespace: proxy-system
	//       path: /mutate/proxy.example.com
	//       port: 443
	//   failurePolicy: Fail
	//   matchPolicy: Equivalent
	//   name: proxy.example.com
	//   namespaceSelector:
	//     matchExpressions:
	//     - key: kubernetes.io/metadata.name
	//       operator: NotIn
	//       values:
	//       - kube-system
	//       - proxy-system
	//   objectSelector: {}
	//   reinvocationPolicy: Never
	//   rules:
	//   - apiGroups:
	//     - ""
	//     apiVersions:
	//     - v1
	//     operations:
	//     - CREATE
	//     resources:
	//     - pods
	//     scope: '*'
	//   sideEffects: None
	//   timeoutSeconds: 5
}

// A registration is checked by the rules of the API server. All errors are reported together.
func ExampleHook_Check() {
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "policy",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods", "*")),
	}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
	fmt.Println(hook.Check())
	// Output:
	// validating[policy].name: Invalid value: "policy": should be a domain with at least three segments separated by dots
	// validating[policy].rules[0].resources[0]: Invalid value: "pods": "*" already covers it
}

// createPod calls a hook as an API server does, and prints the answer.
func createPod(hook http.Handler, pod string) {
	body := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE","name":"web",
		"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":` + pod + `}}`
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	hook.ServeHTTP(recorder, request)

	var answer struct {
		Message, Reason string // of a Status
		Response        admissionv1.AdmissionResponse
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		panic(err)
	}
	response := answer.Response
	switch {
	case recorder.Code != http.StatusOK:
		fmt.Printf("failed with %d %s: %s\n", recorder.Code, answer.Reason, answer.Message)
	case response.Allowed:
		fmt.Println("allowed")
	default:
		fmt.Printf("denied with %d %s: %s\n", response.Result.Code, response.Result.Reason, response.Result.Message)
		if details := response.Result.Details; details != nil {
			for _, cause := range details.Causes {
				fmt.Printf("  cause: %s: %s\n", cause.Field, cause.Message)
			}
		}
	}
	if response.Patch != nil {
		fmt.Printf("  patch: %s\n", response.Patch)
	}
	for _, warning := range response.Warnings {
		fmt.Printf("  warning: %s\n", warning)
	}
}
