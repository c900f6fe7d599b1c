// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
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

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func condition(expression string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{Name: "c", Expression: expression}}
}

func TestMatching(t *testing.T) {
	type hook = admissionregistrationv1.ValidatingWebhook
	deletion := chain.Request{Operation: admissionv1.Delete, Resource: pods, OldObject: podJSON("web")}
	update := chain.Request{Operation: admissionv1.Update, Resource: pods, Object: podJSON("web"), OldObject: podJSON("web")}
	exec := chain.Request{Operation: admissionv1.Connect, Resource: pods, SubResource: "exec", Namespace: "default", Name: "web",
		Object: []byte(`{"apiVersion":"v1","kind":"PodExecOptions","command":["ls"]}`)}
	newNamespace := chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		Object: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team","labels":{"env":"prod"}}}`)}
	everything := func(h *hook) {
		h.Rules[0].Rule = admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}}
	}
	for _, test := range []struct {
		name     string
		edit     func(*hook)
		req      chain.Request
		options  chain.Options
		decision chain.Reason
		detail   string // a part of the detail
		code     int32  // of the rejection, or 0
		message  string // a part of the rejection's message
	}{
		{name: "create", req: createPod("web"), decision: chain.Matches, detail: "rules[0] is for CREATE of v1 pods"},
		{name: "update", req: update, decision: chain.Matches},
		{name: "delete", req: deletion, decision: chain.Matches},
		{name: "connect", req: exec, decision: chain.Matches},
		{name: "operation", req: deletion, decision: chain.ByRules, detail: "no rule is for DELETE of v1 pods",
			edit: func(h *hook) { h.Rules[0] = podRule(admissionregistrationv1.Create) }},
		{name: "subresource", req: exec, decision: chain.ByRules, edit: func(h *hook) { h.Rules[0].Resources = []string{"pods"} }},
		{name: "a/* is a too", req: createPod("web"), decision: chain.Matches, edit: func(h *hook) { h.Rules[0].Resources = []string{"pods/*"} }},
		{name: "scope", req: createPod("web"), decision: chain.ByRules,
			edit: func(h *hook) { h.Rules[0].Scope = ptr.To(admissionregistrationv1.ClusterScope) }},
		{name: "no rules", req: createPod("web"), decision: chain.ByRules, edit: func(h *hook) { h.Rules = nil }},
		{name: "namespaceSelector", req: createPod("web"), decision: chain.ByNamespaceSelector, detail: `namespace "default"`,
			edit: func(h *hook) { h.NamespaceSelector = selector("env", "prod") }},
		{name: "namespaces have their name", req: createPod("web"), decision: chain.Matches,
			edit: func(h *hook) { h.NamespaceSelector = selector("kubernetes.io/metadata.name", "default") }},
		{name: "namespace with labels", req: createPod("web"), decision: chain.Matches,
			options: chain.Options{Namespaces: map[string]map[string]string{"default": {"env": "prod"}}},
			edit:    func(h *hook) { h.NamespaceSelector = selector("env", "prod") }},
		{name: "missing namespace", req: createPod("web"), decision: chain.ByNamespaceSelector, code: 404, message: `namespaces "default" not found`,
			options: chain.Options{Namespaces: map[string]map[string]string{}},
			edit:    func(h *hook) { h.NamespaceSelector = selector("env", "prod") }},
		{name: "missing namespace that nobody asks for", req: createPod("web"), decision: chain.Matches,
			options: chain.Options{Namespaces: map[string]map[string]string{}}},
		{name: "new namespace's own labels", req: newNamespace, decision: chain.Matches,
			edit: func(h *hook) { everything(h); h.NamespaceSelector = selector("env", "prod") }},
		{name: "objectSelector", req: createPod("web"), decision: chain.ByObjectSelector,
			edit: func(h *hook) { h.ObjectSelector = selector("app", "db") }},
		{name: "objectSelector on the old object", req: deletion, decision: chain.Matches,
			edit: func(h *hook) { h.ObjectSelector = selector("app", "web") }},
		{name: "objectSelector on options", req: exec, decision: chain.ByObjectSelector,
			edit: func(h *hook) { h.ObjectSelector = selector("app", "web") }},
		{name: "condition true", req: createPod("web"), decision: chain.Matches,
			edit: func(h *hook) { h.MatchConditions = condition(`object.metadata.name == "web"`) }},
		{name: "condition false", req: createPod("web"), decision: chain.ByMatchCondition, detail: `condition "c" is false`,
			edit: func(h *hook) { h.MatchConditions = condition(`object.metadata.name == "db"`) }},
		{name: "condition error, Fail", req: createPod("web"), decision: chain.ByMatchCondition, code: 403, message: "no such key: nodeName",
			edit: func(h *hook) { h.MatchConditions = condition(`object.spec.nodeName == "n"`) }},
		{name: "condition error, Ignore", req: createPod("web"), decision: chain.ByMatchCondition, detail: "Ignore",
			edit: func(h *hook) {
				h.MatchConditions, h.FailurePolicy = condition(`object.spec.nodeName == "n"`), ptr.To(admissionregistrationv1.Ignore)
			}},
		{name: "condition on the request", req: createPod("web"), decision: chain.Matches,
			edit: func(h *hook) {
				h.MatchConditions = condition(`request.userInfo.username == "admin" && request.operation == "CREATE" && namespaceObject == null`)
			}},
		{name: "authorizer allows", req: createPod("web"), decision: chain.Matches,
			edit: func(h *hook) {
				h.MatchConditions = condition(`authorizer.group("").resource("pods").check("breakglass").allowed()`)
			}},
		{name: "authorizer does not", req: createPod("web"), decision: chain.ByMatchCondition,
			options: chain.Options{Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				return authorizer.DecisionDeny, "", nil
			})},
			edit: func(h *hook) {
				h.MatchConditions = condition(`authorizer.group("").resource("pods").check("breakglass").allowed()`)
			}},
		{name: "webhook configurations", decision: chain.ByResource, edit: everything, req: chain.Request{
			Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
			Object: []byte(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"m"}}`)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := validatingHook("a.example.com")
			if test.edit != nil {
				test.edit(&h)
			}
			// A mutating webhook with the same fields matches the same requests.
			m := mutatingHook("b.example.com", func(m *admissionregistrationv1.MutatingWebhook) {
				m.Rules, m.NamespaceSelector, m.ObjectSelector = h.Rules, h.NamespaceSelector, h.ObjectSelector
				m.MatchConditions, m.FailurePolicy = h.MatchConditions, h.FailurePolicy
			})
			handlers := map[string]http.Handler{"a.example.com": allowing(), "b.example.com": allowing()}
			for _, w := range []chain.Webhooks{
				{Validating: validating(h), Handlers: map[string]http.Handler{"a.example.com": allowing()}},
				{Mutating: mutating(m), Handlers: map[string]http.Handler{"b.example.com": allowing()}},
				{Validating: validating(h), Mutating: mutating(m), Handlers: handlers},
			} {
				got := admit(t, newChain(t, w, test.options), test.req)
				checkResult(t, got)
				if test.code == 0 != (got.Rejection == nil) {
					t.Fatalf("the rejection is %v", got.Rejection)
				}
				if r := got.Rejection; r != nil && (r.Code != test.code || !strings.Contains(r.Message, test.message)) {
					t.Errorf("the rejection is %d %s", r.Code, r.Message)
				}
				if v := got.Webhooks[0]; v.Reason != test.decision || !strings.Contains(v.Detail, test.detail) {
					t.Errorf("the verdict is %+v", v)
				}
			}
		})
	}
}

// The API server evaluates the selectors of a webhook on the object with the patches of the webhooks before it.
func TestVerdictsAfterPatches(t *testing.T) {
	labelled := func(h *admissionregistrationv1.MutatingWebhook) { h.ObjectSelector = selector("seen", "yes") }
	w := chain.Webhooks{
		Mutating: mutating(mutatingHook("a.example.com", labelled), mutatingHook("b.example.com"), mutatingHook("c.example.com", labelled),
			mutatingHook("d.example.com"), mutatingHook("e.example.com", labelled)),
		Validating: validating(validatingHook("f.example.com")),
		Handlers: map[string]http.Handler{
			"a.example.com": allowing(), "b.example.com": patching(addLabel("seen", "yes")), "c.example.com": allowing(),
			"d.example.com": denying("no"), "e.example.com": allowing(), "f.example.com": allowing(),
		},
	}
	got := admit(t, newChain(t, w), createPod("web"))
	checkResult(t, got)
	var decisions []chain.Reason
	for _, v := range got.Webhooks {
		decisions = append(decisions, v.Reason)
	}
	want := []chain.Reason{chain.ByObjectSelector, chain.Matches, chain.Matches, chain.Matches, chain.ByRejection, chain.ByRejection}
	for i := range want {
		if decisions[i] != want[i] {
			t.Errorf("the decisions are %v, want %v", decisions, want)
			break
		}
	}
	if trace(got) != "b0 c0 d0" || got.Calls[2].Effect != chain.Denied {
		t.Errorf("the calls are %s: %+v", trace(got), got.Calls[2])
	}
}

func TestUserIsSent(t *testing.T) {
	var seen authenticationv1.UserInfo
	w := chain.Webhooks{
		Validating: validating(validatingHook("a.example.com")),
		Handlers: map[string]http.Handler{"a.example.com": handlerFunc(func(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			seen = req.UserInfo
			return &admissionv1.AdmissionResponse{Allowed: true}
		})},
	}
	c := newChain(t, w)
	req := createPod("web")
	admit(t, c, req)
	if seen.Username != "admin" || strings.Join(seen.Groups, " ") != "system:masters system:authenticated" {
		t.Errorf("the user is %+v", seen)
	}
	req.User = authenticationv1.UserInfo{Username: "ada", UID: "1", Groups: []string{"devs"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
	admit(t, c, req)
	if seen.Username != "ada" || seen.UID != "1" || len(seen.Groups) != 1 || seen.Extra["k"][0] != "v" {
		t.Errorf("the user is %+v", seen)
	}
}
