// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/genblock"
	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Manifest is a file with a block that the program of the project generates.
type Manifest struct {
	File string
	Args []string // arguments with which the program prints the block
}

// Manifests returns the files that the program generates.
func (p *Project) Manifests() []Manifest {
	rbac := Manifest{"config/rbac.yaml", []string{"--print-rbac"}}
	if p.SelfManaged() {
		rbac.Args = append(rbac.Args, "--self-managed", "--deployment="+p.Name)
		return []Manifest{rbac}
	}
	// cert-manager writes the caBundle.
	return []Manifest{{"config/webhooks/webhooks.yaml", []string{"--print-configuration", "--inject-ca-from=" + p.Name + "/" + p.Name}}, rbac}
}

// addManifests renders the files that the program of a new project would generate, without building the program. A test
// of the generated project compares them with the output of the program.
func (f files) addManifests(ctx context.Context, p *Project) error {
	hooks := slices.Clone(p.Hooks)
	// This is also the order in hooks/hooks.go.
	slices.SortFunc(hooks, func(a, b *Hook) int { return cmp.Compare(a.File(), b.File()) })
	var all []*webhook.Hook
	for _, h := range hooks {
		all = append(all, h.registered())
	}
	same := program.Program{Name: p.Name, Hooks: func(context.Context, *program.Deps) ([]*webhook.Hook, error) { return all, nil }}
	for _, m := range p.Manifests() {
		var text bytes.Buffer
		if err := same.Run(ctx, m.Args, &text, io.Discard); err != nil {
			return err
		}
		f[m.File] = genblock.New(text.Bytes())
	}
	return nil
}

// registered returns a hook with the registration that the template of h generates.
func (h *Hook) registered() *webhook.Hook {
	if h.Mutates {
		return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:               h.WebhookName(),
			Rules:              webhook.Rules(webhook.OnCreate(h.Kind.Group, h.Kind.Version, h.Kind.Resource)),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, func(context.Context, *webhook.Request[unstructured.Unstructured]) error { return nil })
	}
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  h.WebhookName(),
		Rules: webhook.Rules(webhook.OnWrite(h.Kind.Group, h.Kind.Version, h.Kind.Resource)),
	}, func(context.Context, *webhook.Request[unstructured.Unstructured]) error { return nil })
}
