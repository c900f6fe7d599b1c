// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/chain"
)

// refused returns an error for a configuration that an API server would reject. The webhooks of such a configuration
// are never called.
func (r *runner) refused(g *given) error {
	for _, c := range g.registrations.Mutating {
		alone := chain.Webhooks{
			Mutating: []*admissionregistrationv1.MutatingWebhookConfiguration{r.withoutAddresses(c)},
			Handlers: map[string]http.Handler{},
		}
		for _, w := range c.Value.Webhooks { // a handler makes chain ignore the caBundle, which is often a placeholder
			alone.Handlers[w.Name] = http.NotFoundHandler()
		}
		engine, err := chain.New(alone, chain.Options{})
		if err != nil {
			return problem.New("%s: an API server would reject this configuration: %w", c.Where(), err).Hint("admitkit lint %s", textutil.ShellQuote(c.File))
		}
		_ = engine.Close() // engine has no connections to close
	}
	return nil
}

// withoutAddresses returns a copy of a configuration for the checks. With --url, the copy has no addresses. In the copy
// of a v1beta1 configuration, None replaces the sideEffects that only v1beta1 allows.
func (r *runner) withoutAddresses(c objects.Decoded[admissionregistrationv1.MutatingWebhookConfiguration]) *admissionregistrationv1.MutatingWebhookConfiguration {
	counting := c.Value.DeepCopy()
	for i := range counting.Webhooks {
		w := &counting.Webhooks[i]
		if len(r.URLs) > 0 {
			w.ClientConfig = admissionregistrationv1.WebhookClientConfig{}
		}
		known := ptr.Deref(w.SideEffects, "")
		if c.GVK.Version == "v1beta1" && (known == admissionregistrationv1.SideEffectClassUnknown || known == admissionregistrationv1.SideEffectClassSome) {
			w.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNone)
		}
	}
	return counting
}
