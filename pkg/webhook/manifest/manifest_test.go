// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/api/admissionregistration/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/manifest"
)

func ExampleStatic() {
	pull := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "pull.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
	mutating, validating, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "shop", URL: "https://hooks.example.com"}, pull)
	if err != nil {
		panic(err)
	}
	_, validating, err = manifest.Static(mutating, validating)
	if err != nil {
		panic(err)
	}
	fmt.Println(validating.Name, *validating.Webhooks[0].ClientConfig.URL)
	// Output: shop.static.k8s.io https://hooks.example.com/validate/pull.example.com
}

func ExampleV1beta1() {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "pull.example.com"}},
	}
	old, _, err := manifest.V1beta1(mutating, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(old.APIVersion, *old.Webhooks[0].FailurePolicy, *old.Webhooks[0].MatchPolicy, *old.Webhooks[0].TimeoutSeconds)
	// Output: admissionregistration.k8s.io/v1beta1 Fail Equivalent 10
}

// TestV1beta1HasTheMeaningOfV1 converts random configurations to v1beta1, and decodes the resulting JSON as v1. The
// webhooks must equal the original ones.
func TestV1beta1HasTheMeaningOfV1(t *testing.T) {
	const seed = 1
	fill := randfill.NewWithSeed(seed).NilChance(0).NumElements(1, 3)
	for round := range 50 {
		mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
		fill.Fill(&mutating.Webhooks)
		fill.Fill(&validating.Webhooks)
		for i := range mutating.Webhooks {
			mutating.Webhooks[i].MatchConditions = nil
		}
		for i := range validating.Webhooks {
			validating.Webhooks[i].MatchConditions = nil
		}
		mutating.Name, validating.Name = "a", "b"
		mutating.Labels = map[string]string{"app": "shop"}
		before := mutating.DeepCopy()
		oldMutating, oldValidating, err := manifest.V1beta1(mutating, validating)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(mutating.Webhooks, reread(t, oldMutating.Webhooks, mutating.Webhooks)); diff != "" {
			t.Errorf("seed %d, round %d: %s", seed, round, diff)
		}
		if diff := cmp.Diff(validating.Webhooks, reread(t, oldValidating.Webhooks, validating.Webhooks)); diff != "" {
			t.Errorf("seed %d, round %d: %s", seed, round, diff)
		}
		if oldMutating.Kind != "MutatingWebhookConfiguration" || oldValidating.Kind != "ValidatingWebhookConfiguration" ||
			!cmp.Equal(oldMutating.ObjectMeta, mutating.ObjectMeta) || oldValidating.Name != "b" {
			t.Errorf("%v, %v", oldMutating, oldValidating)
		}
		oldMutating.Labels["app"] = "other"
		*oldMutating.Webhooks[0].FailurePolicy = "Other"
		oldMutating.Webhooks[0].Rules[0].Operations[0] = "Other"
		if diff := cmp.Diff(before, mutating); diff != "" {
			t.Errorf("seed %d, round %d: it shares memory: %s", seed, round, diff)
		}
	}
}

func reread[T any](t *testing.T, from any, _ T) T {
	t.Helper()
	text, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	var into T
	if err := json.Unmarshal(text, &into); err != nil {
		t.Fatal(err)
	}
	return into
}

// TestV1beta1IsExplicit converts webhooks with unset fields. V1beta1 must set every field that would otherwise get a
// default of v1beta1.
func TestV1beta1IsExplicit(t *testing.T) {
	rule := webhook.OnCreate("", "v1", "pods")
	rule.Scope = nil
	rules := webhook.Rules(rule)
	service := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hooks"}}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{{Rules: rules, ClientConfig: service}}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{Rules: rules, ClientConfig: service}}}
	oldMutating, oldValidating, err := manifest.V1beta1(mutating, validating)
	if err != nil {
		t.Fatal(err)
	}
	scoped := rules[0]
	scoped.Scope = new(v1beta1.AllScopes)
	want := v1beta1.ValidatingWebhook{
		ClientConfig:            v1beta1.WebhookClientConfig{Service: &v1beta1.ServiceReference{Namespace: "shop", Name: "hooks", Port: new(int32(443))}},
		Rules:                   []v1beta1.RuleWithOperations{scoped},
		FailurePolicy:           new(v1beta1.Fail),
		MatchPolicy:             new(v1beta1.Equivalent),
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             new(v1beta1.SideEffectClassUnknown),
		TimeoutSeconds:          new(int32(10)),
		AdmissionReviewVersions: []string{"v1beta1"},
	}
	if diff := cmp.Diff([]v1beta1.ValidatingWebhook{want}, oldValidating.Webhooks); diff != "" {
		t.Error(diff)
	}
	var same v1beta1.MutatingWebhook
	text, _ := json.Marshal(want)
	if err := json.Unmarshal(text, &same); err != nil {
		t.Fatal(err)
	}
	same.ReinvocationPolicy = new(v1beta1.NeverReinvocationPolicy)
	if diff := cmp.Diff([]v1beta1.MutatingWebhook{same}, oldMutating.Webhooks); diff != "" {
		t.Error(diff)
	}
	if rules[0].Scope != nil {
		t.Error("the rule that was given has a scope now")
	}
}

func TestV1beta1Refuses(t *testing.T) {
	conditions := []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "true"}}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "first", MatchConditions: conditions}}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "second", MatchConditions: conditions}}}
	_, _, err := manifest.V1beta1(mutating, validating)
	if err == nil || !strings.Contains(err.Error(), "webhook first has matchConditions") || !strings.Contains(err.Error(), "webhook second has matchConditions") {
		t.Errorf("got %v", err)
	}
}

func TestStatic(t *testing.T) {
	url := admissionregistrationv1.WebhookClientConfig{URL: new("https://hooks.example.com")}
	service := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hooks"}}
	rows := []struct {
		name, reason string
		mutating     admissionregistrationv1.WebhookClientConfig
		validating   admissionregistrationv1.WebhookClientConfig
		wantName     string
		wantErrs     []string
	}{
		{"shop", "the suffix is added", url, url, "shop.static.k8s.io", nil},
		{"shop.static.k8s.io", "the suffix exists", url, url, "shop.static.k8s.io", nil},
		{"shop", "both errors are reported", service, service, "", []string{"webhook m is served by a Service", "webhook v is served by a Service"}},
		{"shop", "no address", admissionregistrationv1.WebhookClientConfig{}, url, "", []string{"webhook m is served by a Service"}},
		{strings.Repeat("a", 250), "with the suffix it is too long", url, url, "", []string{"must be no more than 253"}},
	}
	for _, row := range rows {
		mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: row.name}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "m", ClientConfig: row.mutating}}}
		validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: row.name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "v", ClientConfig: row.validating}}}
		m, v, err := manifest.Static(mutating, validating)
		if missing := slices.ContainsFunc(row.wantErrs, func(want string) bool { return err == nil || !strings.Contains(err.Error(), want) }); missing || (err != nil) != (row.wantErrs != nil) {
			t.Errorf("%s: got %v, want %q: %s", row.name, err, row.wantErrs, row.reason)
		}
		if err == nil && (m.Name != row.wantName || v.Name != row.wantName || mutating.Name != row.name) {
			t.Errorf("%s: got %s and %s: %s", row.name, m.Name, v.Name, row.reason)
		}
	}
}

func TestNilConfigurationsStayNil(t *testing.T) {
	m, v, err := manifest.Static(nil, nil)
	om, ov, oldErr := manifest.V1beta1(nil, nil)
	if m != nil || v != nil || om != nil || ov != nil || err != nil || oldErr != nil {
		t.Error(m, v, om, ov, err, oldErr)
	}
}
