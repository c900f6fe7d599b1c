// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain"
)

func TestConfigurationsAreValidated(t *testing.T) {
	type hook = admissionregistrationv1.ValidatingWebhook
	for _, test := range []struct {
		name string
		edit func(*hook)
		text string // part of the error, or empty
	}{
		{"fine", func(*hook) {}, ""},
		{"no rules", func(h *hook) { h.Rules = nil }, ""},
		{"name", func(h *hook) { h.Name = "a" }, "should be a domain with at least three segments"},
		{"no sideEffects", func(h *hook) { h.SideEffects = nil }, "must specify one of None, NoneOnDryRun"},
		{"sideEffects", func(h *hook) { h.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassSome) }, `Unsupported value: "Some"`},
		{"failurePolicy", func(h *hook) { h.FailurePolicy = ptr.To(admissionregistrationv1.FailurePolicyType("No")) }, `Unsupported value: "No"`},
		{"matchPolicy", func(h *hook) { h.MatchPolicy = ptr.To(admissionregistrationv1.MatchPolicyType("No")) }, `Unsupported value: "No"`},
		{"timeout", func(h *hook) { h.TimeoutSeconds = ptr.To[int32](31) }, "between 1 and 30"},
		{"no review versions", func(h *hook) { h.AdmissionReviewVersions = nil }, "must specify one of v1, v1beta1"},
		{"unknown review version", func(h *hook) { h.AdmissionReviewVersions = []string{"v2"} }, "must include at least one of v1, v1beta1"},
		{"review version twice", func(h *hook) { h.AdmissionReviewVersions = []string{"v1", "v1"} }, "duplicate version"},
		{"odd review version", func(h *hook) { h.AdmissionReviewVersions = []string{"v1", "V-"} }, "DNS-1035"},
		{"unknown and known", func(h *hook) { h.AdmissionReviewVersions = []string{"v2", "v1"} }, ""},
		{"selector", func(h *hook) { h.ObjectSelector = selector("a b", "") }, "objectSelector"},
		{"namespaceSelector", func(h *hook) { h.NamespaceSelector = selector("a b", "") }, "namespaceSelector"},
		{"no operations", func(h *hook) { h.Rules[0].Operations = nil }, "operations: Required"},
		{"operation", func(h *hook) { h.Rules[0].Operations = []admissionregistrationv1.OperationType{"GET"} }, `Unsupported value: "GET"`},
		{"all operations and one", func(h *hook) { h.Rules[0].Operations = []admissionregistrationv1.OperationType{"*", "CREATE"} }, "must be the only one"},
		{"no groups", func(h *hook) { h.Rules[0].APIGroups = nil }, "apiGroups: Required"},
		{"empty version", func(h *hook) { h.Rules[0].APIVersions = []string{""} }, "apiVersions[0]: Required"},
		{"scope", func(h *hook) { h.Rules[0].Scope = ptr.To(admissionregistrationv1.ScopeType("No")) }, "scope: Unsupported"},
		{"no resources", func(h *hook) { h.Rules[0].Resources = nil }, "resources: Required"},
		{"empty resource", func(h *hook) { h.Rules[0].Resources = []string{""} }, "resources[0]: Required"},
		{"everything and more", func(h *hook) { h.Rules[0].Resources = []string{"*/*", "a"} }, "if '*/*' is present"},
		{"a/* then a/b", func(h *hook) { h.Rules[0].Resources = []string{"a/*", "a/b"} }, "if 'a/*' is present"},
		{"a/b then a/*", func(h *hook) { h.Rules[0].Resources = []string{"a/b", "a/*"} }, ""},
		{"*/b then a/b", func(h *hook) { h.Rules[0].Resources = []string{"*/b", "a/b"} }, "if '*/b' is present"},
		{"* then a", func(h *hook) { h.Rules[0].Resources = []string{"*", "a"} }, "if '*' is present"},
		{"a then *", func(h *hook) { h.Rules[0].Resources = []string{"a", "*"} }, ""},
		{"both addresses", func(h *hook) {
			h.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://a"), Service: &admissionregistrationv1.ServiceReference{Name: "a", Namespace: "b"}}
		}, "exactly one of url or service"},
		{"http", func(h *hook) { h.ClientConfig.URL = ptr.To("http://a") }, "'https' is the only allowed URL scheme"},
		{"query", func(h *hook) { h.ClientConfig.URL = ptr.To("https://a?b=c") }, "query parameters are not permitted"},
		{"service path", func(h *hook) {
			h.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Name: "a", Namespace: "b", Path: ptr.To("/A")}
		}, "segment[0]"},
		{"condition", func(h *hook) { h.MatchConditions = condition("object.") }, "Syntax error"},
		{"condition of no bool", func(h *hook) { h.MatchConditions = condition("1") }, "must evaluate to bool"},
		{"undeclared", func(h *hook) { h.MatchConditions = condition("params.a") }, "undeclared reference"},
		{"blank condition", func(h *hook) { h.MatchConditions = condition(" ") }, "expression: Required"},
		{"condition without name", func(h *hook) {
			h.MatchConditions = []admissionregistrationv1.MatchCondition{{Expression: "true"}}
		}, "name: Required"},
		{"odd condition name", func(h *hook) {
			h.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "a b", Expression: "true"}}
		}, "name part must consist of"},
		{"conditions of one name", func(h *hook) { h.MatchConditions = append(condition("true"), condition("true")...) }, "Duplicate value"},
		{"many conditions", func(h *hook) { h.MatchConditions = make([]admissionregistrationv1.MatchCondition, 65) }, "Too many"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := validatingHook("a.example.com")
			test.edit(&h)
			m := mutatingHook(h.Name, func(m *admissionregistrationv1.MutatingWebhook) {
				m.ClientConfig, m.Rules, m.FailurePolicy, m.MatchPolicy, m.NamespaceSelector = h.ClientConfig, h.Rules, h.FailurePolicy, h.MatchPolicy, h.NamespaceSelector
				m.ObjectSelector, m.SideEffects, m.TimeoutSeconds, m.AdmissionReviewVersions = h.ObjectSelector, h.SideEffects, h.TimeoutSeconds, h.AdmissionReviewVersions
				m.MatchConditions = h.MatchConditions
			})
			handlers := map[string]http.Handler{h.Name: allowing()}
			for _, w := range []chain.Webhooks{{Validating: validating(h), Handlers: handlers}, {Mutating: mutating(m), Handlers: handlers}} {
				switch _, err := chain.New(w, chain.Options{}); {
				case test.text == "" && err != nil:
					t.Error(err)
				case test.text != "" && (err == nil || !strings.Contains(err.Error(), test.text)):
					t.Errorf("the error is %v", err)
				}
			}
		})
	}
}

func TestConfigurationsTogether(t *testing.T) {
	named := func(name string, hooks ...admissionregistrationv1.MutatingWebhook) *admissionregistrationv1.MutatingWebhookConfiguration {
		return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks}
	}
	type configurations = []*admissionregistrationv1.MutatingWebhookConfiguration
	a, b := mutatingHook("a.example.com"), mutatingHook("b.example.com")
	handlers := map[string]http.Handler{"a.example.com": allowing(), "b.example.com": allowing()}
	for _, test := range []struct {
		name string
		w    chain.Webhooks
		text string
	}{
		{"no address and no handler", chain.Webhooks{Mutating: mutating(a)}, "exactly one of url or service is required"},
		{"handler of no webhook", chain.Webhooks{Mutating: mutating(a), Handlers: handlers}, `handlers: Not found: "b.example.com"`},
		{"one webhook twice", chain.Webhooks{Mutating: mutating(a, a, b), Handlers: handlers}, "Duplicate value"},
		{"one configuration twice", chain.Webhooks{Mutating: configurations{named("x", a), named("x", b)}, Handlers: handlers}, "Duplicate value"},
		{"configuration without name", chain.Webhooks{Mutating: configurations{named("", a, b)}, Handlers: handlers}, "name or generateName is required"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := chain.New(test.w, chain.Options{}); err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("order", func(t *testing.T) {
		w := chain.Webhooks{Mutating: configurations{named("z", a), named("c", b), named("d", a, b)}, Handlers: handlers}
		got := admit(t, newChain(t, w), createPod("web"))
		if trace(got) != "b0 a0 b0 a0" || got.Calls[3].Configuration != "z" || got.Calls[3].Index != 3 {
			t.Errorf("the calls are %s: %+v", trace(got), got.Calls)
		}
		if w.Mutating[0].Name != "z" || w.Mutating[0].Webhooks[0].ClientConfig.URL != nil {
			t.Error("the configurations of the caller were changed")
		}
	})
}

func TestLimits(t *testing.T) {
	hpa := chain.Request{Operation: "CREATE", Resource: metav1.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		Object: []byte(`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"}}`)}
	widget := chain.Request{Operation: "CREATE", Resource: metav1.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
		Object: []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`)}
	for _, test := range []struct {
		name string
		req  chain.Request
		edit func(*admissionregistrationv1.ValidatingWebhook)
		want []string // parts of the limits, in order
	}{
		{"pod", createPod("web"), nil, []string{"The defaults of Pod are not set", "Only the metadata of Pod is validated", "ServiceAccount"}},
		{"service", chain.Request{Operation: "CREATE", Resource: metav1.GroupVersionResource{Version: "v1", Resource: "services"},
			Object: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"}}`)}, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.Rules[0].Rule.Resources = []string{"services"}
		}, []string{"defaults", "Only the metadata", "Addresses and ports"}},
		{"delete", chain.Request{Operation: "DELETE", Resource: pods, OldObject: podJSON("web")}, nil, nil},
		{"unknown", widget, nil, []string{"The schema of Widget is unknown"}},
		{"other version", hpa, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.Rules[0].Rule = admissionregistrationv1.Rule{APIGroups: []string{"autoscaling"}, APIVersions: []string{"v1"}, Resources: []string{"horizontalpodautoscalers"}}
		}, []string{"defaults", "Only the metadata", "The API server would call a.example.com with the equivalent autoscaling/v1"}},
		{"other version, Exact", hpa, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.MatchPolicy = ptr.To(admissionregistrationv1.Exact)
			h.Rules[0].Rule = admissionregistrationv1.Rule{APIGroups: []string{"autoscaling"}, APIVersions: []string{"v1"}, Resources: []string{"horizontalpodautoscalers"}}
		}, []string{"defaults", "Only the metadata"}},
		{"authorizer", chain.Request{Operation: "DELETE", Resource: pods, OldObject: podJSON("web")}, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.MatchConditions = condition(`authorizer.group("").resource("pods").check("x").allowed()`)
		}, []string{"uses the authorizer"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := validatingHook("a.example.com")
			if test.edit != nil {
				test.edit(&h)
			}
			got := admit(t, newChain(t, chain.Webhooks{Validating: validating(h), Handlers: map[string]http.Handler{"a.example.com": allowing()}}), test.req)
			if len(got.Limits) != len(test.want) {
				t.Fatalf("the limits are %q", got.Limits)
			}
			for i, want := range test.want {
				if !strings.Contains(got.Limits[i].Message, want) {
					t.Errorf("the limits are %q", got.Limits)
				}
			}
		})
	}
}
