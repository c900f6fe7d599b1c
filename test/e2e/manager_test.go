// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A host is a server that serves hooks until its context ends.
type host struct {
	name  string // part of the spec's text
	serve func(ctx context.Context, hooks ...*webhook.Hook) (addr string, stopped <-chan error)
}

var hosts = []host{
	{"a webhook.Server", func(ctx context.Context, hooks ...*webhook.Hook) (string, <-chan error) {
		server, addr := newServer(hooks...)
		return addr, start(ctx, server.Start)
	}},
	{"a webhook.Server that a manager runs", func(ctx context.Context, hooks ...*webhook.Hook) (string, <-chan error) {
		server, addr := newServer(hooks...)
		mgr := newManager(ctrl.Options{})
		Expect(mgr.Add(server)).To(Succeed())
		return addr, start(ctx, mgr.Start)
	}},
	{"the webhook server of a manager", func(ctx context.Context, hooks ...*webhook.Hook) (string, <-chan error) {
		own, addr := newManagersServer()
		mgr := newManager(ctrl.Options{WebhookServer: own})
		Expect(webhook.Register(mgr.GetWebhookServer(), hooks...)).To(Succeed())
		stopped := start(ctx, mgr.Start)
		Eventually(func() error { return own.StartedChecker()(nil) }, "20s", "20ms").WithContext(ctx).Should(Succeed())
		return addr, stopped
	}},
}

func newServer(hooks ...*webhook.Hook) (*webhook.Server, string) {
	GinkgoHelper()
	tlsConfig, err := ca.Serving("127.0.0.1")
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	return webhook.NewServer(webhook.Options{Listener: listener, TLSConfig: tlsConfig, ShutdownDelay: -1}, hooks...), listener.Addr().String()
}

// newManagersServer returns the webhook server of controller-runtime.
func newManagersServer() (ctrlwebhook.Server, string) {
	GinkgoHelper()
	tlsConfig, err := ca.Serving("127.0.0.1")
	Expect(err).NotTo(HaveOccurred())
	free, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	port := free.Addr().(*net.TCPAddr).Port
	Expect(free.Close()).To(Succeed())
	return ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: "127.0.0.1", Port: port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &tlsConfig.Certificates[0], nil }
		}},
	}), net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

func newManager(o ctrl.Options) ctrl.Manager {
	GinkgoHelper()
	o.Metrics = metricsserver.Options{BindAddress: "0"}
	o.Logger = logr.New(ginkgoSink{})
	mgr, err := ctrl.NewManager(config, o)
	Expect(err).NotTo(HaveOccurred())
	return mgr
}

func start(ctx context.Context, run func(context.Context) error) <-chan error {
	stopped := make(chan error, 1)
	go func() { stopped <- run(ctx) }()
	return stopped
}

// hosting runs a host until the spec ends or stop is called.
func hosting(h host, hooks ...*webhook.Hook) (addr string, stop func(), stopped <-chan error) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	addr, stopped = h.serve(ctx, hooks...)
	return addr, stop, stopped
}

var _ = Describe("hooks on a server", func() {
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	for _, h := range hosts {
		Context("that is "+h.name, func() {
			for _, version := range reviewVersions {
				It("are called with "+version+" reviews", func(ctx context.Context) {
					hooks := []*webhook.Hook{
						configMapHook(mutating, version, ns, "mutator.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
							req.Object.Data["replicas"] = "3"
							return nil
						}),
						configMapHook(validating, version, ns, "validator.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
							if req.Object.Data["replicas"] == "3" && req.Name == "bad" {
								return webhook.Deny("seen and refused")
							}
							return nil
						}),
					}
					addr, _, _ := hosting(h, hooks...)
					installWith(ctx, webhook.ConfigurationOptions{URL: "https://" + addr}, hooks...)
					created, err := createConfigMap(ctx, ns, "good")
					Expect(err).NotTo(HaveOccurred())
					Expect(created.Data).To(HaveKeyWithValue("replicas", "3"))
					_, err = createConfigMap(ctx, ns, "bad")
					Expect(err).To(MatchError(`admission webhook "validator.example.com" denied the request: seen and refused`))
				})
			}

			It("finish the call in flight when it stops, without a cancelled context", func(ctx context.Context) {
				entered, release := make(chan struct{}), make(chan struct{})
				hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
					Name: "slow.example.com", NamespaceSelector: only(ns), Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
					TimeoutSeconds: new(int32(30)),
				}, func(ctx context.Context, req *webhook.Request[corev1.ConfigMap]) error {
					close(entered)
					<-release
					req.Object.Data["replicas"] = "3"
					return ctx.Err()
				})
				addr, stop, stopped := hosting(h, hook)
				installWith(ctx, webhook.ConfigurationOptions{URL: "https://" + addr}, hook)

				answered := make(chan error, 1)
				var created *corev1.ConfigMap
				go func() {
					var err error
					created, err = createConfigMap(ctx, ns, "one")
					answered <- err
				}()
				Eventually(entered, "20s").Should(BeClosed())
				stop()
				Eventually(func() bool { return refusesCalls(ctx, addr) }, "20s", "20ms").WithContext(ctx).Should(BeTrue())
				Expect(answered).NotTo(Receive())
				Expect(stopped).NotTo(Receive())
				close(release)
				Eventually(answered, "20s").Should(Receive(Succeed()))
				Expect(created.Data).To(HaveKeyWithValue("replicas", "3"))
				Eventually(stopped, "20s").Should(Receive(Succeed()))

				_, err := createConfigMap(ctx, ns, "two")
				Expect(err).To(MatchError(ContainSubstring("connect: connection refused")))
			})
		})
	}

	It("that a manager runs are served by every replica, leader or not", func(ctx context.Context) {
		election := ctrl.Options{
			LeaderElection: true, LeaderElectionID: "replicas.example.com", LeaderElectionNamespace: ns, LeaderElectionReleaseOnCancel: true,
		}
		seen := &calls{}
		first, firstAddr := newServer(recordingHook(seen, validating, ns, "visited.example.com", admissionregistrationv1.WebhookClientConfig{}))
		leader := newManager(election)
		Expect(leader.Add(first)).To(Succeed())
		hook := recordingHook(seen, validating, ns, "visited.example.com", admissionregistrationv1.WebhookClientConfig{})
		second, secondAddr := newServer(hook)
		follower := newManager(election)
		Expect(follower.Add(second)).To(Succeed())

		running, stop := context.WithCancel(context.Background())
		DeferCleanup(stop)
		stopping = append(stopping, start(running, leader.Start))
		Eventually(leader.Elected(), "20s").Should(BeClosed())
		stopping = append(stopping, start(running, follower.Start))

		installWith(ctx, webhook.ConfigurationOptions{URL: "https://" + firstAddr}, hook)
		installWith(ctx, webhook.ConfigurationOptions{URL: "https://" + secondAddr}, hook)
		_, err := createConfigMap(ctx, ns, "one")
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.all()).To(HaveLen(2))
		Expect(follower.Elected()).NotTo(BeClosed())
	})

	bad := func() []*webhook.Hook {
		return []*webhook.Hook{
			configMapHook(validating, "v2", ns, "one.example.com", nil),
			configMapHook(mutating, "v1", ns, "two", nil),
			configMapHook(validating, "v1", ns, "one.example.com", nil),
		}
	}
	everyError := And(
		MatchError(ContainSubstring(`validating[one.example.com].admissionReviewVersions`)),
		MatchError(ContainSubstring(`mutating[two].name`)),
		MatchError(ContainSubstring(`webhooks one.example.com and one.example.com share the path /validate/one.example.com`)),
	)

	It("that a manager runs prevent its start if they are invalid, and it reports every error", func(ctx context.Context) {
		server, _ := newServer(bad()...)
		mgr := newManager(ctrl.Options{})
		Expect(mgr.Add(server)).To(Succeed())
		Expect(mgr.Start(ctx)).To(everyError)
	})

	It("that is the webhook server of a manager are not registered if one is invalid, and it reports every error", func() {
		own, _ := newManagersServer()
		mgr := newManager(ctrl.Options{WebhookServer: own})
		good := configMapHook(validating, "v1", ns, "good.example.com", nil)
		Expect(webhook.Register(mgr.GetWebhookServer(), append(bad(), good)...)).To(everyError)
		Expect(own.WebhookMux()).To(BeNil(), "the mux is created with the first hook")
	})
})

// refusesCalls reports whether a server refuses new calls: its /readyz returns 503, or it does not respond.
func refusesCalls(ctx context.Context, addr string) bool {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the response is not trusted
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+addr+"/readyz", nil)
	Expect(err).NotTo(HaveOccurred())
	resp, err := client.Do(req)
	if err != nil {
		return true
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusServiceUnavailable
}
