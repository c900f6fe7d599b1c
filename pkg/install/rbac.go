// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// RBACOptions configure [RBAC]: who gets the permissions, and for what.
type RBACOptions struct {
	// ServiceAccount is the account of the webhook's Pods, in the webhook's namespace. Required.
	ServiceAccount string
	// Hooks are the installed hooks. Required. The permissions to create and change configurations cover
	// only the kinds of these hooks.
	Hooks []*webhook.Hook
	// Certs are the options of a self-managed source of package certs, if the program runs one. An empty Namespace
	// means the webhook's namespace.
	Certs *certs.Options
	// SecretExists omits the permission to create Secrets, which RBAC cannot restrict to one name. Then the Secret of Certs
	// must exist, and may be empty.
	SecretExists bool
	// Rules are further permissions of the program by namespace, for example to list the Namespaces that its hooks
	// read. Rules with the key "" are added to the ClusterRole. Rules with another key are added to the Role in that
	// namespace.
	Rules map[string][]rbacv1.PolicyRule
}

// Permissions are roles with their bindings, as [RBAC] and [PermissionsFor] return them. All have the same name; RBAC
// uses the name of the configuration. To let another account remove the configurations, bind the roles to it, too.
type Permissions struct {
	ClusterRole        *rbacv1.ClusterRole
	ClusterRoleBinding *rbacv1.ClusterRoleBinding
	// Roles and RoleBindings are in the webhook's namespace, in the namespace of the source's Secret, and in
	// the namespaces of RBACOptions.Rules.
	Roles        []*rbacv1.Role
	RoleBindings []*rbacv1.RoleBinding
}

// RBAC returns the least permissions that an [Installer] with these options needs: to read, apply and delete its
// configurations, to send dry runs of one Lease, and to read the Deployment and the Namespace. It adds the permissions
// of the certificate source. If all hooks are mutating, or all are validating, the program may also read and delete a
// configuration of the other kind, which an earlier version may have left.
//
// Every rule that RBAC adds names its objects, except the rule to create the Secret, which Kubernetes cannot restrict
// to a name. To drop that rule, create an empty Secret yourself and set SecretExists.
//
// The permission to patch even its own configuration is strong: the configuration decides which requests of the cluster
// the webhook sees and, if it is mutating, changes. The holder of the account's token is nearly a cluster
// administrator.
func RBAC(o Options, r RBACOptions) (*Permissions, error) {
	name, namespace := o.Configuration.Name, o.namespace()
	var errs []error
	for _, required := range []struct{ what, text string }{
		{"Configuration.Name", name}, {"Configuration.Namespace", namespace}, {"ServiceAccount", r.ServiceAccount},
	} {
		if required.text == "" {
			errs = append(errs, fmt.Errorf("permissions: %s is empty", required.what))
		}
	}
	if len(r.Hooks) == 0 {
		errs = append(errs, errors.New("permissions: there are no Hooks"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	wanted, err := newWanted(o, r.Hooks)
	if err != nil {
		return nil, fmt.Errorf("permissions: %w", err)
	}
	all := rights{}
	for _, w := range wanted {
		at := configurations[w.sort]
		all.allow("", at.Group, at.Resource, name, "delete", "get")
		if w.object != nil {
			all.allow("", at.Group, at.Resource, name, "create", "patch")
		}
	}
	all.allow(namespace, leases.Group, leases.Resource, markerObject, "create", "patch")
	if o.OwnedByNamespace {
		all.allow("", namespaces.Group, namespaces.Resource, namespace, "get")
	}
	if o.Deployment != "" {
		all.allow(namespace, deployments.Group, deployments.Resource, o.Deployment, "get")
	}
	if r.Certs != nil {
		if err := all.allowCerts(namespace, *r.Certs, r.SecretExists); err != nil {
			return nil, err
		}
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: r.ServiceAccount}
	return all.permissions(name, account, r.Rules), nil
}

// PermissionsFor returns roles with these rules, bound to the subject, for a program that does not install its hooks.
// All objects have this name. The keys of rules are namespaces. The rules with the key "" become a ClusterRole, and the
// others become a Role in their namespace. Without rules, the result has no objects.
func PermissionsFor(name string, subject rbacv1.Subject, rules map[string][]rbacv1.PolicyRule) *Permissions {
	return rights{}.permissions(name, subject, rules)
}

// An object is what a permission covers: one object of a resource, or all of them if the name is
// empty.
type object struct{ namespace, group, resource, name string }

// rights maps each object to the allowed verbs.
type rights map[object]map[string]bool

func (r rights) allow(namespace, group, resource, name string, verbs ...string) {
	o := object{namespace, group, resource, name}
	if r[o] == nil {
		r[o] = map[string]bool{}
	}
	for _, verb := range verbs {
		r[o][verb] = true
	}
}

var targetResources = map[certs.TargetKind][2]string{
	certs.MutatingWebhookConfiguration:   {"admissionregistration.k8s.io", "mutatingwebhookconfigurations"},
	certs.ValidatingWebhookConfiguration: {"admissionregistration.k8s.io", "validatingwebhookconfigurations"},
	certs.CustomResourceDefinition:       {"apiextensions.k8s.io", "customresourcedefinitions"},
	certs.APIService:                     {"apiregistration.k8s.io", "apiservices"},
}

func (r rights) allowCerts(namespace string, o certs.Options, secretExists bool) error {
	if o.Namespace != "" {
		namespace = o.Namespace
	}
	if o.Secret == "" {
		return errors.New("permissions: Certs.Secret is empty")
	}
	r.allow(namespace, "", "secrets", o.Secret, "get", "update", "watch")
	if !secretExists {
		r.allow(namespace, "", "secrets", "", "create")
	}
	for _, t := range o.Targets {
		resource, known := targetResources[t.Kind]
		if !known || t.Name == "" {
			return fmt.Errorf("permissions: the target %q %q of the certificates has an unknown kind or no name", t.Kind, t.Name)
		}
		r.allow("", resource[0], resource[1], t.Name, "get", "patch", "watch")
	}
	return nil
}

// permissions returns roles with these rights and rules, bound to the subject. The keys of rules are namespaces.
func (r rights) permissions(name string, subject rbacv1.Subject, rules map[string][]rbacv1.PolicyRule) *Permissions {
	p := &Permissions{}
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	reference := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	namespaces := map[string]bool{}
	for namespace, of := range rules {
		if len(of) > 0 {
			namespaces[namespace] = true
		}
	}
	for o := range r {
		namespaces[o.namespace] = true
	}
	for _, ns := range slices.Sorted(maps.Keys(namespaces)) {
		if ns == "" {
			p.ClusterRole = &rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: meta(""), Rules: append(r.rules(""), rules[""]...)}
			p.ClusterRoleBinding = &rbacv1.ClusterRoleBinding{
				TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta(""), RoleRef: reference("ClusterRole"), Subjects: []rbacv1.Subject{subject},
			}
			continue
		}
		p.Roles = append(p.Roles, &rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta(ns), Rules: append(r.rules(ns), rules[ns]...)})
		p.RoleBindings = append(p.RoleBindings, &rbacv1.RoleBinding{
			TypeMeta: kind("RoleBinding"), ObjectMeta: meta(ns), RoleRef: reference("Role"), Subjects: []rbacv1.Subject{subject},
		})
	}
	return p
}

// rules returns the permissions in a namespace as rules in a fixed order. Resources with the same group, name and verbs
// share a rule.
func (r rights) rules(namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	objects := slices.SortedFunc(maps.Keys(r), func(a, b object) int {
		return strings.Compare(a.group+"\n"+a.resource+"\n"+a.name, b.group+"\n"+b.resource+"\n"+b.name)
	})
	for _, o := range objects {
		if o.namespace != namespace {
			continue
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{o.group}, Resources: []string{o.resource}, Verbs: slices.Sorted(maps.Keys(r[o]))}
		if o.name != "" {
			rule.ResourceNames = []string{o.name}
		}
		same := slices.IndexFunc(rules, func(other rbacv1.PolicyRule) bool {
			return slices.Equal(other.APIGroups, rule.APIGroups) && slices.Equal(other.ResourceNames, rule.ResourceNames) && slices.Equal(other.Verbs, rule.Verbs)
		})
		if same >= 0 {
			rules[same].Resources = append(rules[same].Resources, o.resource)
		} else {
			rules = append(rules, rule)
		}
	}
	return rules
}

// Objects returns the objects in the order in which to apply them.
func (p *Permissions) Objects() []runtime.Object {
	var all []runtime.Object
	if p.ClusterRole != nil {
		all = append(all, p.ClusterRole, p.ClusterRoleBinding)
	}
	for i := range p.Roles {
		all = append(all, p.Roles[i], p.RoleBindings[i])
	}
	return all
}

// YAML returns the objects as one manifest. Equal permissions give equal bytes.
func (p *Permissions) YAML() ([]byte, error) {
	var out bytes.Buffer
	for _, object := range p.Objects() {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes(), nil
}
