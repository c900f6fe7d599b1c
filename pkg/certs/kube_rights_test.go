// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// A right is a verb on objects of a resource; without a name, on all of them.
type right struct{ group, resource, name, verb string }

// rightsFor are all that a source needs for its Secret and the targets.
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

// limited returns a cluster for a ServiceAccount with no more than these rights.
func (c testCluster) limited(t *testing.T, rights []right) *kubeCluster {
	t.Helper()
	const rbac = "rbac.authorization.k8s.io/v1"
	namespace := c.namespace(t)
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
		c.create(t, rbac, o.kind, parse(t, fmt.Sprintf(`{"metadata": {`+o.metadata+`}, %[2]s}`, namespace, o.rest)))
	}
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":hook",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	return newTestCluster(t, config, namespace, "ca")
}

// everything does what a source does with its Secret and a target.
func everything(ctx context.Context, k *kubeCluster, target Target) error {
	s, err := k.readSecret(ctx)
	if err != nil {
		return err
	}
	if s.version == "" {
		if err := k.writeSecret(ctx, secret{data: data("a", "b")}); err != nil {
			return err
		}
		if s, err = k.readSecret(ctx); err != nil {
			return err
		}
	}
	s.data = data("a", "c")
	if err := k.writeSecret(ctx, s); err != nil {
		return err
	}
	state, err := k.readTarget(ctx, target)
	if err != nil {
		return err
	}
	return k.writeTarget(ctx, target, state, append(state.applied[0].bundle, 'x'))
}

// eventually tries until the outcome is right: the API server learns of rights with a delay.
func eventually(t *testing.T, try func() error, right func(error) bool) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = try()
		return right(last), nil
	}); err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}

func testRights(t *testing.T, c testCluster) {
	target, _ := c.configuration(t, MutatingWebhookConfiguration, "a.example.com")
	k := c.limited(t, rightsFor(target))
	ctx, log := testContext(t)
	eventually(t, func() error { return everything(ctx, k, target) }, func(err error) bool { return err == nil })
	for len(log.lines) > 0 { // by client-go, of the Secret too
		t.Errorf("logged %q", <-log.lines)
	}
	// They are no more than that.
	other, _ := c.configuration(t, MutatingWebhookConfiguration, "a.example.com")
	_, err := k.readTarget(t.Context(), other)
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
			eventually(t, func() error { return everything(t.Context(), k, target) }, func(err error) bool {
				if err == nil {
					t.Fatal("it works without")
				}
				return strings.HasPrefix(err.Error(), want) && !errors.Is(err, errConflict) && !errors.Is(err, errNoTarget)
			})
		})
	}
	t.Run("a target that is gone", func(t *testing.T) { // nobody without the right to create is refused for that
		k := c.limited(t, rightsFor(target))
		var state targetState
		eventually(t, func() (err error) {
			state, err = k.readTarget(t.Context(), target)
			return err
		}, func(err error) bool { return err == nil })
		deleteNow(t, r, target.Name)
		eventually(t, func() error { return k.writeTarget(t.Context(), target, state, []byte("x")) }, func(err error) bool {
			return errors.Is(err, errConflict)
		})
	})
}
