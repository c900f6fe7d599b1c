// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hooks returns a hook that reads Namespaces from a cache. It creates a client and an informer, but does not call the
// API server itself.
func Hooks(_ context.Context, deps *program.Deps) ([]*webhook.Hook, error) {
	clients, err := kubernetes.NewForConfig(deps.Config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	lister := factory.Core().V1().Namespaces().Lister()
	deps.RunInformers(factory)
	deps.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}})
	return []*webhook.Hook{webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "teams.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		namespace, err := lister.Get(req.Namespace)
		if err != nil {
			return errors.New("namespace of the Pod: " + err.Error()) // with %w, "not found" would be a denial instead of a failure
		}
		if namespace.Labels["team"] == "" {
			return webhook.Denyf("the namespace %s has no team", namespace.Name)
		}
		return nil
	})}, nil
}

// A main function would call Main. This example calls Run to print the permissions of the program, which works without
// a cluster.
func Example() {
	p := program.Program{Name: "teams", Hooks: Hooks}
	if err := p.Run(context.Background(), []string{"--print-rbac"}, os.Stdout, os.Stderr); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ---
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: ClusterRole
	// metadata:
	//   name: teams
	// rules:
	// - apiGroups:
	//   - ""
	//   resources:
	//   - namespaces
	//   verbs:
	//   - list
	//   - watch
	// ---
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: ClusterRoleBinding
	// metadata:
	//   name: teams
	// roleRef:
	//   apiGroup: rbac.authorization.k8s.io
	//   kind: ClusterRole
	//   name: teams
	// subjects:
	// - kind: ServiceAccount
	//   name: teams
	//   namespace: teams
}
