// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/certs"
	installing "github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

var _ = Describe("Install of a validating hook that checks the work of a mutating hook", func() {
	var i *installation
	BeforeEach(func(ctx context.Context) { i = newInstallation(ctx) })

	// verifies returns a hook that denies every Secret without the label that the hook of i.labels adds.
	verifies := func() *webhook.Hook {
		return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: "verifies.example.com", NamespaceSelector: only(i.target), Rules: webhook.Rules(webhook.OnCreate("", "v1", "secrets")),
		}, func(_ context.Context, req *webhook.Request[metav1.PartialObjectMetadata]) error {
			if req.Object.Labels["seen-by"] == "" {
				return webhook.Deny("the label seen-by is missing")
			}
			return nil
		})
	}

	// creates sends dry-run creates until stop is called. stop returns how many it sent, and the errors.
	creates := func(ctx context.Context) (stop func() (asked int64, refused []string)) {
		ctx, cancel := context.WithCancel(ctx)
		var asked atomic.Int64
		refused, ended := []string{}, make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				if _, err := i.try(ctx); err != nil && ctx.Err() == nil {
					refused = append(refused, err.Error())
				}
				asked.Add(1)
			}
		}()
		return func() (int64, []string) {
			cancel()
			<-ended
			return asked.Load(), refused
		}
	}

	// runs starts a program with self-managed certificates. It returns the installer once the hooks are installed.
	runs := func(ctx context.Context) *installing.Installer {
		GinkgoHelper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		i.o.FailOpenFirst, i.o.Configuration.CABundle, i.o.Configuration.URL = true, nil, "https://"+listener.Addr().String()
		installer := i.of(verifies(), i.labels("labels.example.com"))
		source, err := certs.NewSelfManaged(certs.Options{
			Config: config, Namespace: i.name, Secret: "hooks-ca", IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			Targets: installer.Targets(), Settle: -1, Interval: 20 * time.Millisecond, Logger: logr.New(ginkgoSink{}),
		})
		Expect(err).NotTo(HaveOccurred())
		running, end := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- source.Start(running) }()
		DeferCleanup(func() {
			end()
			Eventually(ended, "10s").Should(Receive(Succeed()))
		})
		serveOn(listener, certs.TLSConfig(source), installer.Hooks()...)
		Expect(installer.Run(within(ctx, patience))).To(Succeed())
		return installer
	}

	It("never validates an object that was not mutated, from the first caBundle to the last call", func(ctx context.Context) {
		stop := creates(ctx)
		installer := runs(ctx)
		Expect(installer.Status().Phase).To(Equal(installing.Installed))
		Expect(i.there(ctx)).To(Equal([]string{mutatingKind, validatingKind}))
		Expect(i.try(ctx)).To(Equal(map[string]string{"seen-by": "labels.example.com"}))
		Expect(installer.Remove(within(ctx, patience))).To(Succeed())
		asked, refused := stop()
		Expect(refused).To(BeEmpty())
		Expect(asked).To(BeNumerically(">", 20))
		Expect(i.there(ctx)).To(BeEmpty())
	})
})
