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
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// RBACOptions say who is given the rights, and what for besides the installation.
type RBACOptions struct {
	// ServiceAccount is that of the webhook's Pods, in the namespace of the webhook: required.
	ServiceAccount string
	// Hooks are those that are installed: required. Configurations are created and changed only
	// of the kinds that these are of.
	Hooks []*webhook.Hook
	// Certs are the options of a self-managed source of package certs, if the program runs one.
	// Its namespace is that of the webhook when unset.
	Certs *certs.Options
}

// Permissions are what a program needs to install its hooks, and no more. They are named after
// the configuration. Roles bind nobody else: to have another account remove the configurations,
// bind the roles to it, too.
type Permissions struct {
	ClusterRole        *rbacv1.ClusterRole
	ClusterRoleBinding *rbacv1.ClusterRoleBinding
	// Roles and RoleBindings are in the namespace of the webhook; the Secret of a source may be
	// in another, which has one of its own then.
	Roles        []*rbacv1.Role
	RoleBindings []*rbacv1.RoleBinding
}

// RBAC returns the permissions that an [Installer] with these options needs: to read, apply and
// delete the configurations of its name, to ask with dry runs of one Lease what is enforced,
// and to read the Deployment; and those of the source of certificates. If there are only
// mutating hooks, or only validating ones, a configuration of the other kind may be read and
// deleted, which an earlier version of the program may have left.
//
// Every rule names its objects, but for one: RBAC does not know the name of a Secret that is
// created. Create that Secret yourself, empty, to do without.
//
// To patch a configuration is a strong right even if it is one's own: what is in it decides
// which requests of the cluster the webhook sees and, if it is a mutating one, changes. Who has
// the account's token is not far from a cluster administrator.
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
	if o.Deployment != "" {
		all.allow(namespace, deployments.Group, deployments.Resource, o.Deployment, "get")
	}
	if r.Certs != nil {
		if err := all.allowCerts(namespace, *r.Certs); err != nil {
			return nil, err
		}
	}
	return all.permissions(name, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: r.ServiceAccount}), nil
}

// An object is what a right is about; a name that is empty is any.
type object struct{ namespace, group, resource, name string }

// rights holds the verbs for each object.
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

func (r rights) allowCerts(namespace string, o certs.Options) error {
	if o.Namespace != "" {
		namespace = o.Namespace
	}
	if o.Secret == "" {
		return errors.New("permissions: Certs.Secret is empty")
	}
	r.allow(namespace, "", "secrets", o.Secret, "get", "update", "watch")
	r.allow(namespace, "", "secrets", "", "create")
	for _, t := range o.Targets {
		resource, known := targetResources[t.Kind]
		if !known || t.Name == "" {
			return fmt.Errorf("permissions: the target %q %q of the certificates has no known kind, or no name", t.Kind, t.Name)
		}
		r.allow("", resource[0], resource[1], t.Name, "get", "patch", "watch")
	}
	return nil
}

func (r rights) permissions(name string, subject rbacv1.Subject) *Permissions {
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
	for o := range r {
		namespaces[o.namespace] = true
	}
	for _, ns := range slices.Sorted(maps.Keys(namespaces)) {
		if ns == "" {
			p.ClusterRole = &rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: meta(""), Rules: r.rules("")}
			p.ClusterRoleBinding = &rbacv1.ClusterRoleBinding{
				TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta(""), RoleRef: reference("ClusterRole"), Subjects: []rbacv1.Subject{subject},
			}
			continue
		}
		p.Roles = append(p.Roles, &rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta(ns), Rules: r.rules(ns)})
		p.RoleBindings = append(p.RoleBindings, &rbacv1.RoleBinding{
			TypeMeta: kind("RoleBinding"), ObjectMeta: meta(ns), RoleRef: reference("Role"), Subjects: []rbacv1.Subject{subject},
		})
	}
	return p
}

// rules returns the rights in a namespace, in a fixed order; resources of one group, name and
// set of verbs share a rule.
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

// YAML returns the objects as one manifest, the same for the same permissions.
func (p *Permissions) YAML() ([]byte, error) {
	var out bytes.Buffer
	all := []any{p.ClusterRole, p.ClusterRoleBinding}
	for i := range p.Roles {
		all = append(all, p.Roles[i], p.RoleBindings[i])
	}
	for _, object := range all {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes(), nil
}
