// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// forAny returns a hook for T with these rules that admits every object.
func forAny[T any](rules ...admissionregistrationv1.RuleWithOperations) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "any.example.com", Rules: rules},
		func(context.Context, *webhook.Request[T]) error { return nil })
}

func TestATypeAcceptsOnlyItsKinds(t *testing.T) {
	every := everything[0]
	for _, in := range []struct {
		reason  string
		hook    *webhook.Hook
		kind    string
		refusal string // the error; empty if the hook accepts the kind
	}{
		{reason: "the kind is the name of the type, the version the end of its package", hook: forAny[corev1.Pod](every), kind: "/v1/Pod"},
		{reason: "another kind", hook: forAny[corev1.Pod](every), kind: "/v1/Node", refusal: "the hook handles kind Pod (v1), not kind Node (v1)"},
		{reason: "another version", hook: forAny[autoscalingv2.HorizontalPodAutoscaler](every), kind: "autoscaling/v1/HorizontalPodAutoscaler",
			refusal: "the hook handles kind HorizontalPodAutoscaler (v2), not kind HorizontalPodAutoscaler (autoscaling/v1)"},
		{reason: "a package cannot tell the group", hook: forAny[autoscalingv1.HorizontalPodAutoscaler](every), kind: "example.com/v1/HorizontalPodAutoscaler"},
		{reason: "no kind at all", hook: forAny[appsv1.Deployment](every), kind: "//", refusal: `the hook handles kind Deployment (v1), not kind ""`},
		{reason: "a package without a version takes any", hook: forAny[Widget](every), kind: "example.com/v7/Widget"},
		{reason: "but only its kind", hook: forAny[Widget](every), kind: "example.com/v7/Gadget", refusal: "the hook handles kind Widget, not kind Gadget (example.com/v7)"},
		{reason: "a projection takes any kind", hook: forAny[podImages](every), kind: "apps/v1/Deployment"},
		{reason: "so does unstructured", hook: forAny[unstructured.Unstructured](every), kind: "apps/v1/Deployment"},
		{reason: "and the metadata alone", hook: forAny[metav1.PartialObjectMetadata](every), kind: "apps/v1/Deployment"},
		{reason: "and a type that is part of others", hook: forAny[corev1.PodTemplateSpec](every), kind: "/v1/PodTemplate"},
		{reason: "WithKinds narrows a projection", hook: forAny[podImages](every).WithKinds(gvk("/v1/Pod"), gvk("apps/*/Deployment")), kind: "apps/v1beta1/Deployment"},
		{reason: "and names all it takes", hook: forAny[podImages](every).WithKinds(gvk("/v1/Pod"), gvk("apps/v1/Deployment")), kind: "apps/v1/DaemonSet",
			refusal: "the hook handles kind Pod (v1) or Deployment (apps/v1), not kind DaemonSet (apps/v1)"},
		{reason: "WithKinds stands in for the convention", hook: forAny[Widget](every).WithKinds(gvk("example.com/v1/OldWidget")), kind: "example.com/v1/OldWidget"},
		{reason: "any group", hook: forAny[podImages](every).WithKinds(gvk("*/v1/Pod")), kind: "example.com/v1/Pod"},
	} {
		row(t, in.reason, func(t *testing.T) {
			c := call{kind: in.kind}
			a := ask(t, in.hook, c)
			if in.refusal == "" {
				a.allowed(t, c, false)
				return
			}
			status := a.failed(t)
			if want(t, status.Message, in.refusal); status.Code != http.StatusBadRequest {
				t.Errorf("got code %d", status.Code)
			}
		})
	}
}

func gvk(text string) metav1.GroupVersionKind {
	p := split(text)
	return metav1.GroupVersionKind{Group: p[0], Version: p[1], Kind: p[2]}
}

func TestWithKindsDoesNotChangeTheHookItIsCalledOn(t *testing.T) {
	hook := forAny[podImages](everything...)
	kinds := []metav1.GroupVersionKind{gvk("/v1/Pod")}
	narrowed := hook.WithKinds(kinds...)
	kinds[0].Kind = "Node"
	deployment := call{kind: "apps/v1/Deployment"}
	ask(t, hook, deployment).allowed(t, deployment, false)
	ask(t, narrowed, call{}).allowed(t, call{}, false)
	ask(t, narrowed, deployment).failed(t)
}

// TestRulesMatchLikeTheAPIServer sends every request in a table to a hook with every rule. The hook must accept exactly
// the requests that the API server's own matcher matches with the rule.
func TestRulesMatchLikeTheAPIServer(t *testing.T) {
	operations := []admissionregistrationv1.OperationType{"*", "CREATE", "UPDATE", "DELETE", "CONNECT"}
	groups, versions := []string{"*", "", "apps"}, []string{"*", "v1", "v2"}
	resources := []string{"*", "*/*", "pods", "pods/*", "pods/status", "*/status", "*/scale", "nodes"}
	requests := []string{"pods", "pods/status", "pods/exec", "nodes", "nodes/status", "deployments/scale"}
	matched := map[bool]int{}
	for _, operation := range operations {
		for _, group := range groups {
			for _, version := range versions {
				for _, resource := range resources {
					rule := admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{operation},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
					}
					hook := forAny[unstructured.Unstructured](rule)
					for _, request := range requests {
						for _, op := range []admissionv1.Operation{admissionv1.Create, admissionv1.Delete} {
							name, sub, _ := strings.Cut(request, "/")
							c := call{operation: op, object: thePod, resource: "apps/v1/" + name, sub: sub}
							gvr := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}
							matcher := rules.Matcher{Rule: rule, Attr: admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "shop", "web", gvr, sub,
								admission.Operation(op), nil, false, nil)}
							wanted := matcher.Matches()
							if a := ask(t, hook, c); (a.code == http.StatusOK) != wanted || !wanted && a.failed(t).Code != http.StatusBadRequest {
								t.Errorf("%s of %s by %+v: got %d, the API server's matcher says %t", op, request, rule, a.code, wanted)
							}
							matched[wanted]++
						}
					}
				}
			}
		}
	}
	if matched[true] < 100 || matched[false] < 100 {
		t.Errorf("one-sided: %v", matched)
	}
}

func TestErrorAboutRulesListsTheRules(t *testing.T) {
	hook := forAny[unstructured.Unstructured](webhook.OnWrite("apps", "v1", "deployments", "daemonsets"), webhook.OnDelete("", "v1", "pods"))
	const rules = `its rules are [CREATE UPDATE] of ["deployments" "daemonsets"] in groups ["apps"] versions ["v1"]; [DELETE] of ["pods"] in groups [""] versions ["v1"]`
	for c, subject := range map[call]string{
		{}: "CREATE of pods (v1) (kind Pod (v1))",
		{operation: admissionv1.Update, object: "{}", kind: "autoscaling/v1/Scale", resource: "apps/v1/deployments", sub: "scale"}: "UPDATE of deployments/scale.apps (v1) (kind Scale (autoscaling/v1))",
	} {
		want(t, ask(t, hook, c).failed(t).Message, fmt.Sprintf("no rule of the hook covers %s; %s", subject, rules))
	}
}

func TestRulesMustFitABuiltInType(t *testing.T) {
	for _, in := range []struct {
		reason string
		hook   *webhook.Hook
		faults []string
	}{
		{reason: "its resource", hook: forAny[corev1.Pod](webhook.OnCreate("", "v1", "pods"))},
		{reason: "all resources", hook: forAny[corev1.Pod](webhook.OnCreate("*", "*", "*"))},
		{reason: "a subresource has its own kind, or the same", hook: forAny[corev1.Pod](webhook.OnCreate("", "v1", "pods/status", "nodes/*"))},
		{reason: "an irregular plural", hook: forAny[corev1.Endpoints](webhook.OnCreate("", "v1", "endpoints"))}, //nolint:staticcheck // still served
		{reason: "a type that is not built in", hook: forAny[Widget](webhook.OnCreate("example.com", "v1", "whatever"))},
		{reason: "a part of others", hook: forAny[corev1.PodTemplateSpec](webhook.OnCreate("", "v1", "pods"))},
		{reason: "any object", hook: forAny[unstructured.Unstructured](webhook.OnCreate("", "v1", "pods"))},
		{reason: "WithKinds says otherwise", hook: forAny[corev1.Pod](webhook.OnCreate("example.com", "v1", "cells")).WithKinds(gvk("example.com/v1/Cell"))},
		{reason: "the resource of another kind", hook: forAny[corev1.ConfigMap](webhook.OnCreate("", "v1", "configmaps", "pods")), faults: []string{
			`validating[any.example.com].rules[0].resources[1]: Invalid value: "pods": the handler takes a v1.ConfigMap, whose resource is "configmaps": every call for another resource would fail`}},
		{reason: "a version that may not be served at all", hook: forAny[autoscalingv2.HorizontalPodAutoscaler](webhook.OnCreate("autoscaling", "v2beta2", "horizontalpodautoscalers"))},
	} {
		row(t, in.reason, func(t *testing.T) {
			err := in.hook.Check()
			if len(in.faults) == 0 && err != nil {
				t.Errorf("got %v", err)
			}
			for _, fault := range in.faults {
				if err == nil || !strings.Contains(err.Error(), fault) {
					t.Errorf("got %v, want %s", err, fault)
				}
			}
		})
	}
}
