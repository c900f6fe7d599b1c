// SPDX-License-Identifier: Apache-2.0

package matchers_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/idempotence/matchers"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// labels returns a webhook that sets a label to a value that it computes from the old one.
func labels(value func(old string) string) idempotence.Subject {
	registration := admissionregistrationv1.MutatingWebhook{Name: "labels.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps"))}
	return idempotence.Handler(registration, func() http.Handler {
		return webhook.Mutating(registration, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
			if next := value(req.Object.Labels["tier"]); next != req.Object.Labels["tier"] {
				if req.Object.Labels == nil {
					req.Object.Labels = map[string]string{}
				}
				req.Object.Labels["tier"] = next
			}
			return nil
		})
	})
}

func fixed(string) string { return "web" }

func grows(old string) string { return old + "x" }

func TestBeIdempotent(t *testing.T) {
	g := NewWithT(t)
	g.Expect(labels(fixed)).To(matchers.BeIdempotent(idempotence.Options{Objects: 5}))
	g.Expect(labels(grows)).NotTo(matchers.BeIdempotent(idempotence.Options{Objects: 5}))
	g.Expect(labels(fixed)).To(matchers.BeIdempotentWithContext(t.Context(), idempotence.Options{Objects: 5}))
}

func TestFailureMessages(t *testing.T) {
	var said string
	g := NewGomega(func(message string, _ ...int) { said = message })
	for name, c := range map[string]struct {
		expect func()
		want   []string
	}{
		"broken": {func() {
			g.Expect(labels(grows)).To(matchers.BeIdempotent(idempotence.Options{Objects: 5, Store: t.TempDir()}))
		},
			[]string{"Expected labels.example.com to be idempotent", "FAILS  second call (L1)", "metadata.labels.tier", "Again:  idempotence.Options{Replay: ", filepath.Join("labels.example.com", "L1-")}},
		"correct": {func() { g.Expect(labels(fixed)).NotTo(matchers.BeIdempotent(idempotence.Options{Objects: 5})) },
			[]string{"Expected labels.example.com not to be idempotent", "passes"}},
		"changes nothing": {func() {
			g.Expect(labels(func(old string) string { return old })).To(matchers.BeIdempotent(idempotence.Options{Objects: 5}))
		},
			[]string{"cannot tell whether labels.example.com is idempotent", "changed none"}},
		"changes nothing, negated": {func() {
			g.Expect(labels(func(old string) string { return old })).NotTo(matchers.BeIdempotent(idempotence.Options{Objects: 5}))
		},
			[]string{"cannot tell"}},
		"no subject": {func() { g.Expect(http.NotFoundHandler()).To(matchers.BeIdempotent(idempotence.Options{})) }, []string{"expects an idempotence.Subject", "http.HandlerFunc"}},
		"no webhook": {func() { g.Expect(idempotence.Subject{}).To(matchers.BeIdempotent(idempotence.Options{})) }, []string{"no webhook to test"}},
	} {
		t.Run(name, func(t *testing.T) {
			said = ""
			c.expect()
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("no %q in\n%s", want, said)
				}
			}
		})
	}
}
