// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const lockMessage = "the hook was called"

// lockID returns the id of the hook for a caller and a failure policy. The name and the path of the hook
// contain the id. The hook selects objects by a label with the id.
func lockID(caller string, policy admissionregistrationv1.FailurePolicyType) string {
	if policy == admissionregistrationv1.Ignore {
		return caller + "-ignore"
	}
	return caller + "-fail"
}

// hook returns a hook that denies the ConfigMaps that have the id of the hook as a label. The API server calls the hook
// with the credentials of the caller.
func (l *lock) hook(namespace, caller string, policy admissionregistrationv1.FailurePolicyType) *webhook.Hook {
	id := lockID(caller, policy)
	client := *l.callers[caller].client.DeepCopy()
	if client.Service != nil {
		client.Service.Path = new("/" + id)
	} else {
		client.URL = new(*client.URL + "/" + id)
	}
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: id + ".lock.example.com", ClientConfig: client, FailurePolicy: &policy, NamespaceSelector: only(namespace),
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"lock": id}},
		Rules:          webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
	}, func(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error {
		return webhook.Deny(lockMessage)
	})
}

// serve serves and registers the hooks of all callers.
func (l *lock) serve(ctx context.Context, namespace string) {
	GinkgoHelper()
	services := "lock-" + l.kind
	_, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: services}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	hosts := []string{"127.0.0.1"}
	var hooks []*webhook.Hook
	for name := range l.callers {
		hosts = append(hosts, name+"."+services+".svc")
		_, err := clients.CoreV1().Services(services).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		hooks = append(hooks, l.hook(namespace, name, admissionregistrationv1.Fail), l.hook(namespace, name, admissionregistrationv1.Ignore))
	}
	tlsConfig, err := ca.Serving(hosts...)
	Expect(err).NotTo(HaveOccurred())
	l.auth.ReloadInterval = 20 * time.Millisecond
	server := webhook.NewServer(webhook.Options{
		Listener: l.listener, TLSConfig: tlsConfig, ClientAuth: &l.auth, Logger: logr.New(ginkgoSink{}), ShutdownDelay: -1,
	}, hooks...)
	serving, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Start(serving) }()
	DeferCleanup(stop)
	stopping = append(stopping, stopped)
	installWith(ctx, webhook.ConfigurationOptions{}, hooks...)
	for name := range l.callers { // wait until the API server has the Service in its cache
		Eventually(callHook).WithArguments(namespace, name, admissionregistrationv1.Fail).WithContext(ctx).
			WithTimeout(20 * time.Second).WithPolling(20 * time.Millisecond).ShouldNot(MatchError(ContainSubstring("not found")))
	}
}

// callHook creates an object for which the API server calls the hook of a caller and a policy.
func callHook(ctx context.Context, namespace, caller string, policy admissionregistrationv1.FailurePolicyType) error {
	object := configMap(namespace, "")
	object.GenerateName, object.Labels = "lock-", map[string]string{"lock": lockID(caller, policy)}
	_, err := clients.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// acceptedCredentials matches the error of callHook if the server accepts the credentials. The hook then
// denies the object.
func acceptedCredentials() OmegaMatcher {
	return MatchError(HaveSuffix("denied the request: " + lockMessage))
}

// refusedCredentials matches the error of callHook if the failurePolicy is Fail and the server refuses the credentials.
func refusedCredentials(caller, text string) OmegaMatcher {
	return MatchError(HavePrefix(`Internal error occurred: failed calling webhook "` + lockID(caller, admissionregistrationv1.Fail) +
		`.lock.example.com": failed to call webhook: ` + text))
}

var _ = Describe("client authentication", func() {
	for _, kind := range []string{"certificate", "token", "password"} {
		Context("by "+kind, Ordered, func() {
			var ns string
			l := locks[kind]
			BeforeAll(func(ctx context.Context) {
				ns = newNamespace(ctx)
				l.serve(ctx, ns)
			})

			It("admits a caller with the right credentials, by Service and by URL", func(ctx context.Context) {
				for _, caller := range []string{"right", "by-url"} {
					Expect(callHook(ctx, ns, caller, admissionregistrationv1.Fail)).To(acceptedCredentials(), caller)
					Expect(callHook(ctx, ns, caller, admissionregistrationv1.Ignore)).To(acceptedCredentials(), caller)
				}
			})

			It("refuses other callers: under Fail the user reads why, under Ignore the object is admitted", func(ctx context.Context) {
				for name, c := range l.callers {
					if c.refusal != "" {
						Expect(callHook(ctx, ns, name, admissionregistrationv1.Fail)).To(refusedCredentials(name, c.refusal), name)
						Expect(callHook(ctx, ns, name, admissionregistrationv1.Ignore)).To(Succeed(), name)
					}
				}
			})

			It("uses the new content of a file on open connections", func(ctx context.Context) {
				eventually := func(caller string) AsyncAssertion {
					return Eventually(callHook).WithArguments(ns, caller, admissionregistrationv1.Fail).WithContext(ctx).
						WithTimeout(20 * time.Second).WithPolling(5 * time.Millisecond)
				}
				replace(l.file, l.content["both"])
				eventually("next").Should(acceptedCredentials())
				Expect(callHook(ctx, ns, "right", admissionregistrationv1.Fail)).To(acceptedCredentials())

				connections := l.listener.accepted.Load()
				replace(l.file, "# nothing\n")
				Consistently(callHook).WithArguments(ns, "right", admissionregistrationv1.Fail).WithContext(ctx).
					WithTimeout(100 * time.Millisecond).WithPolling(5 * time.Millisecond).Should(acceptedCredentials())
				replace(l.file, l.content["next"])
				eventually("right").Should(refusedCredentials("right", ""))
				Expect(callHook(ctx, ns, "right", admissionregistrationv1.Ignore)).To(Succeed())
				Expect(callHook(ctx, ns, "next", admissionregistrationv1.Fail)).To(acceptedCredentials())
				Expect(l.listener.accepted.Load()).To(Equal(connections))
			})
		})
	}
})
