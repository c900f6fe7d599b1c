// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain"
)

func explain(tb testing.TB, c *chain.Chain, req chain.Request) *chain.Explanation {
	tb.Helper()
	got, err := c.Explain(tb.Context(), req)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// TestExplainPredicates checks that Explain returns every predicate, including those after the deciding one.
func TestExplainPredicates(t *testing.T) {
	type hook = admissionregistrationv1.ValidatingWebhook
	jane := createPod("web")
	jane.User = authenticationv1.UserInfo{Username: "jane"}
	scaler := chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		Object: []byte(`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"a"}}`)}
	oldScaler := func(h *hook) {
		h.Rules[0].APIGroups, h.Rules[0].Resources = []string{"autoscaling"}, []string{"horizontalpodautoscalers"}
	}
	asksWhether := condition(`authorizer.group("apps").resource("deployments").subresource("scale").namespace("shop").name("a").check("get").allowed()`)
	for _, row := range []struct {
		name, reason string
		edit         func(*hook)
		req          chain.Request
		options      chain.Options
		want         []string
	}{
		{"all hold", "without selectors and conditions there are four", nil, createPod("web"), chain.Options{}, []string{
			"Resource Holds webhooks can be called for kind Pod", "NamespaceSelector Holds every namespace matches",
			"ObjectSelector Holds every object matches", "Rules Holds rules[0] is for CREATE of v1 pods"}},
		{"selectors", "the requirement that is not met is shown with its labels", func(h *hook) {
			h.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "kubernetes.io/metadata.name", Operator: "In", Values: []string{"default"}}, {Key: "team", Operator: "In", Values: []string{"a", "b"}}}}
			h.ObjectSelector = selector("app", "db")
		}, createPod("web"), chain.Options{}, []string{
			`NamespaceSelector Fails team in (a,b): namespace "default" has no label team`, "ObjectSelector Fails app=db: the object has app=web",
			"Rules Holds rules[0] is for CREATE of v1 pods"}},
		{"selectors that match", "all labels in the selector are shown", func(h *hook) { h.ObjectSelector = selector("app", "web") },
			createPod("web"), chain.Options{}, []string{"ObjectSelector Holds app=web: the object has app=web"}},
		{"old object", "the old object counts as well", func(h *hook) { h.ObjectSelector = selector("app", "web") },
			chain.Request{Operation: admissionv1.Delete, Resource: pods, OldObject: podJSON("web")}, chain.Options{},
			[]string{"ObjectSelector Holds app=web: the old object has app=web"}},
		{"no metadata", "options have no labels", func(h *hook) { h.ObjectSelector = selector("app", "web") },
			chain.Request{Operation: admissionv1.Connect, Resource: pods, SubResource: "exec", Namespace: "default", Name: "web",
				Object: []byte(`{"apiVersion":"v1","kind":"PodExecOptions"}`)}, chain.Options{},
			[]string{"ObjectSelector Fails the object has no metadata, so no selector matches"}},
		{"rules", "the fields that do not match are shown for each rule", func(h *hook) {
			h.Rules = []admissionregistrationv1.RuleWithOperations{podRule("UPDATE", "DELETE"), podRule(), podRule("CREATE")}
			h.Rules[1].Scope, h.Rules[1].APIGroups = ptr.To(admissionregistrationv1.ClusterScope), []string{"apps"}
			h.Rules[2].Resources, h.Rules[2].APIVersions = []string{"pods/exec"}, []string{"v2"}
		}, createPod("web"), chain.Options{}, []string{`Rules Fails no rule is for CREATE of v1 pods: rules[0] has operations ["UPDATE" "DELETE"]; ` +
			`rules[1] has apiGroups ["apps"], scope "Cluster"; rules[2] has apiVersions ["v2"], resources ["pods/exec"]`}},
		{"no rules", "there may be none", func(h *hook) { h.Rules = nil }, createPod("web"), chain.Options{}, []string{"Rules Fails no rule is for CREATE of v1 pods"}},
		{"conditions", "all are evaluated, even if the first is false", func(h *hook) {
			h.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "no", Expression: "false"}, {Name: "yes", Expression: `object.kind == "Pod"`}, {Name: "err", Expression: `object.spec.nodeName == "n"`}}
		}, createPod("web"), chain.Options{}, []string{"MatchCondition no Fails false", "MatchCondition yes Holds true", "MatchCondition err Errs expression 'object.spec.nodeName == \"n\"' resulted in error: no such key: nodeName"}},
		{"conditions without a rule", "they are evaluated only for a matching rule", func(h *hook) { h.Rules, h.MatchConditions = nil, condition("true") }, createPod("web"), chain.Options{},
			[]string{"Rules Fails no rule is for CREATE of v1 pods"}},
		{"masters", "they may do everything in any cluster", func(h *hook) { h.MatchConditions = asksWhether }, createPod("web"), chain.Options{}, []string{"MatchCondition c Holds true"}},
		{"others", "nobody knows", func(h *hook) { h.MatchConditions = asksWhether }, jane, chain.Options{},
			[]string{"MatchCondition c Unknown whether jane may get deployments.apps/scale a in namespace shop is not known"}},
		{"not asked", "the authorizer is not needed", func(h *hook) {
			h.MatchConditions = condition(`request.operation == "DELETE" && authorizer.path("/x").check("get").allowed()`)
		}, jane, chain.Options{}, []string{"MatchCondition c Fails false"}},
		{"paths", "the authorizer can be asked about a path", func(h *hook) { h.MatchConditions = condition(`authorizer.path("/x").check("get").allowed()`) },
			jane, chain.Options{}, []string{"MatchCondition c Unknown whether jane may get /x is not known"}},
		{"authorizer fails", "an API server would know", func(h *hook) { h.MatchConditions = condition(`authorizer.path("/x").check("get").allowed()`) }, jane,
			chain.Options{Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				return authorizer.DecisionNoOpinion, "", errors.New("no permission")
			})}, []string{"MatchCondition c Unknown whether jane may get /x is not known: no permission"}},
		{"too much", "the budget is for all conditions", func(h *hook) {
			h.MatchConditions = append(condition("true"), admissionregistrationv1.MatchCondition{Name: "d", Expression: tooMuch})
		}, createPod("web"), chain.Options{}, []string{"MatchCondition c Holds true", "MatchCondition d Errs expression '" + tooMuch + "' resulted in error: operation cancelled: actual cost limit exceeded"}},
		{"equivalent", "an API server converts it, which does not matter to rules", oldScaler, scaler, chain.Options{},
			[]string{"Rules Holds rules[0] is for the equivalent CREATE of autoscaling/v1 horizontalpodautoscalers", "sent as autoscaling/v1 HorizontalPodAutoscaler"}},
		{"equivalent with conditions", "they are about the converted object", func(h *hook) { oldScaler(h); h.MatchConditions = condition("true") }, scaler, chain.Options{},
			[]string{"MatchCondition c Unknown it reads autoscaling/v1, Kind=HorizontalPodAutoscaler, and this engine cannot convert the object to that"}},
		{"exact", "nothing is converted", func(h *hook) { oldScaler(h); h.MatchPolicy = ptr.To(admissionregistrationv1.Exact) }, scaler, chain.Options{},
			[]string{`Rules Fails no rule is for CREATE of autoscaling/v2 horizontalpodautoscalers: rules[0] has apiVersions ["v1"]`}},
		{"missing namespace", "its labels cannot be read", func(h *hook) { h.NamespaceSelector = selector("a", "b") }, createPod("web"),
			chain.Options{Namespaces: map[string]map[string]string{}}, []string{`NamespaceSelector Errs namespaces "default" not found`}},
		{"configurations", "no webhook is asked", func(h *hook) {
			h.Rules[0].Rule = admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}}
			h.NamespaceSelector = selector("a", "b")
		}, chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
			Object: []byte(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"m"}}`)}, chain.Options{},
			[]string{"Resource Fails no webhook is called for a MutatingWebhookConfiguration", "NamespaceSelector Holds it is in no namespace",
				"Rules Holds rules[0] is for CREATE of admissionregistration.k8s.io/v1 mutatingwebhookconfigurations"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := validatingHook("a.example.com")
			if row.edit != nil {
				row.edit(&h)
			}
			c := newChain(t, chain.Webhooks{Validating: validating(withURL(h))}, row.options)
			e := explain(t, c, row.req)
			if len(e.Webhooks) != 1 {
				t.Fatalf("%+v", e)
			}
			got := told(e.Webhooks[0])
			for _, want := range row.want {
				if !strings.Contains(got, want+"\n") {
					t.Errorf("%s\n got:\n%s want: %s", row.reason, got, want)
				}
			}
		})
	}
}

// tooMuch is an expression that exceeds the cost limit of a webhook's conditions.
const tooMuch = `"abcdefghijklmnopqrstuvwxyz".split("").all(a, "abcdefghijklmnopqrstuvwxyz".split("").all(b, "abcdefghijklmnopqrstuvwxyz".split("").all(c, ` +
	`"abcdefghijklmnopqrstuvwxyz".split("").all(d, a != "1" && b != "2" && c != "3" && d != "4"))))`

func withURL(h admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.ValidatingWebhook {
	h.ClientConfig.URL = ptr.To("https://" + h.Name)
	return h
}

func told(e chain.Explained) string {
	var text strings.Builder
	for _, p := range e.Predicates {
		fmt.Fprintln(&text, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", p.Reason, p.Condition, p.Result, p)), " "))
	}
	if e.Kind.Kind != "" {
		fmt.Fprintf(&text, "sent as %s/%s %s\n", e.Kind.Group, e.Kind.Version, e.Kind.Kind)
	}
	return text.String()
}

func TestExplainRequests(t *testing.T) {
	invalid := createPod("web")
	invalid.Object = []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"!":""}}}`)
	other := createPod("web")
	other.Namespace = "other"
	deletion := chain.Request{Operation: admissionv1.Delete, Resource: pods, OldObject: podJSON("web")}
	dryRun := deletion
	dryRun.DryRun = true
	exec := chain.Request{Operation: admissionv1.Connect, Resource: pods, SubResource: "exec", DryRun: true, Namespace: "default", Name: "web",
		Object: []byte(`{"apiVersion":"v1","kind":"PodExecOptions"}`)}
	review := chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"},
		Object: []byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{}}`)}
	for _, row := range []struct {
		name, reason string
		req          chain.Request
		code         int32 // of the API server's own rejection
		early, twice bool
	}{
		{"create", "nothing is wrong", createPod("web"), 0, false, false},
		{"virtual", "what is not stored needs no name", review, 0, false, false},
		{"invalid", "mutating webhooks are asked first", invalid, 422, false, false},
		{"other namespace", "the object is in another", other, 400, true, false},
		{"delete", "an unscheduled Pod is deleted in two steps", deletion, 0, false, true},
		{"delete, dry run", "in one", dryRun, 0, false, false},
		{"connect, dry run", "CONNECT does not support dry runs", exec, 400, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newChain(t, chain.Webhooks{Mutating: mutating(mutatingHook("m.example.com", func(h *admissionregistrationv1.MutatingWebhook) {
				h.ClientConfig.URL = ptr.To("https://m.example.com")
			})), Validating: validating(withURL(validatingHook("v.example.com")))})
			e := explain(t, c, row.req)
			var code int32
			if e.Rejection != nil {
				code = e.Rejection.Code
			}
			if code != row.code || e.Early != row.early || e.Twice != row.twice {
				t.Errorf("code %d, early %t, twice %t: %s", code, e.Early, e.Twice, row.reason)
			}
			if len(e.Webhooks) != 2 || !e.Webhooks[0].Mutating || e.Webhooks[1].Mutating || e.Webhooks[1].Webhook != "v.example.com" {
				t.Errorf("%+v", e.Webhooks)
			}
		})
	}
	c := newChain(t, chain.Webhooks{})
	if e := explain(t, c, invalid); e.Early || e.Rejection == nil {
		t.Errorf("without webhooks: %+v", e)
	}
	for _, req := range []chain.Request{{Operation: "READ"}, {Operation: admissionv1.Create, Resource: pods, Object: []byte("{}")}} {
		if e, err := c.Explain(t.Context(), req); err == nil {
			t.Errorf("%+v", e)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := c.Explain(ctx, createPod("web")); !errors.Is(err, context.Canceled) {
		t.Error(e, err)
	}
}

// TestExplainAgrees checks on random configurations that Explain and Admit select the same webhooks.
func TestExplainAgrees(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	for n := range 100 {
		h := validatingHook("a.example.com")
		h.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationType(pick("*", "CREATE", "UPDATE"))}
		h.Rules[0].Resources = []string{pick("*", "pods", "pods/*", "*/*", "services")}
		h.NamespaceSelector = []*metav1.LabelSelector{nil, selector("env", "prod"), selector("env", "test")}[r.IntN(3)]
		h.ObjectSelector = []*metav1.LabelSelector{nil, selector("app", "web"), selector("app", "db")}[r.IntN(3)]
		h.FailurePolicy = ptr.To(admissionregistrationv1.FailurePolicyType(pick("Fail", "Ignore")))
		for i := range r.IntN(3) {
			h.MatchConditions = append(h.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprint("c", i),
				Expression: pick("true", "true", "false", `object.spec.nodeName == "n"`)})
		}
		namespaces := map[string]map[string]string{}
		if r.IntN(3) > 0 {
			namespaces["default"] = map[string]string{"env": "prod"}
		}
		m := mutatingHook("b.example.com", func(m *admissionregistrationv1.MutatingWebhook) {
			m.Rules, m.NamespaceSelector, m.ObjectSelector = h.Rules, h.NamespaceSelector, h.ObjectSelector
			m.MatchConditions, m.FailurePolicy = h.MatchConditions, h.FailurePolicy
			m.ClientConfig.URL = ptr.To("https://b.example.com")
		})
		for _, w := range []chain.Webhooks{{Validating: validating(withURL(h))}, {Mutating: mutating(m)}} {
			c := newChain(t, w, chain.Options{Namespaces: namespaces})
			e := explain(t, c, createPod("web"))
			w.Handlers = map[string]http.Handler{e.Webhooks[0].Webhook: allowing()}
			result := admit(t, newChain(t, w, chain.Options{Namespaces: namespaces}), createPod("web"))
			called, decision := decided(e.Webhooks[0].Predicates)
			if v := result.Webhooks[0]; v.Called != called || v.Reason != decision || e.Rejection != nil {
				t.Fatalf("seed %d, case %d: the chain says %+v, explained:\n%s\n%s", seed, n, v, told(e.Webhooks[0]), encoded(h))
			}
		}
	}
}

// decided returns whether the API server calls the webhook, and the predicate that decides. A predicate that fails
// counts before one with an error, and matchConditions count last.
func decided(all []chain.Predicate) (called bool, by chain.Reason) {
	for _, answer := range []chain.PredicateResult{chain.Fails, chain.Errs} {
		for _, p := range all {
			if p.Reason != chain.ByMatchCondition && p.Result == answer {
				return false, p.Reason
			}
		}
	}
	for _, p := range all {
		if p.Result != chain.Holds {
			return false, p.Reason
		}
	}
	return true, chain.Matches
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
