// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func TestNewReportsEveryError(t *testing.T) {
	good := func() Options {
		o := options()
		o.Config = &rest.Config{Host: "https://127.0.0.1:1"}
		return o
	}
	rows := []struct {
		why    string
		change func(*Options)
		hooks  []*webhook.Hook
		want   []string
	}{
		{"valid options", func(*Options) {}, []*webhook.Hook{denying("one.example.com")}, nil},
		{"no config", func(o *Options) { o.Config = nil }, nil, []string{"Config is nil"}},
		{"no name", func(o *Options) { o.Configuration.Name = "" }, nil, []string{`ConfigurationOptions.Name: Invalid value: ""`}},
		{"an address only for one hook", func(o *Options) { o.Configuration.Service = nil }, nil, []string{"Configuration.Namespace is empty", "neither Service nor URL"}},
		{"a URL without a namespace", func(o *Options) { o.Configuration = webhook.ConfigurationOptions{Name: "hooks", URL: "https://x"} }, nil, []string{"Configuration.Namespace is empty"}},
		{"an invalid Deployment name", func(o *Options) { o.Deployment = "Hooks/1" }, nil, []string{`Deployment "Hooks/1" is not a valid name: a lowercase RFC 1123 subdomain`}},
		{"numbers", func(o *Options) { o.Confirmations = -1 }, nil, []string{"must not be negative"}},
		{"hooks", func(*Options) {}, []*webhook.Hook{denying("one"), nil}, []string{"one", "hook 1 is nil"}},
		{"a hook with the name of the marker", func(*Options) {}, []*webhook.Hook{denying(markerName("hooks"))}, []string{"share the path"}},
		{"no API server to talk to", func(o *Options) { o.Config = &rest.Config{Host: ":::"} }, nil, []string{"cannot create a client from Options.Config"}},
	}
	for _, row := range rows {
		o := good()
		row.change(&o)
		i, err := New(o, row.hooks...)
		if (err == nil) != (len(row.want) == 0) {
			t.Errorf("%s: %v", row.why, err)
			continue
		}
		if (i == nil) != (err != nil) {
			t.Errorf("%s: installer %v with error %v", row.why, i, err)
		}
		for _, want := range row.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %v", row.why, want, err)
			}
		}
	}
}

func TestHooksAndTargets(t *testing.T) {
	i, _ := newFake(t, options(), denying("one.example.com"), denying("two.example.com"))
	var paths []string
	for _, h := range i.Hooks() {
		paths = append(paths, h.Path())
	}
	if want := []string{"/validate/marker.hooks.admitkit.dev", "/validate/one.example.com", "/validate/two.example.com"}; !reflect.DeepEqual(paths, want) {
		t.Errorf("paths %v", paths)
	}
	both := []string{"marker.hooks.admitkit.dev", "one.example.com", "two.example.com"}
	if want := []certs.Target{{Kind: certs.ValidatingWebhookConfiguration, Name: "hooks", Webhooks: both, OwnerAnnotation: ownerAnnotation, Owner: "ns/hooks"}}; !reflect.DeepEqual(i.Targets(), want) {
		t.Errorf("targets %v", i.Targets())
	}
	i, _ = newFake(t, options(), denying("one.example.com"), labelling("one.example.com"))
	if len(i.Hooks()) != 4 || len(i.Targets()) != 2 {
		t.Errorf("%d hooks, %d targets", len(i.Hooks()), len(i.Targets()))
	}
}

// Targets must return only the webhooks that this server serves with the certificate of its source.
func TestTargetsOmitWebhooksServedElsewhere(t *testing.T) {
	at := func(name string, c admissionregistrationv1.WebhookClientConfig) *webhook.Hook {
		return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: name, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")), ClientConfig: c,
		}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
	}
	here := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: new("/here")}}
	hooks := []*webhook.Hook{
		denying("plain.example.com"),
		at("path.example.com", here),
		at("service.example.com", admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "other"}}),
		at("port.example.com", admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Port: new(int32(9443))}}),
		at("url.example.com", admissionregistrationv1.WebhookClientConfig{URL: new("https://example.com/x")}),
		at("bundle.example.com", admissionregistrationv1.WebhookClientConfig{CABundle: authority(t)}),
	}
	i, _ := newFake(t, options(), hooks...)
	if got, want := i.Targets()[0].Webhooks, []string{"marker.hooks.admitkit.dev", "plain.example.com", "path.example.com"}; !reflect.DeepEqual(got, want) {
		t.Errorf("targets %v", got)
	}
}

// The marker webhook must match only marker requests in the webhook's namespace. The webhooks of the program's own
// hooks exclude that namespace.
func TestMarkerIsScoped(t *testing.T) {
	i, _ := newFake(t, options(), denying("one.example.com"))
	_, c, err := webhook.Configurations(i.o.Configuration, i.Hooks()...)
	if err != nil {
		t.Fatal(err)
	}
	m := c.Webhooks[0]
	if m.Name != "marker.hooks.admitkit.dev" || m.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "ns" ||
		len(m.ObjectSelector.MatchLabels) != 1 || *m.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("got %+v", m)
	}
	if got := c.Webhooks[1].NamespaceSelector.MatchExpressions[0].Values; !reflect.DeepEqual(got, []string{"kube-system", "ns"}) {
		t.Errorf("the hook leaves out %v", got)
	}
}
