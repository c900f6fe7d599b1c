// SPDX-License-Identifier: Apache-2.0

package install

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const manifest = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: hooks
rules:
- apiGroups:
  - admissionregistration.k8s.io
  resourceNames:
  - hooks
  resources:
  - mutatingwebhookconfigurations
  verbs:
  - delete
  - get
- apiGroups:
  - admissionregistration.k8s.io
  resourceNames:
  - hooks
  resources:
  - validatingwebhookconfigurations
  verbs:
  - create
  - delete
  - get
  - patch
  - watch
- apiGroups:
  - apiextensions.k8s.io
  resourceNames:
  - widgets.example.com
  resources:
  - customresourcedefinitions
  verbs:
  - get
  - patch
  - watch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: hooks
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: hooks
subjects:
- kind: ServiceAccount
  name: runner
  namespace: ns
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: hooks
  namespace: ns
rules:
- apiGroups:
  - ""
  resources:
  - secrets
  verbs:
  - create
- apiGroups:
  - ""
  resourceNames:
  - hooks-ca
  resources:
  - secrets
  verbs:
  - get
  - update
  - watch
- apiGroups:
  - apps
  resourceNames:
  - deployed
  resources:
  - deployments
  verbs:
  - get
- apiGroups:
  - coordination.k8s.io
  resourceNames:
  - admitkit-marker
  resources:
  - leases
  verbs:
  - create
  - patch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: hooks
  namespace: ns
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: hooks
subjects:
- kind: ServiceAccount
  name: runner
  namespace: ns
`

func TestRBACManifest(t *testing.T) {
	o := options()
	o.Deployment = "deployed"
	source := &certs.Options{Secret: "hooks-ca", Targets: []certs.Target{
		{Kind: certs.ValidatingWebhookConfiguration, Name: "hooks"},
		{Kind: certs.CustomResourceDefinition, Name: "widgets.example.com"},
	}}
	p, err := RBAC(o, RBACOptions{ServiceAccount: "runner", Hooks: []*webhook.Hook{denying("one.example.com")}, Certs: source})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 { // the random order of maps does not change the output
		text, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != manifest {
			t.Fatalf("got\n%s", text)
		}
	}
}

// With SecretExists the program may not create Secrets, unless its own rules permit it.
func TestRBACWithoutCreatingSecrets(t *testing.T) {
	create := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}}
	for _, rules := range []map[string][]rbacv1.PolicyRule{nil, {"ns": {create}}} {
		p, err := RBAC(options(), RBACOptions{ServiceAccount: "runner", Hooks: []*webhook.Hook{denying("one.example.com")},
			Certs: &certs.Options{Secret: "ca"}, SecretExists: true, Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		may := slices.ContainsFunc(p.Roles[0].Rules, func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, create) })
		if may != (rules != nil) {
			t.Errorf("with %v the rules are %v", rules, p.Roles[0].Rules)
		}
	}
}

func TestRBACOfASecretElsewhere(t *testing.T) {
	hooks := []*webhook.Hook{denying("one.example.com"), labelling("one.example.com")}
	p, err := RBAC(options(), RBACOptions{ServiceAccount: "runner", Hooks: hooks, Certs: &certs.Options{Namespace: "vault", Secret: "ca"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Roles) != 2 || p.Roles[0].Namespace != "ns" || p.Roles[1].Namespace != "vault" || p.RoleBindings[1].Subjects[0].Namespace != "ns" {
		t.Errorf("roles %v, bindings %v", p.Roles, p.RoleBindings)
	}
	if len(p.ClusterRole.Rules) != 1 || len(p.ClusterRole.Rules[0].Resources) != 2 || len(p.ClusterRole.Rules[0].Verbs) != 4 {
		t.Errorf("both kinds have the same rights, got %v", p.ClusterRole.Rules)
	}
	if len(p.Roles[0].Rules) != 1 || len(p.Roles[1].Rules) != 2 {
		t.Errorf("rules %v and %v", p.Roles[0].Rules, p.Roles[1].Rules)
	}
}

func TestPermissionsOfHooksByNamespace(t *testing.T) {
	read := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}}
	}
	rules := map[string][]rbacv1.PolicyRule{"": read("nodes"), "ns": read("configmaps"), "other": read("secrets"), "unused": {}}
	p, err := RBAC(options(), RBACOptions{ServiceAccount: "runner", Hooks: []*webhook.Hook{denying("one.example.com")}, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.ClusterRole.Rules; !slices.Equal(got[len(got)-1].Resources, []string{"nodes"}) {
		t.Errorf("ClusterRole: %v", got)
	}
	if len(p.Roles) != 2 || len(p.Roles[0].Rules) != 2 || p.Roles[0].Rules[1].Resources[0] != "configmaps" || p.Roles[1].Namespace != "other" {
		t.Errorf("Roles: %v", p.Roles)
	}
	only := PermissionsFor("n", rbacv1.Subject{}, map[string][]rbacv1.PolicyRule{"other": read("secrets")})
	if only.ClusterRole != nil || len(only.Objects()) != 2 {
		t.Errorf("permissions in one namespace: %v", only.Objects())
	}
	if none := PermissionsFor("n", rbacv1.Subject{}, nil); len(none.Objects()) != 0 {
		t.Errorf("without rules: %v", none.Objects())
	}
}

func TestRBACReportsEveryError(t *testing.T) {
	hooks := []*webhook.Hook{denying("one.example.com")}
	rows := []struct {
		o    Options
		r    RBACOptions
		want string
	}{
		{Options{}, RBACOptions{}, "permissions: Configuration.Name is empty\npermissions: Configuration.Namespace is empty\npermissions: ServiceAccount is empty\npermissions: there are no Hooks"},
		{options(), RBACOptions{ServiceAccount: "x", Hooks: []*webhook.Hook{nil}}, "permissions: hook 0 is nil"},
		{options(), RBACOptions{ServiceAccount: "x", Hooks: hooks, Certs: &certs.Options{}}, "permissions: Certs.Secret is empty"},
		{options(), RBACOptions{ServiceAccount: "x", Hooks: hooks, Certs: &certs.Options{Secret: "s", Targets: []certs.Target{{Kind: "Pod", Name: "p"}}}}, `permissions: the target "Pod" "p"`},
	}
	for _, row := range rows {
		if _, err := RBAC(row.o, row.r); err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("got %v, want %s", err, row.want)
		}
	}
}
