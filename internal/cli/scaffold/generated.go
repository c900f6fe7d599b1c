// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// printed is the file of config that the program prints, and the flag with which it does.
func (p *Project) printed() (name, flag string) {
	if p.SelfManaged() {
		return "config/rbac.yaml", "-print-rbac"
	}
	return "config/webhooks/webhooks.yaml", "-print-configuration"
}

// print makes what the program of a new project would print, without building it. A test of the project compares.
func (p *Project) print() ([]byte, error) {
	var all []*webhook.Hook
	for _, h := range p.Hooks {
		all = append(all, h.registered())
	}
	if p.SelfManaged() {
		return p.rights(all)
	}
	return p.configurations(all)
}

// registered is a hook with the registration of the template.
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

func (p *Project) service() webhook.ConfigurationOptions {
	return webhook.ConfigurationOptions{
		Name: p.Name, Namespace: p.Name,
		Service: &admissionregistrationv1.ServiceReference{Namespace: p.Name, Name: p.Name},
	}
}

func (p *Project) rights(all []*webhook.Hook) ([]byte, error) {
	options := install.Options{Config: &rest.Config{}, Configuration: p.service(), FailOpenFirst: true, Deployment: p.Name}
	installer, err := install.New(options, all...)
	if err != nil {
		return nil, err
	}
	rights, err := install.RBAC(options, install.RBACOptions{ServiceAccount: p.Name, Hooks: all, Certs: &certs.Options{
		Config: options.Config, Namespace: p.Name, Secret: p.Name + "-ca",
		DNSNames: certs.ServiceNames(p.Name, p.Name), Targets: installer.Targets(),
	}})
	if err != nil {
		return nil, err
	}
	for _, role := range rights.Roles {
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Equal(rule.Resources, []string{"secrets"}) && slices.Equal(rule.Verbs, []string{"create"})
		})
	}
	text, err := rights.YAML()
	return append([]byte("# Written by make manifests: the rights that the hooks need. A test compares.\n"), text...), err
}

func (p *Project) configurations(all []*webhook.Hook) ([]byte, error) {
	options := p.service()
	options.Annotations = map[string]string{"cert-manager.io/inject-ca-from": p.Name + "/" + p.Name}
	// The order in which the list has them.
	slices.SortFunc(all, func(a, b *webhook.Hook) int { return bytes.Compare([]byte(p.fileOf(a)), []byte(p.fileOf(b))) })
	mutating, validating, err := webhook.Configurations(options, all...)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("# Written by make manifests: what the hooks are called for. A test compares.\n")
	var documents []any
	if mutating != nil {
		documents = append(documents, mutating)
	}
	if validating != nil {
		documents = append(documents, validating)
	}
	for _, d := range documents {
		text, err := yaml.Marshal(d)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes(), nil
}

func (p *Project) fileOf(hook *webhook.Hook) string {
	for _, h := range p.Hooks {
		if h.WebhookName() == hook.Name() {
			return h.File()
		}
	}
	return ""
}
