// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/admitkit/admitkit/pkg/rollout"
	"github.com/admitkit/admitkit/pkg/webhook"
)

var _ = Describe("modes of enforcement", func() {
	for _, kind := range hookKinds {
		It("lead a "+kind+" hook from Shadow over Warn to Enforce without a restart", func(ctx context.Context) {
			ns := newNamespace(ctx)
			const name = "modes.example.com"
			hook := configMapHook(kind, "v1", ns, name, func(req *webhook.Request[corev1.ConfigMap]) error {
				if strings.HasPrefix(req.Object.Name, "fails") {
					return errors.New("the registry cannot be reached")
				}
				return webhook.Deny("no owner")
			})
			file := filepath.Join(GinkgoT().TempDir(), "modes.yaml")
			use := func(mode webhook.Mode) {
				Expect(os.WriteFile(file, []byte("hooks: [{webhook: "+name+", mode: "+string(mode)+"}]"), 0o600)).To(Succeed())
			}
			use(webhook.Shadow)
			modes, err := rollout.New(file, rollout.Options{Interval: 20 * time.Millisecond}, hook)
			Expect(err).NotTo(HaveOccurred())
			running, stop := context.WithCancel(context.Background())
			DeferCleanup(stop)
			go func() { _ = modes.Start(running) }()
			install(ctx, modes.Hooks()...)

			for _, object := range []string{"denied", "fails"} {
				warnings, err := createWarned(ctx, configMap(ns, object+"-in-shadow"))
				Expect(err).NotTo(HaveOccurred())
				Expect(warnings).To(BeEmpty())
			}
			use(webhook.Warn)
			Eventually(func(g Gomega) {
				warnings, err := createWarned(ctx, configMap(ns, "denied-"+string(uuid.NewUUID())))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(warnings).To(Equal([]string{"299 " + name + " will deny this request once it is enforced: no owner"}))
			}).Should(Succeed())
			warnings, err := createWarned(ctx, configMap(ns, "fails-with-a-warning"))
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Join(warnings, " ")).To(ContainSubstring("the registry cannot be reached"))
			use(webhook.Enforce)
			Eventually(func(g Gomega) {
				_, err := createWarned(ctx, configMap(ns, "denied-"+string(uuid.NewUUID())))
				g.Expect(err).To(MatchError(`admission webhook "` + name + `" denied the request: no owner`))
			}).Should(Succeed())
		})
	}
})
