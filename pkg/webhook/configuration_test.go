// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	_ "embed"
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/webhook"
)

//go:embed testdata/ca.crt
var exampleCA []byte

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file in testdata. With -update, it writes the file first.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs; if that is right, run go test -update\n got %s\nwant %s", file, got, want)
	}
}

func podRules() []admissionregistrationv1.RuleWithOperations {
	return webhook.Rules(webhook.OnCreate("", "v1", "pods"))
}

func TestDefaultsOfConfigurations(t *testing.T) {
	mutating, validating, err := webhook.Configurations(webhook.ConfigurationOptions{
		Name:        "policies.example.com",
		Service:     &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hooks"},
		CABundle:    exampleCA,
		Labels:      map[string]string{"app": "hooks"},
		Annotations: map[string]string{"cert-manager.io/inject-ca-from": "shop/hooks"},
	},
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "a.example.com", Rules: podRules()}, label),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "b.example.com", Rules: podRules()}, admit),
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "c.example.com", Rules: webhook.Rules(webhook.OnWrite("apps", "v1", "deployments"), webhook.OnDelete("", "*", "*")),
			ClientConfig:  service("", "", "/own/path/", 8443),
			FailurePolicy: new(admissionregistrationv1.Ignore), MatchPolicy: new(admissionregistrationv1.Exact), NamespaceSelector: &metav1.LabelSelector{},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}, SideEffects: new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			TimeoutSeconds: new(int32(1)), AdmissionReviewVersions: []string{"v1beta1"}, ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy),
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "true"}},
		}, label).WithKinds(gvk("apps/v1/Deployment"), gvk("/v1/Pod")),
	)
	if err != nil {
		t.Fatal(err)
	}
	documents := make([]string, 2)
	for i, object := range []any{mutating, validating} {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		documents[i] = string(text)
	}
	golden(t, "configurations.yaml", []byte("# SPDX-License-Identifier: Apache-2.0\n"+strings.Join(documents, "---\n")))
}

func TestAddressesInConfigurations(t *testing.T) {
	hooks := &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hooks", Port: new(int32(8443)), Path: new("/ignored")}
	for _, in := range []struct {
		reason  string
		own     admissionregistrationv1.WebhookClientConfig
		options webhook.ConfigurationOptions
		path    string // of the hook
		want    string
	}{
		{reason: "a service and the default path", options: webhook.ConfigurationOptions{Service: hooks}, path: "/mutate/a.example.com", want: "shop/hooks:8443/mutate/a.example.com"},
		{reason: "a URL and the default path", options: webhook.ConfigurationOptions{URL: "https://x:1"}, path: "/mutate/a.example.com", want: "https://x:1/mutate/a.example.com"},
		{reason: "a URL with a path of its own", options: webhook.ConfigurationOptions{URL: "https://x/base/"}, path: "/mutate/a.example.com", want: "https://x/base/mutate/a.example.com"},
		{reason: "the path of the registration, trimmed", own: service("", "", "/own//path/", 0), options: webhook.ConfigurationOptions{Service: hooks}, path: "/own/path", want: "shop/hooks:8443/own/path"},
		{reason: "its port", own: service("", "", "/own", 9), options: webhook.ConfigurationOptions{Service: hooks}, path: "/own", want: "shop/hooks:9/own"},
		{reason: "its service, at the port of the options", own: service("n", "s", "", 0), options: webhook.ConfigurationOptions{Service: hooks}, path: "/mutate/a.example.com", want: "n/s:8443/mutate/a.example.com"},
		{reason: "its service beside a URL, at the default port", own: service("n", "s", "/", 0), options: webhook.ConfigurationOptions{URL: "https://x"}, path: "/", want: "n/s:443/"},
		{reason: "its path at a URL", own: service("", "", "/own", 9), options: webhook.ConfigurationOptions{URL: "https://x"}, path: "/own", want: "https://x/own"},
		{reason: "its URL beside a service", own: at("https://y/z/"), options: webhook.ConfigurationOptions{Service: hooks}, path: "/z", want: "https://y/z/"},
		{reason: "its URL alone, with the default path", own: at("https://y"), path: "/mutate/a.example.com", want: "https://y/mutate/a.example.com"},
		{reason: "its URL with the root as its path", own: at("https://y/"), path: "/", want: "https://y/"},
		{reason: "nowhere", want: "error: mutating[a.example.com].clientConfig: Required value: the webhook has no address: set URL, or Namespace and Name of Service, in ConfigurationOptions", path: "/mutate/a.example.com"},
		{reason: "half a service", options: webhook.ConfigurationOptions{Service: &admissionregistrationv1.ServiceReference{Name: "hooks"}}, path: "/mutate/a.example.com",
			want: "error: mutating[a.example.com].clientConfig: Required value: the webhook has no address: set URL, or Namespace and Name of Service, in ConfigurationOptions"},
	} {
		row(t, in.reason, func(t *testing.T) {
			hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "a.example.com", Rules: podRules(), ClientConfig: in.own}, label)
			want(t, hook.Path(), in.path)
			in.options.Name, in.options.CABundle = "c", exampleCA
			configuration, other, err := webhook.Configurations(in.options, hook)
			if err != nil {
				want(t, "error: "+err.Error(), in.want)
				return
			}
			c := configuration.Webhooks[0].ClientConfig
			if c.URL != nil {
				want(t, *c.URL, in.want)
			} else {
				want(t, fmt.Sprintf("%s/%s:%d%s", c.Service.Namespace, c.Service.Name, *c.Service.Port, *c.Service.Path), in.want)
			}
			if c.URL != nil && c.Service != nil || !bytes.Equal(c.CABundle, exampleCA) || other != nil {
				t.Errorf("got %+v and %+v", c, other)
			}
		})
	}
}

func TestAHookIsServedAtTheConfiguredPath(t *testing.T) {
	for _, url := range []string{"https://localhost", "https://localhost/", "https://localhost/a/b/", "https://localhost/a%20b"} {
		hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "a.example.com", Rules: everything, ClientConfig: at(url)}, label)
		configuration, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "c"}, hook)
		if err != nil {
			t.Fatal(err)
		}
		e := serve(t, webhook.Options{}, hook)
		configured := strings.Replace(*configuration.Webhooks[0].ClientConfig.URL, "https://localhost", e.url, 1)
		client := apiServerClient(t, webhookutil.ClientConfig{URL: configured, CABundle: e.ca.Bundle}, nil)
		if err := client.Post().SetHeader("Content-Type", "application/json").Body(call{}.body()).Do(t.Context()).Error(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestTheWebhooksNamespaceIsExcluded(t *testing.T) {
	for _, in := range []struct {
		reason  string
		own     admissionregistrationv1.WebhookClientConfig
		options webhook.ConfigurationOptions
		want    []string
	}{
		{reason: "the namespace of the service", options: webhook.ConfigurationOptions{Service: &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "s"}}, want: []string{"kube-system", "shop"}},
		{reason: "of the registration's service", own: service("own", "s", "", 0), options: webhook.ConfigurationOptions{URL: "https://x"}, want: []string{"kube-system", "own"}},
		{reason: "of the options", options: webhook.ConfigurationOptions{URL: "https://x", Namespace: "here"}, want: []string{"here", "kube-system"}},
		{reason: "once only", options: webhook.ConfigurationOptions{Service: &admissionregistrationv1.ServiceReference{Namespace: "kube-system", Name: "s"}, Namespace: "kube-system"}, want: []string{"kube-system"}},
		{reason: "none is known", options: webhook.ConfigurationOptions{URL: "https://x"}, want: []string{"kube-system"}},
	} {
		row(t, in.reason, func(t *testing.T) {
			in.options.Name = "c"
			hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "a.example.com", Rules: podRules(), ClientConfig: in.own}, admit)
			_, configuration, err := webhook.Configurations(in.options, hook)
			if err != nil {
				t.Fatal(err)
			}
			wanted := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubernetes.io/metadata.name", Operator: "NotIn", Values: in.want}}}
			if got := configuration.Webhooks[0].NamespaceSelector; !reflect.DeepEqual(got, wanted) {
				t.Errorf("got %+v, want %+v", got, wanted)
			}
		})
	}
}

// TestConfigurationsShareNoMemoryWithHooks changes the registration and the first result of Configurations. A second
// call must return the original values.
func TestConfigurationsShareNoMemoryWithHooks(t *testing.T) {
	reg := admissionregistrationv1.MutatingWebhook{Name: "a.example.com", Rules: podRules(), ClientConfig: service("n", "s", "/p", 1),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(3)),
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "true"}}}
	options := webhook.ConfigurationOptions{Name: "c", CABundle: exampleCA, Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}}
	hook := webhook.Mutating(reg, label)
	first, _, err := webhook.Configurations(options, hook)
	if err != nil {
		t.Fatal(err)
	}
	wanted := first.DeepCopy()
	for _, w := range []*admissionregistrationv1.MutatingWebhook{&reg, &first.Webhooks[0]} {
		w.Rules[0].Operations[0], w.Rules[0].Resources[0] = "DELETE", "nodes"
		*w.ClientConfig.Service.Path, *w.ClientConfig.Service.Port, w.ClientConfig.Service.Name = "/q", 2, "t"
		w.NamespaceSelector.MatchLabels["a"], w.AdmissionReviewVersions[0], *w.TimeoutSeconds = "c", "v1beta1", 4
		w.MatchConditions[0].Expression = "false"
	}
	first.Webhooks[0].ClientConfig.CABundle[0], first.Labels["l"], first.Annotations["a"] = 'x', "2", "2"
	*first.Webhooks[0].FailurePolicy, first.Webhooks[0].ObjectSelector.MatchLabels = admissionregistrationv1.Ignore, map[string]string{"x": "y"}
	second, _, err := webhook.Configurations(options, hook)
	if err != nil || !reflect.DeepEqual(second, wanted) {
		t.Errorf("%v\n got %+v\nwant %+v", err, second, wanted)
	}
	ask(t, hook, call{}).allowed(t, call{}, true) // the rules of the hook did not change
}

// TestMutatingWebhook checks that the method returns the same registration as Configurations, except for the address,
// and shares no memory with the hook.
func TestMutatingWebhook(t *testing.T) {
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "a.example.com", Rules: podRules()}, label)
	configuration, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "c", URL: "https://127.0.0.1"}, hook)
	if err != nil {
		t.Fatal(err)
	}
	want := configuration.Webhooks[0]
	want.ClientConfig = admissionregistrationv1.WebhookClientConfig{}
	for range 2 {
		got := hook.MutatingWebhook()
		if !reflect.DeepEqual(got, &want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		got.Rules[0].Operations[0], got.NamespaceSelector.MatchExpressions[0].Values[0] = "DELETE", "other"
	}
	if got := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "a.example.com", Rules: podRules()}, admit).MutatingWebhook(); got != nil {
		t.Errorf("a validating hook: got %+v", got)
	}
}

// A caBundle with anything but certificates must be an error: anyone can read the configuration, and without a valid
// certificate every call would fail. The error must not quote a key.
func TestABundleHoldsCertificatesOnly(t *testing.T) {
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	for _, in := range []struct {
		reason, bundle, want string
	}{
		{reason: "none"},
		{reason: "one certificate", bundle: string(exampleCA)},
		{reason: "two, with words around them", bundle: "# ours\n" + string(exampleCA) + "\n# theirs\n" + string(exampleCA) + "# end"},
		{reason: "words only", bundle: "PEM", want: "holds no certificate: want PEM"},
		{reason: "white space, until a CA is injected", bundle: "\n"},
		{reason: "a key", bundle: string(key), want: `holds a PEM block of type "PRIVATE KEY": anyone can read it, so it must hold only certificates`},
		{reason: "a certificate and a key", bundle: string(exampleCA) + string(key), want: `"PRIVATE KEY"`},
		{reason: "a key that is cut off", bundle: string(exampleCA) + string(key[:40]), want: "1 of 2 PEM blocks cannot be read"},
		{reason: "a key that cannot be read, and a certificate", bundle: strings.Replace(string(key), "\n", "\n***\n", 1) + string(exampleCA), want: "1 of 2 PEM blocks cannot be read"},
		{reason: "a certificate that is cut off", bundle: string(exampleCA[:100]), want: "1 of 1 PEM blocks cannot be read"},
		{reason: "an invalid certificate", bundle: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), want: "PEM block 1 is not a certificate"},
	} {
		row(t, in.reason, func(t *testing.T) {
			reg := admissionregistrationv1.MutatingWebhook{Name: "a.example.com", Rules: podRules()}
			_, _, byOptions := webhook.Configurations(webhook.ConfigurationOptions{Name: "c", URL: "https://x", CABundle: []byte(in.bundle)}, webhook.Mutating(reg, label))
			reg.ClientConfig.CABundle = []byte(in.bundle)
			hook := webhook.Mutating(reg, label)
			if err := hook.Check(); err != nil {
				t.Errorf("a server has no use for it: %v", err)
			}
			c, _, byHook := webhook.Configurations(webhook.ConfigurationOptions{Name: "c", URL: "https://x", CABundle: []byte(" ")}, hook)
			if c != nil && strings.TrimSpace(in.bundle) == "" && c.Webhooks[0].ClientConfig.CABundle != nil {
				t.Errorf("got %q", c.Webhooks[0].ClientConfig.CABundle)
			}
			for what, err := range map[string]error{"ConfigurationOptions.CABundle: ": byOptions, "clientConfig.caBundle: ": byHook} {
				switch {
				case in.want == "":
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				case err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), in.want):
					t.Errorf("%s: got %v", what, err)
				case strings.Contains(err.Error(), "c2Vj") || strings.Contains(err.Error(), "secret"):
					t.Errorf("%s: the error quotes the key: %v", what, err)
				}
			}
		})
	}
}
