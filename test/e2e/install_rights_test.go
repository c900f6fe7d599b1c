// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	installing "github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// account returns a client configuration for a ServiceAccount without permissions.
func (i *installation) account(name string) *rest.Config {
	c := rest.CopyConfig(config)
	c.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + i.name + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + i.name, "system:authenticated"},
	}
	return c
}

// permissions returns the permissions that the function RBAC of package install generates for the installation.
func (i *installation) permissions(account string, hooks ...*webhook.Hook) *installing.Permissions {
	GinkgoHelper()
	p, err := installing.RBAC(i.o, installing.RBACOptions{ServiceAccount: account, Hooks: hooks})
	Expect(err).NotTo(HaveOccurred())
	return p
}

// grant creates the roles and bindings, or replaces existing ones.
func grant(ctx context.Context, p *installing.Permissions) {
	GinkgoHelper()
	api := clients.RbacV1()
	withdraw := func(ctx context.Context) {
		missing := func(err error) { Expect(err == nil || apierrors.IsNotFound(err)).To(BeTrue(), "%v", err) }
		missing(api.ClusterRoles().Delete(ctx, p.ClusterRole.Name, metav1.DeleteOptions{}))
		missing(api.ClusterRoleBindings().Delete(ctx, p.ClusterRoleBinding.Name, metav1.DeleteOptions{}))
		for _, role := range p.Roles {
			missing(api.Roles(role.Namespace).Delete(ctx, role.Name, metav1.DeleteOptions{}))
			missing(api.RoleBindings(role.Namespace).Delete(ctx, role.Name, metav1.DeleteOptions{}))
		}
	}
	withdraw(ctx)
	DeferCleanup(withdraw)
	_, err := api.ClusterRoles().Create(ctx, p.ClusterRole, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = api.ClusterRoleBindings().Create(ctx, p.ClusterRoleBinding, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for n := range p.Roles {
		_, err = api.Roles(p.Roles[n].Namespace).Create(ctx, p.Roles[n], metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = api.RoleBindings(p.RoleBindings[n].Namespace).Create(ctx, p.RoleBindings[n], metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// allOperations runs every operation of an installer until one fails.
func (i *installation) allOperations(ctx context.Context) error {
	one := i.serving(i.denies("one.example.com"), i.denies("two.example.com"), i.labels("three.example.com"))
	two := i.serving(i.denies("two.example.com")) // has fewer webhooks, and no mutating configuration
	i.served.Store(newMux(one.Hooks()...))
	for _, step := range []func(context.Context) error{one.Apply, one.Wait, one.Promote, two.Promote, two.Remove, one.Apply, one.Remove} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// A right is a verb on a resource.
type right struct{ verb, resource string }

func (r right) String() string { return fmt.Sprintf("the verb %s on %s", r.verb, r.resource) }

func rightsOf(p *installing.Permissions) []right {
	var list []right
	for _, rules := range [][]rbacv1.PolicyRule{p.ClusterRole.Rules, p.Roles[0].Rules} {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					list = append(list, right{verb, resource})
				}
			}
		}
	}
	return list
}

// without returns a copy of the rules from which the right is removed.
func without(rules []rbacv1.PolicyRule, r right) []rbacv1.PolicyRule {
	var left []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			one := rule.DeepCopy()
			one.Resources = []string{resource}
			if resource == r.resource {
				one.Verbs = slices.DeleteFunc(one.Verbs, func(verb string) bool { return verb == r.verb })
			}
			if len(one.Verbs) > 0 {
				left = append(left, *one)
			}
		}
	}
	return left
}

var _ = Describe("the rights of Install", func() {
	var (
		i *installation
		d *appsv1.Deployment
	)
	BeforeEach(func(ctx context.Context) {
		i = newInstallation(ctx)
		i.o.Deployment, i.o.FailOpenFirst, i.o.OwnedByNamespace = "hooks", true, true
		i.o.Confirmations = 1
		d = i.newDeployment(ctx)
		i.ready(ctx, d)
	})

	It("are all in the output of RBAC", func(ctx context.Context) {
		i.o.Config = i.account("exact")
		grant(ctx, i.permissions("exact", i.denies("two.example.com"), i.labels("three.example.com")))
		Eventually(func() error { return i.allOperations(within(ctx, patience)) }, "20s", "50ms").WithContext(ctx).Should(Succeed())
	})

	It("let the Namespace own the configurations, so that they are deleted with it", func(ctx context.Context) {
		installer := i.serving(i.denies("one.example.com"))
		Expect(installer.Promote(within(ctx, patience))).To(Succeed())
		namespace, err := clients.CoreV1().Namespaces().Get(ctx, i.name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(i.validating(ctx).OwnerReferences).To(Equal([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: i.name, UID: namespace.UID}}))
	})

	It("are all needed, and an error names a missing one", func(ctx context.Context) {
		all := rightsOf(i.permissions("any", i.denies("two.example.com"), i.labels("three.example.com")))
		Expect(all).To(HaveLen(2*4 + 2 + 1 + 1))
		for n, missing := range all {
			By(missing.String())
			account := fmt.Sprintf("lacks-%d", n)
			p := i.permissions(account, i.denies("two.example.com"), i.labels("three.example.com"))
			p.ClusterRole.Rules = without(p.ClusterRole.Rules, missing)
			p.Roles[0].Rules = without(p.Roles[0].Rules, missing)
			grant(ctx, p)
			i.o.Config = i.account(account)
			// The API server uses new roles only some time after they are stored.
			Eventually(func() error { return i.allOperations(within(ctx, patience)) }, "20s", "50ms").WithContext(ctx).Should(MatchError(And(
				ContainSubstring("not allowed: grant "+missing.String()+" to the account of the webhook, as RBAC does: "),
				Not(ContainSubstring("context deadline exceeded")),
			)))
			i.o.Config = config
			Expect(i.of(i.denies("one.example.com")).Remove(within(ctx, patience))).To(Succeed())
		}
	})

	It("include reading and deleting a configuration of a kind without hooks", func(ctx context.Context) {
		older := i.serving(i.denies("one.example.com"), i.labels("three.example.com"))
		Expect(older.Apply(ctx)).To(Succeed())
		Expect(older.Wait(within(ctx, patience))).To(Succeed())
		i.o.Config = i.account("one-kind")
		p := i.permissions("one-kind", i.denies("one.example.com"))
		Expect(rightsOf(p)).NotTo(ContainElement(right{"patch", "mutatingwebhookconfigurations"}))
		grant(ctx, p)
		newer := i.serving(i.denies("one.example.com"))
		Eventually(func() error { return newer.Promote(within(ctx, patience)) }, "20s", "50ms").WithContext(ctx).Should(Succeed())
		_, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, i.name, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		Expect(newer.Remove(within(ctx, patience))).To(Succeed())
	})

	It("cannot be checked for an unauthenticated client", func(ctx context.Context) {
		i.o.Config = rest.AnonymousClientConfig(config)
		i.o.Config.BearerToken = "nobody"
		installer := i.of(i.denies("one.example.com"))
		Expect(installer.Apply(ctx)).To(MatchError(ContainSubstring("cannot read MutatingWebhookConfiguration " + i.name + ": Unauthorized")))
		Expect(installer.Wait(within(ctx, 5*time.Second))).To(MatchError(ContainSubstring("cannot check what is enforced, by a dry run of Lease " + i.name + "/admitkit-marker: Unauthorized")))
	})
})
