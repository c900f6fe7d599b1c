// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const theDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","new":1},"spec":{"new":[1],"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"new":true,"metadata":{"labels":{"app":"web"}},"spec":{"new":{},"containers":[{"new":0,"name":"app","image":"app:1"}]}}}}`

func labelPod(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "seen", "pod")
	return nil
}

func labelDeployment(_ context.Context, req *webhook.Request[appsv1.Deployment]) error {
	metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "seen", "deployment")
	return nil
}

// anyKinds returns a hook without rules, which serves all requests of its kinds.
func anyKinds(handlers ...webhook.KindHandler) *webhook.Hook {
	return webhook.MutatingKinds(admissionregistrationv1.MutatingWebhook{Name: "kinds.example.com"}, handlers...)
}

func TestEachKindHasItsHandler(t *testing.T) {
	hook := anyKinds(webhook.On(labelPod), webhook.On(labelDeployment))
	pod := call{}
	_, got := ask(t, hook, pod).allowed(t, pod, true)
	wantJSON(t, got, strings.Replace(thePod, `"namespace":"shop"`, `"namespace":"shop","labels":{"seen":"pod"}`, 1))

	deployment := call{kind: "apps/v1/Deployment", resource: "apps/v1/deployments", object: theDeployment, operation: admissionv1.Create}
	_, got = ask(t, hook, deployment).allowed(t, deployment, true)
	wantJSON(t, got, strings.Replace(theDeployment, `"new":1}`, `"new":1,"labels":{"seen":"deployment"}}`, 1))

	status := ask(t, hook, call{kind: "/v1/Node", resource: "/v1/nodes", object: "{}", operation: admissionv1.Create}).failed(t)
	if contains(t, status.Message, "the hook handles kind Pod (v1) or Deployment (apps/v1), not kind Node (v1)"); status.Code != http.StatusBadRequest {
		t.Errorf("got code %d", status.Code)
	}
}

// TestKindAfterTheObject sends reviews in which the kind comes after the object, unlike in those of the API server. The
// hook must still choose the handler of that kind.
func TestKindAfterTheObject(t *testing.T) {
	hook := anyKinds(webhook.On(labelPod), webhook.On(labelDeployment))
	c := call{kind: "apps/v1/Deployment", resource: "apps/v1/deployments", object: theDeployment, operation: admissionv1.Create}
	body := string(c.body())
	kind := `"kind":{"group":"apps","version":"v1","kind":"Deployment"},`
	moved := strings.Replace(strings.Replace(body, kind, "", 1), `"options":null`, kind+`"options":null`, 1)
	other := `"kind":{"group":"","version":"v1","kind":"Pod"},`
	twice := strings.Replace(strings.Replace(body, kind, other, 1), `"options":null`, kind+`"options":null`, 1)
	for name, body := range map[string]string{"at the end": moved, "twice, the last counts": twice} {
		t.Run(name, func(t *testing.T) {
			_, got := post(t, hook, "", "application/json", bytes.NewReader([]byte(body))).allowed(t, c, true)
			contains(t, got, `"labels":{"seen":"deployment"}`)
		})
	}
	t.Run("an object that does not fit", func(t *testing.T) {
		bad := strings.Replace(moved, `"replicas":2`, `"replicas":"two"`, 1)
		status := post(t, hook, "", "application/json", bytes.NewReader([]byte(bad))).failed(t)
		contains(t, status.Message, "cannot decode object as v1.Deployment: spec.replicas")
	})
}

func TestHandlersOfKindsAreChecked(t *testing.T) {
	pods, deployments := webhook.On(labelPod), webhook.On(labelDeployment)
	projection := webhook.On(func(context.Context, *webhook.Request[podImages]) error { return nil })
	events := webhook.On(func(context.Context, *webhook.Request[corev1.Event]) error { return nil })
	newEvents := webhook.On(func(context.Context, *webhook.Request[eventsv1.Event]) error { return nil })
	scale := webhook.On(func(context.Context, *webhook.Request[autoscalingv1.Scale]) error { return nil })
	for _, in := range []struct {
		reason   string
		rules    []admissionregistrationv1.RuleWithOperations
		handlers []webhook.KindHandler
		err      string // empty: none
	}{
		{reason: "rules and handlers fit", rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"), webhook.OnCreate("apps", "v1", "deployments")), handlers: []webhook.KindHandler{pods, deployments}},
		{reason: "a wildcard covers resources without a handler", rules: everything, handlers: []webhook.KindHandler{pods, deployments},
			err: `rules[0].resources[0]: Invalid value: "*/*": the handlers take "pods", "deployments": every call for another resource would fail`},
		{reason: "a wildcard in a group", rules: webhook.Rules(webhook.OnWrite("apps", "v1", "*"), webhook.OnCreate("", "v1", "pods")), handlers: []webhook.KindHandler{pods, deployments}, err: `Invalid value: "*"`},
		{reason: "all subresources", rules: webhook.Rules(webhook.OnWrite("", "v1", "pods/*"), webhook.OnCreate("apps", "v1", "deployments")), handlers: []webhook.KindHandler{pods, deployments}, err: `Invalid value: "pods/*"`},
		{reason: "a subresource of another kind", rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"), webhook.OnWrite("apps", "v1", "deployments", "deployments/scale")), handlers: []webhook.KindHandler{pods, deployments}, err: `Invalid value: "deployments/scale"`},
		{reason: "a subresource of the same kind", rules: webhook.Rules(webhook.OnUpdate("", "v1", "pods", "pods/ephemeralcontainers"), webhook.OnCreate("apps", "v1", "deployments")), handlers: []webhook.KindHandler{pods, deployments}},
		{reason: "another group", rules: webhook.Rules(webhook.OnCreate("", "v1", "pods", "deployments")), handlers: []webhook.KindHandler{pods, deployments},
			err: `no rule covers "deployments"`},
		{reason: "another version", rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"), webhook.OnCreate("apps", "v1beta1", "deployments")), handlers: []webhook.KindHandler{pods, deployments}, err: `no rule covers "deployments"`},
		{reason: "only a subresource of another kind", rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"), webhook.OnUpdate("apps", "v1", "deployments/scale")), handlers: []webhook.KindHandler{pods, deployments, scale}, err: `no rule covers "deployments"`},
		{reason: "one kind name in two groups", rules: webhook.Rules(webhook.OnCreate("", "v1", "events"), webhook.OnCreate("events.k8s.io", "v1", "events")), handlers: []webhook.KindHandler{events, newEvents}},
		{reason: "no rules", rules: nil, handlers: []webhook.KindHandler{pods}, err: "a hook without rules is never called"},
		{reason: "a subresource may have another kind", rules: webhook.Rules(webhook.OnUpdate("apps", "v1", "deployments", "deployments/scale")), handlers: []webhook.KindHandler{deployments, scale}},
		{reason: "a handler that no rule covers", rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")), handlers: []webhook.KindHandler{pods, deployments},
			err: `mutating[kinds.example.com].rules: Invalid value: ["pods"]: no rule covers "deployments": the handler for a v1.Deployment would never be called`},
		{reason: "a rule without a handler", rules: webhook.Rules(webhook.OnCreate("", "v1", "pods", "services"), webhook.OnCreate("apps", "v1", "deployments")), handlers: []webhook.KindHandler{pods, deployments},
			err: `rules[0].resources[1]: Invalid value: "services": the handlers take "pods", "deployments": every call for another resource would fail`},
		{reason: "two handlers of one kind", handlers: []webhook.KindHandler{pods, deployments, pods},
			err: "the handlers for v1.Pod and v1.Pod both get kind Pod (v1)"},
		{reason: "a projection without kinds", rules: everything, handlers: []webhook.KindHandler{pods, projection},
			err: "webhook_test.podImages can hold every kind; name its kinds with KindHandler.WithKinds"},
		{reason: "a projection with kinds", rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"), webhook.OnCreate("apps", "v1", "deployments")), handlers: []webhook.KindHandler{pods, projection.WithKinds(gvk("apps/v1/Deployment"))}},
		{reason: "no handler", rules: everything, err: "has no handler"},
		{reason: "a nil handler", rules: everything, handlers: []webhook.KindHandler{webhook.On[corev1.Pod](nil)}, err: "has no handler for v1.Pod"},
		{reason: "the zero value", rules: everything, handlers: []webhook.KindHandler{{}}, err: "a KindHandler is empty; create it with On"},
	} {
		row(t, in.reason, func(t *testing.T) {
			err := webhook.MutatingKinds(admissionregistrationv1.MutatingWebhook{Name: "kinds.example.com", Rules: in.rules}, in.handlers...).Check()
			switch {
			case in.err == "" && err != nil:
				t.Error(err)
			case in.err != "" && err == nil:
				t.Error("got no error")
			case in.err != "":
				contains(t, err.Error(), in.err)
			}
		})
	}
	t.Run("Hook.WithKinds", func(t *testing.T) {
		err := anyKinds(pods, deployments).WithKinds(gvk("/v1/Pod")).Check()
		if err == nil {
			t.Fatal("got no error")
		}
		contains(t, err.Error(), "name kinds with KindHandler.WithKinds")
	})
}

// TestInvalidHandlersOfKindsFailCalls calls hooks without a valid handler. The calls must fail.
func TestInvalidHandlersOfKindsFailCalls(t *testing.T) {
	for _, handlers := range [][]webhook.KindHandler{nil, {{}}, {webhook.On[corev1.Pod](nil)}} {
		if status := ask(t, anyKinds(handlers...), call{}).failed(t); status.Code != http.StatusInternalServerError {
			t.Errorf("%d handlers: got %d", len(handlers), status.Code)
		}
	}
}

func contains(t *testing.T, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("\n got %s\nwant ...%s...", got, part)
	}
}
