// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// TestPolicyDenial checks which messages name a policy. Others have similar words from users.
func TestPolicyDenial(t *testing.T) {
	for message, want := range map[string]policyKey{
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`:                                 {false, "p", "b"},
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource`: {false, "p", ""},
		`policy 'p' with binding 'b' denied request: expression 'x' resulted in error: no such key: y`:                                   {true, "p", "b"},
		`policy "p" denied request: failed to configure policy: failed to find resource`:                                                 {true, "p", ""},
		`admission webhook "a.example.com" denied the request: policy 'p' with binding 'b' denied request: no`:                           {},
		`configmaps "a" is forbidden: the policy denied request: p`:                                                                      {},
		`policy 'p' with binding b denied request: no`:                                                                                   {},
		`policy 'p`: {},
		`policy `:   {},
		``:          {},
	} {
		got, ok := policyDenial(message)
		if !ok {
			got = policyKey{}
		}
		if got != want || ok != (want.policy != "") {
			t.Errorf("%s: got %+v", message, got)
		}
	}
}

// TestWebhookThatQuotesAPolicy checks that a denial by a webhook is not one by the policy that its message quotes.
func TestWebhookThatQuotesAPolicy(t *testing.T) {
	quoted := `pods "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'q' denied request: no`
	for message, want := range map[string]bool{quoted: true, `admission webhook "w.example.com" denied the request: ` + quoted: false} {
		q := &request{code: 403, message: message}
		if _, got := q.denial(); got != want {
			t.Errorf("%s: got %t", message, got)
		}
	}
}

// TestPoliciesOfRealServer compares the report on the log of a real API server with the answers that its client got.
func TestPoliciesOfRealServer(t *testing.T) {
	w := newAuditedCluster(t)
	w.namespace("rules")
	ctx, o, api := t.Context(), metav1.CreateOptions{}, w.client.AdmissionregistrationV1()
	must := func(_ any, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	of := func(name string) (metav1.ObjectMeta, *admissionregistrationv1.MatchResources) {
		var rule admissionregistrationv1.NamedRuleWithOperations
		rule.RuleWithOperations = rulesFor("rules")[0]
		return metav1.ObjectMeta{Name: name}, &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}, ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": name}}}
	}
	validating := func(name string, kind *admissionregistrationv1.ParamKind, actions ...admissionregistrationv1.ValidationAction) {
		meta, constraints := of(name)
		must(api.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: constraints, ParamKind: kind, Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "denied by " + name}},
		}}, o))
		must(api.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: actions}}, o))
	}
	validating("denies", nil, admissionregistrationv1.Deny)
	validating("audits", nil, admissionregistrationv1.Audit, admissionregistrationv1.Warn)
	validating("both", nil, admissionregistrationv1.Audit, admissionregistrationv1.Deny)
	validating("misconfigured", &admissionregistrationv1.ParamKind{APIVersion: "example.com/v1", Kind: "None"}, admissionregistrationv1.Deny)
	denying := []string{"denies", "both", "misconfigured"}
	if apiservertest.HasMutatingPolicies(t, w.server.Config) {
		denying = append(denying, "fails")
		meta, constraints := of("fails")
		must(api.MutatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: constraints, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: "Object{metadata: Object.metadata{labels: {'a': object.data.none}}}"}}},
		}}, o))
		must(api.MutatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "fails"}}, o))
	}

	denials := map[string]int{}
	create := func(ctx context.Context, policy string) bool {
		_, err := w.client.CoreV1().ConfigMaps("rules").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-", Labels: map[string]string{"for": policy}}}, o)
		denied := err != nil && strings.Contains(err.Error(), "denied request")
		if err != nil && !denied {
			t.Fatal(err)
		}
		if denied {
			denials[policy]++
		}
		return denied
	}
	for _, policy := range denying {
		if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) { return create(ctx, policy), nil }); err != nil {
			t.Fatalf("%s does not deny: %v", policy, err)
		}
		create(ctx, policy)
	}
	for range 3 { // the policy was installed before others that deny
		create(ctx, "audits")
	}
	w.stop()

	sources, err := Sources([]string{w.log}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), sources, Options{Top: 50, Slow: time.Hour, Again: 5}, func(int64, int64, int) {})
	if err != nil {
		t.Fatal(err)
	}
	want := []PolicyCount{
		{"validating", "both", "both", denials["both"], denials["both"]},
		{"validating", "audits", "audits", 0, 3},
		{"validating", "denies", "denies", denials["denies"], 0},
		{"validating", "misconfigured", "", denials["misconfigured"], 0},
	}
	if slices.Contains(denying, "fails") {
		want = append(want, PolicyCount{"mutating", "fails", "fails", denials["fails"], 0})
	}
	for _, one := range want {
		if !slices.Contains(r.Policies, one) {
			t.Errorf("want %+v", one)
		}
	}
	if len(r.Policies) != len(want) || len(r.Incomplete) > 0 {
		t.Errorf("got %+v, incomplete %v", r.Policies, r.Incomplete)
	}
	var text strings.Builder
	if err := r.WriteText(&text, screen.Painter{}); err != nil {
		t.Fatal(err)
	}
	if row := fmt.Sprintf("%-64s %7s %7d\n", "denies", "-", denials["denies"]); !strings.Contains(text.String(), row) || !strings.Contains(text.String(), " 0 with webhooks\n") {
		t.Errorf("no row %q in\n%s", row, text.String())
	}
}
