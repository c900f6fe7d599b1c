// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/admitkit/admitkit/pkg/certs"
	installing "github.com/admitkit/admitkit/pkg/install"
)

var _ = Describe("Install with self-managed certificates", func() {
	It("needs no more rights than RBAC gives, and nobody else: no caBundle, no Secret is there before", func(ctx context.Context) {
		i := newInstallation(ctx)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		i.o.Config, i.o.FailOpenFirst = i.account("hooks"), true
		i.o.Configuration.CABundle, i.o.Configuration.URL = nil, "https://"+listener.Addr().String()
		installer := i.of(i.denies("denies.example.com"), i.labels("labels.example.com"))

		o := certs.Options{
			Config: i.o.Config, Namespace: i.name, Secret: "hooks-ca", IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			Targets: installer.Targets(), Settle: -1, Interval: 50 * time.Millisecond, Logger: logr.New(ginkgoSink{}),
		}
		p, err := installing.RBAC(i.o, installing.RBACOptions{ServiceAccount: "hooks", Certs: &o})
		Expect(err).NotTo(HaveOccurred())
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

		By("another version, whose hooks are served meanwhile")
		second := i.of(i.denies("denies.example.com"), i.denies("also.example.com"))
		Expect(second.Apply(ctx)).To(Succeed())
		Expect(second.Wait(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Fail", "also.example.com", "Ignore")))
		Expect(second.Remove(within(ctx, patience))).To(Succeed())
	})
})
