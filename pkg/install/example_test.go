// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// exampleOptions returns the options of a program in a cluster. config is from rest.InClusterConfig.
func exampleOptions(config *rest.Config) install.Options {
	return install.Options{
		Config: config,
		Configuration: webhook.ConfigurationOptions{
			Name:    "policy.example.com",
			Service: &admissionregistrationv1.ServiceReference{Namespace: "policy", Name: "policy"},
		},
		FailOpenFirst: true,
		Deployment:    "policy",
	}
}

func exampleHook() *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "pods.policy.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.Object.Spec.HostNetwork {
			return webhook.Deny("host networking is for the cluster's own Pods")
		}
		return nil
	})
}

// A program installs its hooks while it serves them. Run the installer in an errgroup, beside the server and the
// certificate source:
//
//	server := webhook.NewServer(webhook.Options{TLSConfig: certs.TLSConfig(source), Ready: certs.Ready(source)}, installer.Hooks()...)
//	group.Go(func() error { return source.Start(ctx) })
//	group.Go(func() error { return server.Start(ctx) })
//	group.Go(func() error { return installer.Run(ctx) })
func ExampleNew() {
	config := &rest.Config{Host: "https://127.0.0.1:6443"} // rest.InClusterConfig()
	installer, err := install.New(exampleOptions(config), exampleHook())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, hook := range installer.Hooks() {
		fmt.Println(hook.Path())
	}
	fmt.Println(installer.Targets())
	// Output:
	// /validate/marker.policy.example.com.admitkit.dev
	// /validate/pods.policy.example.com
	// [ValidatingWebhookConfiguration policy.example.com]
}

func ExampleRBAC() {
	permissions, err := install.RBAC(exampleOptions(nil), install.RBACOptions{
		ServiceAccount: "policy",
		Hooks:          []*webhook.Hook{exampleHook()},
		Certs: &certs.Options{Namespace: "policy", Secret: "policy-ca", Targets: []certs.Target{
			{Kind: certs.ValidatingWebhookConfiguration, Name: "policy.example.com"},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rule := range append(permissions.ClusterRole.Rules, permissions.Roles[0].Rules...) {
		fmt.Println(rule.Resources, rule.ResourceNames, rule.Verbs)
	}
	// Output:
	// [mutatingwebhookconfigurations] [policy.example.com] [delete get]
	// [validatingwebhookconfigurations] [policy.example.com] [create delete get patch watch]
	// [secrets] [] [create]
	// [secrets] [policy-ca] [get update watch]
	// [deployments] [policy] [get]
	// [leases] [admitkit-marker] [create patch]
}
