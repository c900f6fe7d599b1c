// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/certs"
	installing "github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

var _ = Describe("Install with self-managed certificates", func() {
	DescribeTable("works with the rights of RBAC alone, and without a caBundle at the start", func(ctx context.Context, secretBefore bool) {
		i := newInstallation(ctx)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		i.o.Config, i.o.FailOpenFirst = i.account("hooks"), true
		i.o.Configuration.CABundle, i.o.Configuration.URL = nil, "https://"+listener.Addr().String()
		hooks := []*webhook.Hook{i.denies("denies.example.com"), i.labels("labels.example.com")}
		installer := i.of(hooks...)

		o := certs.Options{
			Config: i.o.Config, Namespace: i.name, Secret: "hooks-ca", IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			Targets: installer.Targets(), Settle: -1, Interval: 50 * time.Millisecond, Logger: logr.New(ginkgoSink{}),
		}
		p, err := installing.RBAC(i.o, installing.RBACOptions{ServiceAccount: "hooks", Hooks: hooks, Certs: &o})
		Expect(err).NotTo(HaveOccurred())
		if secretBefore {
			before := len(p.Roles[0].Rules)
			p.Roles[0].Rules = without(p.Roles[0].Rules, right{"create", "secrets"})
			Expect(p.Roles[0].Rules).To(HaveLen(before - 1))
			_, err := clients.CoreV1().Secrets(i.name).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: o.Secret}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		grant(ctx, p)
		source, err := certs.NewSelfManaged(o)
		Expect(err).NotTo(HaveOccurred())
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- source.Start(running) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended, "10s").Should(Receive(Succeed()))
		})
		serveOn(listener, certs.TLSConfig(source), installer.Hooks()...)

		Expect(installer.Run(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Fail")))
		_, err = i.try(ctx)
		Expect(err).To(MatchError(ContainSubstring("denies.example.com says no")))

		By("applying another version while the first one is served")
		second := i.of(i.denies("denies.example.com"), i.denies("also.example.com"))
		Expect(second.Apply(ctx)).To(Succeed())
		Expect(second.Wait(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Fail", "also.example.com", "Ignore")))
		Expect(second.Remove(within(ctx, patience))).To(Succeed())
	},
		Entry("and without a Secret", false),
		Entry("with an empty Secret and without the right to create one", true),
	)
})
