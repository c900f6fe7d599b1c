// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A comparison says which of admitkit and the API server rejects a registration. It is a part of the spec's text.
type comparison string

const (
	accepted     comparison = "are accepted, as the API server accepts them"
	refused      comparison = "are refused, as the API server refuses them"
	inOtherWords comparison = "are refused, as the API server refuses them, with another message"
	stricter     comparison = "are refused, although the API server accepts them"
	corrected    comparison = "are completed or corrected, although the API server refuses them"
	left         comparison = "are accepted, although the API server refuses them"
)

// A rule is a change to a valid registration, with the expected comparison.
type rule struct {
	name string
	want comparison
	edit change
}

type change = func(*admissionregistrationv1.ValidatingWebhook)

// goodRegistration returns a registration in which all fields without a default are set. So the API server and admitkit
// check the same object.
func goodRegistration() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    "judged.example.com",
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:9443/hook")},
		Rules:                   webhook.Rules(webhook.OnWrite("", "v1", "configmaps")),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func named(name string) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) { w.Name = name }
}

func ruled(edit func(*admissionregistrationv1.RuleWithOperations)) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) { edit(&w.Rules[0]) }
}

func operations(ops ...admissionregistrationv1.OperationType) change {
	return ruled(func(r *admissionregistrationv1.RuleWithOperations) { r.Operations = ops })
}

func groups(groups ...string) change {
	return ruled(func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = groups })
}

func versions(versions ...string) change {
	return ruled(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = versions })
}

func resources(resources ...string) change {
	return ruled(func(r *admissionregistrationv1.RuleWithOperations) { r.Resources = resources })
}

func scope(scope admissionregistrationv1.ScopeType) change {
	return ruled(func(r *admissionregistrationv1.RuleWithOperations) { r.Scope = &scope })
}

func reviews(versions ...string) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) { w.AdmissionReviewVersions = versions }
}

func failurePolicy(p admissionregistrationv1.FailurePolicyType) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) { w.FailurePolicy = &p }
}

func matchPolicy(p admissionregistrationv1.MatchPolicyType) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) { w.MatchPolicy = &p }
}

func sideEffects(c admissionregistrationv1.SideEffectClass) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) { w.SideEffects = &c }
}

func timeoutSeconds(s int32) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) { w.TimeoutSeconds = &s }
}

// selectors returns a change that sets namespaceSelector and objectSelector to the same selector. Both follow the same
// rules.
func selectors(requirements ...metav1.LabelSelectorRequirement) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: requirements}
		w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: requirements}
	}
}

func labels(key, value string) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

// conditions returns a change that sets the matchConditions. Its arguments are pairs of a name and an expression.
func conditions(pairs ...string) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.MatchConditions = []admissionregistrationv1.MatchCondition{}
		for i := 0; i < len(pairs); i += 2 {
			w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: pairs[i], Expression: pairs[i+1]})
		}
	}
}

func numberedConditions(n int) change {
	var pairs []string
	for i := range n {
		pairs = append(pairs, fmt.Sprint("condition-", i), "true")
	}
	return conditions(pairs...)
}

func atURL(url string) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.URL = &url }
}

func atService(edit func(*admissionregistrationv1.ServiceReference)) change {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.ClientConfig.URL = nil
		w.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hooks", Path: new("/hook")}
		edit(w.ClientConfig.Service)
	}
}

func atPath(path string) change {
	return atService(func(s *admissionregistrationv1.ServiceReference) { s.Path = &path })
}

func atPort(port int32) change {
	return atService(func(s *admissionregistrationv1.ServiceReference) { s.Port = &port })
}

const (
	createOp = admissionregistrationv1.Create
	allOps   = admissionregistrationv1.OperationAll
)

var rules = []rule{
	{"one that is complete", accepted, func(*admissionregistrationv1.ValidatingWebhook) {}},

	{"a name of three parts", accepted, named("a.b.c")},
	{"a name of many parts with digits and hyphens", accepted, named("0-pods.9.team-red.example.com")},
	{"no name", refused, named("")},
	{"a name of one part", refused, named("judged")},
	{"a name of two parts", refused, named("judged.example")},
	{"a name in upper case", refused, named("Judged.example.com")},
	{"a name with an underscore", refused, named("jud_ged.example.com")},
	{"a name with a trailing dot", refused, named("judged.example.com.")},
	{"a name with an empty part", refused, named("judged..com")},
	{"a name with a hyphen in front", refused, named("-judged.example.com")},
	{"a name with a slash", refused, named("judged/x.example.com")},
	{"a name of 253 characters", accepted, named(strings.Repeat("a", 241) + ".example.com")},
	{"a name of 254 characters", refused, named(strings.Repeat("a", 242) + ".example.com")},

	{"no rules", stricter, func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = nil }},
	{"an empty list of rules", stricter, func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = webhook.Rules() }},
	{"a good rule and a bad one", refused, func(w *admissionregistrationv1.ValidatingWebhook) {
		w.Rules = append(w.Rules, webhook.OnCreate("", "", "pods"))
	}},
	{"every operation", accepted, operations("CREATE", "UPDATE", "DELETE", "CONNECT")},
	{"the wildcard for operations", accepted, operations(allOps)},
	{"an operation twice", accepted, operations(createOp, createOp)},
	{"no operations", refused, operations()},
	{"the wildcard and an operation", refused, operations(allOps, createOp)},
	{"an operation and the wildcard", refused, operations(createOp, allOps)},
	{"an operation in lower case", refused, operations("create")},
	{"PATCH, which is UPDATE", refused, operations("PATCH")},
	{"an empty operation", refused, operations("")},

	{"the core group", accepted, groups("")},
	{"the core group and another", accepted, groups("", "apps")},
	{"the wildcard for groups", accepted, groups("*")},
	{"no groups", refused, groups()},
	{"the wildcard and a group", refused, groups("*", "apps")},
	{"the wildcard for versions", accepted, versions("*")},
	{"two versions", accepted, versions("v1", "v1beta1")},
	{"no versions", refused, versions()},
	{"an empty version", refused, versions("")},
	{"the wildcard and a version", refused, versions("*", "v1")},

	{"a resource and its subresource", accepted, resources("pods", "pods/status")},
	{"all resources", accepted, resources("*")},
	{"all resources and one subresource", accepted, resources("*", "pods/status")},
	{"all resources, and one subresource of all", accepted, resources("*", "*/status")},
	{"all subresources of a resource, and itself", accepted, resources("pods/*", "pods")},
	{"all subresources of a resource, and one subresource of all", accepted, resources("pods/*", "*/status")},
	{"everything", accepted, resources("*/*")},
	{"a resource twice", accepted, resources("pods", "pods")},
	{"all resources twice", accepted, resources("*", "*")},
	{"no resources", refused, resources()},
	{"an empty resource", refused, resources("pods", "")},
	{"everything and a resource", refused, resources("*/*", "pods")},
	{"a resource and everything", refused, resources("pods", "*/*")},
	{"everything twice", refused, resources("*/*", "*/*")},
	{"all resources and then one", refused, resources("*", "pods")},
	{"one resource and then all", stricter, resources("pods", "*")},
	{"all subresources and then one", refused, resources("pods/*", "pods/status")},
	{"one subresource and then all", stricter, resources("pods/status", "pods/*")},
	{"all subresources of a resource twice", refused, resources("pods/*", "pods/*")},
	{"a subresource of all resources and then of one", refused, resources("*/status", "pods/status")},
	{"a subresource of one resource and then of all", stricter, resources("pods/status", "*/status")},
	{"a subresource of all resources twice", refused, resources("*/status", "*/status")},

	{"the scope of namespaces", accepted, scope("Namespaced")},
	{"the scope of the cluster", accepted, scope("Cluster")},
	{"every scope", accepted, scope("*")},
	{"a scope in lower case", refused, scope("namespaced")},
	{"an empty scope", refused, scope("")},

	{"failurePolicy Ignore", accepted, failurePolicy("Ignore")},
	{"failurePolicy Fail", accepted, failurePolicy("Fail")},
	{"another failurePolicy", refused, failurePolicy("Warn")},
	{"an empty failurePolicy", refused, failurePolicy("")},
	{"matchPolicy Exact", accepted, matchPolicy("Exact")},
	{"matchPolicy Equivalent", accepted, matchPolicy("Equivalent")},
	{"another matchPolicy", refused, matchPolicy("exact")},
	{"sideEffects None", accepted, sideEffects("None")},
	{"sideEffects NoneOnDryRun", accepted, sideEffects("NoneOnDryRun")},
	{"sideEffects Some", refused, sideEffects("Some")},
	{"sideEffects Unknown", refused, sideEffects("Unknown")},
	{"sideEffects not set", corrected, func(w *admissionregistrationv1.ValidatingWebhook) { w.SideEffects = nil }},
	{"a timeout of 1 second", accepted, timeoutSeconds(1)},
	{"a timeout of 30 seconds", accepted, timeoutSeconds(30)},
	{"a timeout of 0 seconds", refused, timeoutSeconds(0)},
	{"a timeout of 31 seconds", refused, timeoutSeconds(31)},
	{"a timeout of -1 seconds", refused, timeoutSeconds(-1)},

	{"selectors of a label", accepted, labels("example.com/owner", "red")},
	{"selectors of a bad key", refused, labels("example.com/owner/x", "red")},
	{"selectors of a bad value", refused, labels("owner", "red and blue")},
	{"selectors of nothing", accepted, selectors()},
	{"selectors of every operator", accepted, selectors(
		metav1.LabelSelectorRequirement{Key: "a", Operator: "In", Values: []string{"b"}},
		metav1.LabelSelectorRequirement{Key: "a", Operator: "NotIn", Values: []string{"b", "c"}},
		metav1.LabelSelectorRequirement{Key: "a", Operator: "Exists"},
		metav1.LabelSelectorRequirement{Key: "a", Operator: "DoesNotExist"},
	)},
	{"selectors with In and no values", refused, selectors(metav1.LabelSelectorRequirement{Key: "a", Operator: "In"})},
	{"selectors with Exists and values", refused, selectors(metav1.LabelSelectorRequirement{Key: "a", Operator: "Exists", Values: []string{"b"}})},
	{"selectors with an unknown operator", refused, selectors(metav1.LabelSelectorRequirement{Key: "a", Operator: "Gt", Values: []string{"1"}})},
	{"selectors with a bad value in a list", refused, selectors(metav1.LabelSelectorRequirement{Key: "a", Operator: "In", Values: []string{"b c"}})},
	{"selectors without a key", refused, selectors(metav1.LabelSelectorRequirement{Operator: "Exists"})},

	{"both review versions", accepted, reviews("v1", "v1beta1")},
	{"the older review version", accepted, reviews("v1beta1")},
	{"a review version of the future as well", accepted, reviews("v2", "v1")},
	{"review versions not set", corrected, reviews()},
	{"an empty list of review versions", refused, reviews([]string{}...)},
	{"only a review version of the future", refused, reviews("v2")},
	{"a review version twice", refused, reviews("v1", "v1")},
	{"a review version in upper case", refused, reviews("v1", "V1")},
	{"a review version that is no label", refused, reviews("v1", "1v")},
	{"an empty review version", refused, reviews("v1", "")},

	{"an empty list of matchConditions", accepted, conditions()},
	{"a matchCondition", accepted, conditions("not-system", "!request.userInfo.username.startsWith('system:')")},
	{"a matchCondition whose name has a prefix", accepted, conditions("example.com/Not_system.1", "true")},
	{"64 matchConditions", accepted, numberedConditions(64)},
	{"65 matchConditions", refused, numberedConditions(65)},
	{"two matchConditions of one name", refused, conditions("a", "true", "a", "false")},
	{"a matchCondition without a name", refused, conditions("", "true")},
	{"a matchCondition with a bad name", refused, conditions("not system", "true")},
	{"a matchCondition whose name has two prefixes", refused, conditions("a/b/c", "true")},
	{"a matchCondition without an expression", refused, conditions("a", "")},
	{"a matchCondition with a blank expression", refused, conditions("a", " \n\t")},
	{"a matchCondition that does not compile", left, conditions("a", "object.")},
	{"a matchCondition that is not a bool", left, conditions("a", "'true'")},
	{"a matchCondition with an unknown variable", left, conditions("a", "params.x == 1")},

	{"a URL with a path", accepted, atURL("https://webhook.example.com:8443/Team_1/%20/x")},
	{"a URL without a path", accepted, atURL("https://webhook.example.com")},
	{"a URL of an IPv6 address", accepted, atURL("https://[::1]:9443/")},
	{"a URL without TLS", refused, atURL("http://webhook.example.com/hook")},
	{"a URL without a scheme", refused, atURL("webhook.example.com/hook")},
	{"a URL without a host", refused, atURL("https:///hook")},
	{"a URL with user information", refused, atURL("https://user:password@webhook.example.com/hook")},
	{"a URL with a query", refused, atURL("https://webhook.example.com/hook?a=b")},
	{"a URL with a fragment", refused, atURL("https://webhook.example.com/hook#a")},
	{"a URL that is none", refused, atURL("https://[::1/hook")},
	{"a URL with a port that is none", refused, atURL("https://webhook.example.com:port/hook")},
	{"an empty URL", refused, atURL("")},
	{"a URL and a service", refused, func(w *admissionregistrationv1.ValidatingWebhook) {
		w.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hooks"}
	}},
	{"a caBundle that is none", stricter, func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = []byte("not PEM") }},

	{"a service", accepted, atService(func(*admissionregistrationv1.ServiceReference) {})},
	{"a service without a path", accepted, atService(func(s *admissionregistrationv1.ServiceReference) { s.Path = nil })},
	{"a service without a name", inOtherWords, atService(func(s *admissionregistrationv1.ServiceReference) { s.Name = "" })},
	{"a service without a namespace", inOtherWords, atService(func(s *admissionregistrationv1.ServiceReference) { s.Namespace = "" })},
	{"a service at port 1", accepted, atPort(1)},
	{"a service at port 65535", accepted, atPort(65535)},
	{"a service at port 0", refused, atPort(0)},
	{"a service at port 65536", refused, atPort(65536)},
	{"a service at port -1", refused, atPort(-1)},
	{"a service in a namespace that cannot be", stricter, atService(func(s *admissionregistrationv1.ServiceReference) { s.Namespace = "Red_Team" })},
	{"no client", inOtherWords, func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.URL = nil }},
	{"a service path of several segments", accepted, atPath("/a-1/b.c/d")},
	{"a service path with a trailing slash", accepted, atPath("/a/b/")},
	{"a service path of a slash", accepted, atPath("/")},
	{"an empty service path", accepted, atPath("")},
	{"a service path in upper case", refused, atPath("/Hook")},
	{"a service path with an underscore", refused, atPath("/a_b")},
	{"a service path with an escape", refused, atPath("/a%20b")},
	{"a service path that does not begin with a slash", corrected, atPath("hook")},
	{"a service path with an empty segment", corrected, atPath("/a//b")},
	{"a service path of two slashes", corrected, atPath("//")},
	{"a service path with dots", corrected, atPath("/a/./../b")},
}
