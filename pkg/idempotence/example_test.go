// SPDX-License-Identifier: Apache-2.0

package idempotence_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// registration returns the registration of a webhook that is called when a Pod is created.
func registration(name string) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{Name: name, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))}
}

// subject returns a webhook made with pkg/webhook. Any other http.Handler would do.
func subject(name string, mutate func(pod *corev1.Pod)) idempotence.Subject {
	return idempotence.Handler(registration(name), func() http.Handler {
		return webhook.Mutating(registration(name), func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			mutate(req.Object)
			return nil
		})
	})
}

var proxy = corev1.Container{Name: "proxy", Image: "registry.example.com/proxy:2"}

// appendProxy appends the proxy without checking whether the Pod has it.
func appendProxy(pod *corev1.Pod) { pod.Spec.Containers = append(pod.Spec.Containers, proxy) }

// ensureProxy appends the proxy only if the Pod lacks it.
func ensureProxy(pod *corev1.Pod) {
	isProxy := func(c corev1.Container) bool { return c.Name == proxy.Name }
	if !slices.ContainsFunc(pod.Spec.Containers, isProxy) && !slices.ContainsFunc(pod.Spec.InitContainers, isProxy) {
		pod.Spec.Containers = append(pod.Spec.Containers, proxy)
	}
}

// ExampleRun tests a webhook that is safe to call again, and one that is not. In your own test, use
// [idempotence.Check], which prints the whole report.
func ExampleRun() {
	for _, s := range []idempotence.Subject{subject("ensure.example.com", ensureProxy), subject("append.example.com", appendProxy)} {
		report, err := idempotence.Run(context.Background(), s, idempotence.Options{Objects: 6})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: safe to call again: %t\n", report.Webhooks[0], report.OK())
		for _, v := range report.Findings {
			if v.Law == idempotence.L1 {
				fmt.Printf("%s is broken: %s\n%s\n", v.Law, v.Law.Statement(), v.Summary)
			}
		}
	}
	// Output:
	// ensure.example.com: safe to call again: true
	// append.example.com: safe to call again: false
	// L1 is broken: the second call changes nothing, and the result is valid
	// the next call changes the result again: spec.containers[name=proxy#2] is added
	// L1 is broken: the second call changes nothing, and the result is valid
	// the API server rejects the result: spec.initContainers[0].name: Duplicate value: "proxy"
}

// ExampleHooks tests the hooks of a program with their own registrations. The validating hook is left out.
func ExampleHooks() {
	newHooks := func() []*webhook.Hook {
		return []*webhook.Hook{
			webhook.Mutating(registration("append.example.com"), func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
				appendProxy(req.Object)
				return nil
			}),
			webhook.Validating(admissionregistrationv1.ValidatingWebhook{
				Name: "check.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
			}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil }),
		}
	}
	report, err := idempotence.Run(context.Background(), idempotence.Hooks(newHooks), idempotence.Options{Objects: 6})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Webhooks, "safe to call again:", report.OK())
	// Output: [append.example.com] safe to call again: false
}
