// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	installing "github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// An installation is the set of hooks that one spec installs. Its configurations belong to the namespace of the same
// name. The hooks select the objects of the target namespace.
type installation struct {
	name, target string
	o            installing.Options
	served       atomic.Pointer[http.ServeMux]
}

func newInstallation(ctx context.Context) *installation {
	GinkgoHelper()
	i := &installation{name: newNamespace(ctx), target: newNamespace(ctx)}
	door := newRecordingServer(i, "127.0.0.1")
	i.o = installing.Options{
		Config: config, Logger: logr.New(ginkgoSink{}), Confirmations: 2, Interval: 5 * time.Millisecond,
		Configuration: webhook.ConfigurationOptions{Name: i.name, Namespace: i.name, URL: door.url, CABundle: ca.Bundle},
	}
	DeferCleanup(func(ctx context.Context) {
		named := metav1.ListOptions{FieldSelector: "metadata.name=" + i.name}
		api := clients.AdmissionregistrationV1()
		Expect(api.MutatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, named)).To(Succeed())
		Expect(api.ValidatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, named)).To(Succeed())
	})
	return i
}

func (i *installation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if mux := i.served.Load(); mux != nil {
		mux.ServeHTTP(w, r)
		return
	}
	http.Error(w, "nothing is served yet", http.StatusServiceUnavailable)
}

// of returns an installer of the hooks, which are not served.
func (i *installation) of(hooks ...*webhook.Hook) *installing.Installer {
	GinkgoHelper()
	installer, err := installing.New(i.o, hooks...)
	Expect(err).NotTo(HaveOccurred())
	return installer
}

// serving serves the hooks and returns an installer for them.
func (i *installation) serving(hooks ...*webhook.Hook) *installing.Installer {
	GinkgoHelper()
	installer := i.of(hooks...)
	i.served.Store(newMux(installer.Hooks()...))
	return installer
}

// denies returns a validating hook that denies every Secret in the target namespace.
func (i *installation) denies(name string) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: name, NamespaceSelector: only(i.target), Rules: webhook.Rules(webhook.OnCreate("", "v1", "secrets")),
	}, func(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error {
		return webhook.Deny(name + " says no")
	})
}

// labels returns a mutating hook that labels every Secret in the target namespace.
func (i *installation) labels(name string) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: name, NamespaceSelector: only(i.target), Rules: webhook.Rules(webhook.OnCreate("", "v1", "secrets")),
	}, func(_ context.Context, req *webhook.Request[corev1.Secret]) error {
		metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "seen-by", name)
		return nil
	})
}

// try creates a Secret in the target namespace as a dry run.
func (i *installation) try(ctx context.Context) (map[string]string, error) {
	secret, err := clients.CoreV1().Secrets(i.target).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	return secret.Labels, nil
}

func (i *installation) validating(ctx context.Context) *admissionregistrationv1.ValidatingWebhookConfiguration {
	GinkgoHelper()
	c, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, i.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// there returns the kinds of the installation's configurations that exist.
func (i *installation) there(ctx context.Context) (kinds []string) {
	GinkgoHelper()
	named := metav1.ListOptions{FieldSelector: "metadata.name=" + i.name}
	mutating, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, named)
	Expect(err).NotTo(HaveOccurred())
	validating, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, named)
	Expect(err).NotTo(HaveOccurred())
	if len(mutating.Items) > 0 {
		kinds = append(kinds, mutatingKind)
	}
	if len(validating.Items) > 0 {
		kinds = append(kinds, validatingKind)
	}
	return kinds
}

// policies returns the failurePolicy of each validating webhook except the marker.
func (i *installation) policies(ctx context.Context) map[string]string {
	GinkgoHelper()
	policies := map[string]string{}
	for _, w := range i.validating(ctx).Webhooks {
		policies[w.Name] = string(*w.FailurePolicy)
	}
	Expect(policies).To(HaveKeyWithValue(i.marker(), "Fail"))
	delete(policies, i.marker())
	return policies
}

func (i *installation) marker() string { return "marker." + i.name + ".admitkit.dev" }

// apply applies fields of a configuration as another field manager.
func (i *installation) apply(ctx context.Context, manager, kind string, fields map[string]any) {
	GinkgoHelper()
	object := map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": i.name}}
	for name, value := range fields {
		object[name] = value
	}
	body, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	o := metav1.PatchOptions{FieldManager: manager, Force: new(true)}
	if kind == "MutatingWebhookConfiguration" {
		_, err = clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, i.name, types.ApplyPatchType, body, o)
	} else {
		_, err = clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, i.name, types.ApplyPatchType, body, o)
	}
	Expect(err).NotTo(HaveOccurred())
}

// inject applies caBundles as the field manager of certs.SelfManaged.
func (i *installation) inject(ctx context.Context, kind string, names ...string) {
	GinkgoHelper()
	var entries []any
	for _, name := range names {
		entries = append(entries, map[string]any{"name": name, "clientConfig": map[string]any{"caBundle": ca.Bundle}})
	}
	i.apply(ctx, "admitkit-certs", kind, map[string]any{"webhooks": entries})
}

// patience is the timeout of a wait that must succeed.
const patience = 20 * time.Second

// within returns a context with a timeout.
func within(ctx context.Context, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(ctx, d)
	DeferCleanup(cancel)
	return ctx
}

const validatingKind, mutatingKind = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"

var _ = Describe("Install", func() {
	var i *installation
	BeforeEach(func(ctx context.Context) { i = newInstallation(ctx) })

	It("applies the configurations and waits until they are enforced", func(ctx context.Context) {
		installer := i.serving(i.labels("labels.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(installer.Wait(within(ctx, patience))).To(Succeed())
		Expect(i.try(ctx)).To(Equal(map[string]string{"seen-by": "labels.example.com"}))
	})

	It("waits until its own version is enforced", func(ctx context.Context) {
		first := i.serving(i.denies("denies.example.com"))
		Expect(first.Apply(ctx)).To(Succeed())
		Expect(first.Wait(within(ctx, patience))).To(Succeed())
		second := i.serving(i.denies("also-denies.example.com"), i.labels("labels.example.com"))
		Expect(second.Wait(within(ctx, 500*time.Millisecond))).To(MatchError(And(
			HavePrefix("waiting until the MutatingWebhookConfiguration is enforced and the ValidatingWebhookConfiguration is enforced: context deadline exceeded; last seen: "),
			ContainSubstring("does not enforce the new version of MutatingWebhookConfiguration "+i.name+" yet"),
			ContainSubstring("does not enforce the new version of ValidatingWebhookConfiguration "+i.name+" yet"),
		)))
		Expect(second.Apply(ctx)).To(Succeed())
		Expect(second.Wait(within(ctx, patience))).To(Succeed())
	})

	It("changes nothing when it is applied again", func(ctx context.Context) {
		Expect(i.serving(i.denies("denies.example.com")).Apply(ctx)).To(Succeed())
		before := i.validating(ctx)
		Expect(i.serving(i.denies("denies.example.com")).Apply(ctx)).To(Succeed())
		Expect(i.validating(ctx).ResourceVersion).To(Equal(before.ResourceVersion))
	})

	It("reports the API server's error for a webhook that it cannot call", func(ctx context.Context) {
		installer := i.of(i.denies("denies.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(installer.Wait(within(ctx, time.Second))).To(MatchError(ContainSubstring(
			`is enforced, but the API server cannot call the webhook: Internal error occurred: failed calling webhook "` + i.marker() + `"`)))
	})

	It("reports that the server does not serve the marker hooks", func(ctx context.Context) {
		hook := i.denies("denies.example.com")
		i.o.Configuration.URL = serve(hook)
		installer := i.of(hook)
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(installer.Wait(within(ctx, time.Second))).To(MatchError(And(
			ContainSubstring("(the server must serve Installer.Hooks)"),
			ContainSubstring("no hook is served at /validate/"+i.marker()),
		)))
	})

	It("stores nothing for a namespace that does not exist", func(ctx context.Context) {
		i.o.Configuration.Namespace = "nowhere"
		installer := i.serving(i.denies("denies.example.com"), i.labels("labels.example.com"))
		const reason = `create namespace nowhere, in which the webhook runs: namespaces "nowhere" not found`
		Expect(installer.Apply(ctx)).To(MatchError("nothing is installed: " + reason))
		Expect(installer.Promote(ctx)).To(MatchError("nothing is installed: " + reason))
		Expect(i.there(ctx)).To(BeEmpty())
		Expect(installer.Wait(ctx)).To(MatchError("cannot check what is enforced: " + reason))
	})

	It("stores nothing for a namespace that is being deleted", func(ctx context.Context) {
		Expect(clients.CoreV1().Namespaces().Delete(ctx, i.name, metav1.DeleteOptions{})).To(Succeed())
		installer := i.serving(i.denies("denies.example.com"))
		Eventually(func() error { return installer.Apply(ctx) }, "10s").WithContext(ctx).Should(MatchError(ContainSubstring("nothing is installed: namespace " + i.name + " is being deleted")))
		Expect(installer.Wait(ctx)).To(MatchError(ContainSubstring("cannot check what is enforced: namespace " + i.name + " is being deleted")))
	})

	It("works if a hook of the installation fails in its own namespace", func(ctx context.Context) {
		everywhere := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name: "everywhere.example.com", NamespaceSelector: only(i.name), Rules: webhook.Rules(webhook.OnCreate("*", "*", "*")),
		}, func(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error {
			return errors.New("does not work")
		})
		installer := i.serving(everywhere)
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(installer.Wait(within(ctx, patience))).To(Succeed())
	})

	It("reports that another webhook denies the marker request", func(ctx context.Context) {
		policy := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name: "policy.example.com", NamespaceSelector: only(i.name), Rules: webhook.Rules(webhook.OnCreate("*", "*", "leases")),
		}, func(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error {
			return webhook.Deny("no leases here")
		})
		installWith(ctx, webhook.ConfigurationOptions{Name: "before-" + i.name, URL: serve(policy)}, policy)
		installer := i.serving(i.denies("denies.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(installer.Wait(within(ctx, 500*time.Millisecond))).To(MatchError(ContainSubstring(
			"ValidatingWebhookConfiguration " + i.name + `: another component refused the check request: admission webhook "policy.example.com" denied the request: no leases here`)))
	})

	It("works if the object of the marker request exists", func(ctx context.Context) {
		_, err := clients.CoordinationV1().Leases(i.name).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "admitkit-marker"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		installer := i.serving(i.denies("denies.example.com"), i.labels("labels.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(installer.Wait(within(ctx, patience))).To(Succeed())
		Expect(installer.Remove(within(ctx, patience))).To(Succeed())
	})

	Describe("Remove", func() {
		It("deletes the configurations and waits until nothing is enforced", func(ctx context.Context) {
			installer := i.serving(i.denies("denies.example.com"), i.labels("labels.example.com"))
			Expect(installer.Apply(ctx)).To(Succeed())
			Expect(installer.Wait(within(ctx, patience))).To(Succeed())
			_, err := i.try(ctx)
			Expect(err).To(MatchError(ContainSubstring("denies.example.com says no")))
			i.served.Store(nil) // Remove must also work when the hooks are no longer served
			Expect(installer.Remove(within(ctx, patience))).To(Succeed())
			Expect(i.try(ctx)).To(BeEmpty())
			_, err = clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, i.name, metav1.GetOptions{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue())
			Expect(installer.Remove(within(ctx, patience))).To(Succeed(), "a second time")
		})

		It("is not undone by a replica that waits to promote", func(ctx context.Context) {
			i.o.FailOpenFirst, i.o.Deployment = true, "hooks"
			d := i.newDeployment(ctx)
			waiting, ran := i.serving(i.denies("denies.example.com")), make(chan error, 1)
			go func() { ran <- waiting.Run(within(ctx, patience)) }()
			Eventually(func() error { return waiting.Wait(within(ctx, 10*time.Second)) }, "60s").WithContext(ctx).Should(Succeed())
			Expect(i.of(i.denies("denies.example.com")).Remove(within(ctx, patience))).To(Succeed())
			i.ready(ctx, d)
			Eventually(ran, "60s").Should(Receive(Succeed()))
			_, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, i.name, metav1.GetOptions{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue())
		})

		It("reports that another webhook removes the label of the marker request", func(ctx context.Context) {
			strips := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
				Name: "strips.example.com", NamespaceSelector: only(i.name), Rules: webhook.Rules(webhook.OnCreate("*", "*", "leases")),
			}, func(_ context.Context, req *webhook.Request[metav1.PartialObjectMetadata]) error {
				req.Object.Labels = nil
				return nil
			})
			installWith(ctx, webhook.ConfigurationOptions{Name: "before-" + i.name, URL: serve(strips)}, strips)
			installer := i.serving(i.denies("denies.example.com"))
			Expect(installer.Apply(ctx)).To(Succeed())
			Expect(installer.Remove(within(ctx, time.Second))).To(MatchError(ContainSubstring(
				"the check request does not reach its webhook: a mutating webhook or policy removes the label install.admitkit.dev/marker from Leases")))
		})

		It("succeeds if nothing was installed", func(ctx context.Context) {
			Expect(i.of(i.denies("denies.example.com")).Remove(ctx)).To(Succeed())
		})

		It("keeps webhooks of other managers, and configurations of other installations", func(ctx context.Context) {
			_, theirs, err := webhook.Configurations(webhook.ConfigurationOptions{Name: i.name, URL: "https://127.0.0.1:1"}, i.denies("theirs.example.com"))
			Expect(err).NotTo(HaveOccurred())
			theirs.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
			i.apply(ctx, "helm", validatingKind, map[string]any{"webhooks": theirs.Webhooks})
			installer := i.serving(i.labels("labels.example.com"))
			Expect(installer.Remove(within(ctx, patience))).To(Succeed())
			Expect(i.validating(ctx).Webhooks).To(HaveLen(1))

			installer = i.serving(i.denies("denies.example.com"))
			Expect(installer.Apply(ctx)).To(Succeed())
			Expect(installer.Wait(within(ctx, patience))).To(Succeed())
			Expect(i.validating(ctx).Webhooks).To(HaveLen(3))
			Expect(installer.Remove(within(ctx, patience))).To(Succeed())
			Expect(i.validating(ctx).Webhooks).To(HaveLen(1))
			Expect(i.validating(ctx).Webhooks[0].Name).To(Equal("theirs.example.com"))
			Expect(installer.Remove(within(ctx, patience))).To(Succeed(), "a second time")
		})
	})
})
