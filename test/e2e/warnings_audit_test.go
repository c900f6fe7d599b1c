// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// warningLog collects the warnings that an API client receives.
type warningLog struct {
	mu    sync.Mutex
	texts []string
}

func (w *warningLog) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, fmt.Sprint(code, " ", text))
}

// createWarned creates a ConfigMap and returns the warnings in the response, whether it succeeds or
// fails.
func createWarned(ctx context.Context, object *corev1.ConfigMap) ([]string, error) {
	GinkgoHelper()
	warned := &warningLog{}
	listening := rest.CopyConfig(config)
	listening.WarningHandler = warned
	client, err := kubernetes.NewForConfig(listening)
	Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().ConfigMaps(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
	return warned.texts, err
}

// configMapHandler is the type of a handler for ConfigMaps.
type configMapHandler = func(*webhook.Request[corev1.ConfigMap]) error

// configMapHook returns a hook for the ConfigMaps of a namespace.
func configMapHook(kind, version, namespace, name string, talk configMapHandler) *webhook.Hook {
	return hookOf(kind, admissionregistrationv1.ValidatingWebhook{
		Name:                    name,
		NamespaceSelector:       only(namespace),
		AdmissionReviewVersions: []string{version},
		Rules:                   webhook.Rules(webhook.OnWrite("", "v1", "configmaps")),
	}, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error { return talk(req) })
}

func warning(texts ...string) configMapHandler {
	return func(req *webhook.Request[corev1.ConfigMap]) error {
		for _, text := range texts {
			req.Warn(text)
		}
		return nil
	}
}

var _ = Describe("warnings", func() {
	for _, kind := range hookKinds {
		for _, version := range reviewVersions {
			Context("of a "+kind+" hook called with "+version+" reviews", func() {
				var ns string
				BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

				It("reach the user whose request is admitted", func(ctx context.Context) {
					install(ctx, configMapHook(kind, version, ns, "hook.example.com", warning("replicas: use numbers", "owner: none is set")))
					warnings, err := createWarned(ctx, configMap(ns, "one"))
					Expect(err).NotTo(HaveOccurred())
					Expect(warnings).To(Equal([]string{"299 replicas: use numbers", "299 owner: none is set"}))
				})

				It("reach the user whose request is denied", func(ctx context.Context) {
					install(ctx, configMapHook(kind, version, ns, "hook.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
						req.Warn("ask the red team")
						return webhook.Deny("no")
					}))
					warnings, err := createWarned(ctx, configMap(ns, "one"))
					Expect(err).To(MatchError(`admission webhook "hook.example.com" denied the request: no`))
					Expect(warnings).To(Equal([]string{"299 ask the red team"}))
				})

				It("are lost when the call fails", func(ctx context.Context) {
					install(ctx, configMapHook(kind, version, ns, "hook.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
						req.Warn("ask the red team")
						return errors.New("the registry cannot be reached")
					}))
					warnings, err := createWarned(ctx, configMap(ns, "one"))
					Expect(err).To(HaveOccurred())
					Expect(warnings).To(BeEmpty())
				})

				It("arrive with all their characters", func(ctx context.Context) {
					install(ctx, configMapHook(kind, version, ns, "hook.example.com", warning(
						"first line\r\n\tsecond\x00line\n\n", "not \xff UTF-8", `"quoted" \ and <escaped>, ünïcödé ✓`, " ", strings.Repeat("long ", 30))))
					warnings, err := createWarned(ctx, configMap(ns, "one"))
					Expect(err).NotTo(HaveOccurred())
					Expect(warnings).To(Equal([]string{
						"299 first line", "299 second line", "299 not \uFFFD UTF-8", `299 "quoted" \ and <escaped>, ünïcödé ✓`,
						"299 " + strings.TrimSpace(strings.Repeat("long ", 24)), "299 " + strings.TrimSpace(strings.Repeat("long ", 6)),
					}))
				})

				It("are shortened to the limit of the API server", func(ctx context.Context) {
					install(ctx, configMapHook(kind, version, ns, "hook.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
						for i := range 100 {
							req.Warn(fmt.Sprintf("%03d %s", i, strings.Repeat("x", 96)))
						}
						return nil
					}))
					warnings, err := createWarned(ctx, configMap(ns, "one"))
					Expect(err).NotTo(HaveOccurred())
					Expect(warnings).To(HaveLen(40), "the API server accepts 4096 characters")
					Expect(warnings).To(HaveEach(HaveLen(len("299 ") + 100)))
				})
			})
		}
	}

	It("with equal text reach the user once", func(ctx context.Context) {
		ns := newNamespace(ctx)
		install(ctx,
			configMapHook(mutating, "v1", ns, "one.example.com", warning("old version", "old version")),
			configMapHook(mutating, "v1beta1", ns, "two.example.com", warning("old version", "no owner")),
			configMapHook(validating, "v1", ns, "three.example.com", warning("no owner", "old version")),
		)
		warnings, err := createWarned(ctx, configMap(ns, "one"))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(Equal([]string{"299 old version", "299 no owner"}))
	})

	It("are printed by kubectl", func(ctx context.Context) {
		ns := newNamespace(ctx)
		install(ctx, configMapHook(validating, "v1", ns, "hook.example.com", warning("replicas: use numbers\nowner: none is set")))
		stdout, stderr, err := kubectl(ctx, manifest("v1", "ConfigMap", configMap(ns, "one")), "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		Expect(stdout).To(Equal("configmap/one created\n"))
		Expect(stderr).To(Equal("Warning: replicas: use numbers\nWarning: owner: none is set\n"))
	})
})

func annotating(key, value string, err error) configMapHandler {
	return func(req *webhook.Request[corev1.ConfigMap]) error {
		return errors.Join(req.Audit(key, value), err)
	}
}

var _ = Describe("audit annotations", func() {
	for _, kind := range hookKinds {
		for _, version := range reviewVersions {
			Context("of a "+kind+" hook called with "+version+" reviews", func() {
				var ns string
				BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

				It("are recorded under the name of the webhook when it admits", func(ctx context.Context) {
					install(ctx, configMapHook(kind, version, ns, "hook.example.com", annotating("Policy_v1.2", "numbers\n\"only\" ✓", nil)))
					_, err := createConfigMap(ctx, ns, "one")
					Expect(err).NotTo(HaveOccurred())
					Expect(audited(ctx, "create", ns, "one")).To(HaveKeyWithValue("hook.example.com/Policy_v1.2", "numbers\n\"only\" ✓"))
				})

				It("are recorded under the name of the webhook when it denies", func(ctx context.Context) {
					install(ctx, configMapHook(kind, version, ns, "hook.example.com", annotating("policy", "numbers", webhook.Deny("no"))))
					_, err := createConfigMap(ctx, ns, "one")
					Expect(err).To(MatchError(`admission webhook "hook.example.com" denied the request: no`))
					Expect(audited(ctx, "create", ns, "one")).To(HaveKeyWithValue("hook.example.com/policy", "numbers"))
				})

				It("with a key that the API server would ignore are an error of the handler", func(ctx context.Context) {
					install(ctx, configMapHook(kind, version, ns, "hook.example.com", annotating("example.com/policy", "numbers", nil)))
					_, err := createConfigMap(ctx, ns, "one")
					Expect(err).To(MatchError(ContainSubstring(`audit annotation key "example.com/policy": the API server adds the prefix itself`)))
				})
			})
		}
	}
})

var _ = Describe("the audit log of the API server", func() {
	for _, version := range reviewVersions {
		Context("of calls with "+version+" reviews", func() {
			var ns string
			BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

			It("has each change with the configuration, the webhook and its index", func(ctx context.Context) {
				elsewhere := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
					Name: "elsewhere.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "secrets")), NamespaceSelector: only(ns),
				}, func(context.Context, *webhook.Request[corev1.Secret]) error { return nil })
				hooks := []*webhook.Hook{
					configMapHook(mutating, version, ns, "owner.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
						req.Object.Labels = map[string]string{"example.com/owner": "red"}
						return nil
					}),
					elsewhere,
					configMapHook(mutating, version, ns, "numbers.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
						req.Object.Data["replicas"] = "3"
						delete(req.Object.Data, "absent")
						return nil
					}),
				}
				installWith(ctx, webhook.ConfigurationOptions{Name: "recorded.example.com", URL: serve(hooks...)}, hooks...)
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())

				annotations := audited(ctx, "create", ns, "one")
				Expect(records(annotations, mutationKey)).To(Equal(map[string]auditRecord{
					"round_0_index_0": {Configuration: "recorded.example.com", Webhook: "owner.example.com", Mutated: true},
					"round_0_index_2": {Configuration: "recorded.example.com", Webhook: "numbers.example.com", Mutated: true},
				}))
				Expect(records(annotations, patchKey)).To(Equal(map[string]auditRecord{
					"round_0_index_0": {
						Configuration: "recorded.example.com", Webhook: "owner.example.com", PatchType: "JSONPatch",
						Patch: patch.Patch{{Op: patch.Add, Path: "/metadata/labels", Value: json.RawMessage(`{"example.com/owner":"red"}`)}},
					},
					"round_0_index_2": {
						Configuration: "recorded.example.com", Webhook: "numbers.example.com", PatchType: "JSONPatch",
						Patch: patch.Patch{{Op: patch.Replace, Path: "/data/replicas", Value: json.RawMessage(`"3"`)}},
					},
				}))
			})

			It("has mutated false and no patch if nothing was changed", func(ctx context.Context) {
				install(ctx, configMapHook(mutating, version, ns, "idle.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
					req.Object = req.Object.DeepCopy()
					req.Object.Labels = map[string]string{}
					req.Object.Data["replicas"] += ""
					return nil
				}))
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				annotations := audited(ctx, "create", ns, "one")
				Expect(mutations(annotations)).To(ConsistOf("round_0_index_0 idle.example.com false"))
				Expect(records(annotations, patchKey)).To(BeEmpty())
			})

			It("has mutated false and no patch if a hook changed the object and denied it", func(ctx context.Context) {
				install(ctx, configMapHook(mutating, version, ns, "torn.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
					req.Object.Data["replicas"] = "3"
					return webhook.Deny("no")
				}))
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).To(MatchError(`admission webhook "torn.example.com" denied the request: no`))
				annotations := audited(ctx, "create", ns, "one")
				Expect(mutations(annotations)).To(ConsistOf("round_0_index_0 torn.example.com false"))
				Expect(records(annotations, patchKey)).To(BeEmpty())
			})

			It("has no mutation of a validating hook, even if the handler changed its copy", func(ctx context.Context) {
				install(ctx, configMapHook(validating, version, ns, "sloppy.example.com", func(req *webhook.Request[corev1.ConfigMap]) error {
					req.Object.Data["replicas"] = "3"
					return nil
				}))
				created, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Data).To(HaveKeyWithValue("replicas", "three"))
				annotations := audited(ctx, "create", ns, "one")
				Expect(mutations(annotations)).To(BeEmpty())
				Expect(records(annotations, patchKey)).To(BeEmpty())
			})
		})
	}
})
