// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

// A right is a permission: a verb on an object of a resource. An empty name means all objects.
type right struct{ group, resource, name, verb string }

// rightsFor returns the permissions that a source needs for its Secret and the targets.
func rightsFor(targets ...Target) []right {
	all := []right{
		{"", "secrets", "ca", "get"}, {"", "secrets", "ca", "update"}, {"", "secrets", "ca", "watch"}, {"", "secrets", "", "create"},
	}
	for _, target := range targets {
		r := targetResources[target.Kind]
		for _, verb := range []string{"get", "patch", "watch"} {
			all = append(all, right{r.Group, r.Resource, target.Name, verb})
		}
	}
	return all
}

// limited returns a client of a ServiceAccount that has only these permissions.
func (c testCluster) limited(t *testing.T, rights []right) *Client {
	t.Helper()
	const rbac = "rbac.authorization.k8s.io/v1"
	namespace := c.Namespace(t)
	rules := func(namespaced bool) string {
		var all []string
		for _, r := range rights {
			names := "[]"
			if r.name != "" {
				names = fmt.Sprintf("[%q]", r.name)
			}
			if (r.group == "") == namespaced {
				all = append(all, fmt.Sprintf(`{"apiGroups": [%q], "resources": [%q], "verbs": [%q], "resourceNames": %s}`, r.group, r.resource, r.verb, names))
			}
		}
		return strings.Join(all, ", ")
	}
	subjects := fmt.Sprintf(`[{"kind": "ServiceAccount", "namespace": %q, "name": "hook"}]`, namespace)
	for _, o := range []struct{ kind, metadata, rest string }{
		{"Role", `"namespace": %[1]q, "name": "hook"`, `"rules": [` + rules(true) + `]`},
		{"RoleBinding", `"namespace": %[1]q, "name": "hook"`, `"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "hook"}, "subjects": ` + subjects},
		{"ClusterRole", `"name": %[1]q`, `"rules": [` + rules(false) + `]`},
		{"ClusterRoleBinding", `"name": %[1]q`, fmt.Sprintf(`"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": %q}, "subjects": %s`, namespace, subjects)},
	} {
		c.Create(t, rbac, o.kind, kubetest.Parse(t, fmt.Sprintf(`{"metadata": {`+o.metadata+`}, %[2]s}`, namespace, o.rest)))
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":hook",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	return newTestCluster(t, config, namespace, "ca")
}

// everything makes each kind of request that a source makes for its Secret and a target.
func everything(ctx context.Context, k *Client, target Target) error {
	s, err := k.ReadSecret(ctx)
	if err != nil {
		return err
	}
	if s.Version == "" {
		if err := k.WriteSecret(ctx, Secret{Data: data("a", "b")}); err != nil {
			return err
		}
		if s, err = k.ReadSecret(ctx); err != nil {
			return err
		}
	}
	s.Data = data("a", "c")
	if err := k.WriteSecret(ctx, s); err != nil {
		return err
	}
	state, err := k.ReadTarget(ctx, target)
	if err != nil {
		return err
	}
	return k.WriteTarget(ctx, target, state, append(state.applied[0].Bundle, 'x'))
}

func testRights(t *testing.T, c testCluster) {
	target, _ := c.configuration(t, MutatingWebhookConfiguration, "a.example.com")
	k := c.limited(t, rightsFor(target))
	ctx, log := testContext(t)
	kubetest.Eventually(t, func() error { return everything(ctx, k, target) }, func(err error) bool { return err == nil })
	for len(log.Lines) > 0 { // with a logger, client-go would log request bodies with the Secret
		t.Errorf("logged %q", <-log.Lines)
	}
	// The permissions cover no other object.
	other, _ := c.configuration(t, MutatingWebhookConfiguration, "a.example.com")
	_, err := k.ReadTarget(t.Context(), other)
	wantError(t, err, nil, other.Name, "no permission to get it")
}

func testMissingRights(t *testing.T, c testCluster) {
	target, r := c.configuration(t, MutatingWebhookConfiguration, "a.example.com")
	for _, missing := range rightsFor(target) {
		if missing.verb == "watch" {
			continue // see the next test
		}
		t.Run(missing.verb+" "+missing.resource, func(t *testing.T) {
			k := c.limited(t, slices.DeleteFunc(rightsFor(target), func(r right) bool { return r == missing }))
			object := "Secret " + k.namespace + "/ca"
			resource := "secrets"
			if missing.group != "" {
				object, resource = "MutatingWebhookConfiguration "+target.Name, missing.resource+"."+missing.group
			}
			want := fmt.Sprintf("%s: no permission to %s it: grant the verb %s on %s, as the manifest of install.RBAC does: ", object, missing.verb, missing.verb, resource)
			kubetest.Eventually(t, func() error { return everything(t.Context(), k, target) }, func(err error) bool {
				if err == nil {
					t.Fatal("it works without")
				}
				return strings.HasPrefix(err.Error(), want) && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNoTarget)
			})
		})
	}
	t.Run("a deleted target", func(t *testing.T) { // patching an absent object needs the permission to create it
		k := c.limited(t, rightsFor(target))
		var state TargetState
		kubetest.Eventually(t, func() (err error) {
			state, err = k.ReadTarget(t.Context(), target)
			return err
		}, func(err error) bool { return err == nil })
		kubetest.Delete(t, r, target.Name)
		kubetest.Eventually(t, func() error { return k.WriteTarget(t.Context(), target, state, []byte("x")) }, func(err error) bool {
			return errors.Is(err, ErrConflict)
		})
	})
}
