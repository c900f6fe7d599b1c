// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

type registration = admissionregistrationv1.MutatingWebhook

func service(namespace, name, path string, port int32) admissionregistrationv1.WebhookClientConfig {
	s := &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name}
	if path != "" {
		s.Path = &path
	}
	if port != 0 {
		s.Port = &port
	}
	return admissionregistrationv1.WebhookClientConfig{Service: s}
}

func at(url string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: &url}
}

const (
	aSubdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	aLabel     = `a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`
	aName      = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
)

// refusedRegistrations are registrations that the API server would refuse, with their errors. The path of each error
// begins with mutating[pods.example.com].
var refusedRegistrations = []struct {
	reason string
	change func(*registration)
	want   string
}{
	{"names have three parts", func(r *registration) { r.Name = "pods.example" }, `name: Invalid value: "pods.example": should be a domain with at least three segments separated by dots`},
	{"names are subdomains", func(r *registration) { r.Name = "Pods.example.com" }, `name: Invalid value: "Pods.example.com": ` + aSubdomain},
	{"names are required", func(r *registration) { r.Name = "" }, `name: Required value`},
	{"without rules it is never called", func(r *registration) { r.Rules = nil }, `rules: Required value: a hook without rules is never called`},
	{"operations are required", func(r *registration) { r.Rules[0].Operations = nil }, `rules[0].operations: Required value`},
	{"an unknown operation", func(r *registration) { r.Rules[0].Operations = ops("CREATE", "PATCH") },
		`rules[0].operations[1]: Unsupported value: "PATCH": supported values: "CREATE", "UPDATE", "DELETE", "CONNECT", "*"`},
	{"the operation wildcard stands alone", func(r *registration) { r.Rules[0].Operations = ops("*", "CREATE") },
		`rules[0].operations: Invalid value: ["*","CREATE"]: if "*" is present, it must be the only value`},
	{"groups are required", func(r *registration) { r.Rules[0].APIGroups = nil }, `rules[0].apiGroups: Required value`},
	{"the group wildcard stands alone", func(r *registration) { r.Rules[0].APIGroups = []string{"", "*"} },
		`rules[0].apiGroups: Invalid value: ["","*"]: if "*" is present, it must be the only value`},
	{"versions are required", func(r *registration) { r.Rules[0].APIVersions = nil }, `rules[0].apiVersions: Required value`},
	{"versions are not empty", func(r *registration) { r.Rules[0].APIVersions = []string{"v1", ""} }, `rules[0].apiVersions[1]: Required value`},
	{"the version wildcard stands alone", func(r *registration) { r.Rules[0].APIVersions = []string{"v1", "*"} },
		`rules[0].apiVersions: Invalid value: ["v1","*"]: if "*" is present, it must be the only value`},
	{"resources are required", func(r *registration) { r.Rules[0].Resources = nil }, `rules[0].resources: Required value`},
	{"resources are not empty", resources("pods", ""), `rules[0].resources[1]: Required value`},
	{"the wildcard for everything stands alone", resources("*/*", "pods"), `rules[0].resources: Invalid value: ["*/*","pods"]: if "*/*" is present, it must be the only value`},
	{"the wildcard covers a plain name", resources("*", "pods"), `rules[0].resources[1]: Invalid value: "pods": "*" already covers it`},
	{"in any order", resources("pods", "*"), `rules[0].resources[0]: Invalid value: "pods": "*" already covers it`},
	{"all subresources cover one", resources("pods/*", "pods/status"), `rules[0].resources[1]: Invalid value: "pods/status": "pods/*" already covers it`},
	{"in any order too", resources("pods/status", "pods/*"), `rules[0].resources[0]: Invalid value: "pods/status": "pods/*" already covers it`},
	{"one subresource of all covers one", resources("*/scale", "pods/scale"), `rules[0].resources[1]: Invalid value: "pods/scale": "*/scale" already covers it`},
	{"a wildcard given twice", resources("pods/*", "pods/*"), `rules[0].resources[1]: Duplicate value: "pods/*"`},
	{"an unknown scope", func(r *registration) { r.Rules[0].Scope = new(admissionregistrationv1.ScopeType("All")) },
		`rules[0].scope: Unsupported value: "All": supported values: "Cluster", "Namespaced", "*"`},
	{"an unknown failurePolicy", func(r *registration) { r.FailurePolicy = new(admissionregistrationv1.FailurePolicyType("Warn")) },
		`failurePolicy: Unsupported value: "Warn": supported values: "Fail", "Ignore"`},
	{"an unknown matchPolicy", func(r *registration) { r.MatchPolicy = new(admissionregistrationv1.MatchPolicyType("Some")) },
		`matchPolicy: Unsupported value: "Some": supported values: "Exact", "Equivalent"`},
	{"an unknown reinvocationPolicy", func(r *registration) {
		r.ReinvocationPolicy = new(admissionregistrationv1.ReinvocationPolicyType("Always"))
	},
		`reinvocationPolicy: Unsupported value: "Always": supported values: "Never", "IfNeeded"`},
	{"side effects that v1 does not allow", func(r *registration) { r.SideEffects = new(admissionregistrationv1.SideEffectClassSome) },
		`sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`},
	{"no time at all", func(r *registration) { r.TimeoutSeconds = new(int32(0)) }, `timeoutSeconds: Invalid value: 0: must be between 1 and 30`},
	{"too much time", func(r *registration) { r.TimeoutSeconds = new(int32(31)) }, `timeoutSeconds: Invalid value: 31: must be between 1 and 30`},
	{"a selector without its values", func(r *registration) {
		r.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}}
	}, "namespaceSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
	{"a selector with a bad label", func(r *registration) {
		r.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}
	},
		`objectSelector.matchLabels: Invalid value: "-": ` + aName},
	{"no review version", func(r *registration) { r.AdmissionReviewVersions = []string{} }, `admissionReviewVersions: Required value: must name v1 or v1beta1`},
	{"no review version that is known", func(r *registration) { r.AdmissionReviewVersions = []string{"v2"} },
		`admissionReviewVersions: Invalid value: ["v2"]: must include v1 or v1beta1`},
	{"a review version twice", func(r *registration) { r.AdmissionReviewVersions = []string{"v1", "v1"} }, `admissionReviewVersions[1]: Duplicate value: "v1"`},
	{"a review version that is not a label", func(r *registration) { r.AdmissionReviewVersions = []string{"v1", "V2"} },
		`admissionReviewVersions[1]: Invalid value: "V2": ` + aLabel},
	{"a condition without a name", conditions("", "true"), `matchConditions[0].name: Required value`},
	{"a condition without an expression", conditions("a", " "), `matchConditions[0].expression: Required value`},
	{"conditions with one name", conditions("a", "true", "a", "false"), `matchConditions[1].name: Duplicate value: "a"`},
	{"a condition with a bad name", conditions("a b", "true"), `matchConditions[0].name: Invalid value: "a b": ` + aName},
	{"too many conditions", func(r *registration) {
		for i := range 65 {
			conditions(fmt.Sprint("c", i), "true")(r)
		}
	}, `matchConditions: Too many: 65: must have at most 64 items`},
	{"a URL and a service", client(admissionregistrationv1.WebhookClientConfig{URL: new("https://x"), Service: &admissionregistrationv1.ServiceReference{}}),
		`clientConfig: Invalid value: "url and service": exactly one of url and service may be set`},
	{"a URL without TLS", client(at("http://x")), `clientConfig.url: Invalid value: "http://x": must begin with https://`},
	{"a URL without a host", client(at("https:///p")), `clientConfig.url: Invalid value: "https:///p": must name a host`},
	{"a URL with a user", client(at("https://me@x")), `clientConfig.url: Invalid value: "https://me@x": must not hold user information`},
	{"a URL with a query", client(at("https://x?a=b")), `clientConfig.url: Invalid value: "https://x?a=b": must not have a query`},
	{"a URL with a fragment", client(at("https://x#a")), `clientConfig.url: Invalid value: "https://x#a": must not have a fragment`},
	{"an invalid URL", client(at("https://x:y")), `clientConfig.url: Required value: url must be a valid URL: parse "https://x:y": invalid port ":y" after host`},
	{"a service path in upper case", client(service("n", "s", "/Mutate", 0)), `clientConfig.service.path: Invalid value: "/Mutate": segment "Mutate": ` + aSubdomain},
	{"a port out of range", client(service("n", "s", "/m", 70000)), `clientConfig.service.port: Invalid value: 70000: must be between 1 and 65535, inclusive`},
}

func ops(o ...admissionregistrationv1.OperationType) []admissionregistrationv1.OperationType {
	return o
}

func resources(names ...string) func(*registration) {
	return func(r *registration) { r.Rules[0].Resources = names }
}

func conditions(pairs ...string) func(*registration) {
	return func(r *registration) {
		for i := 0; i < len(pairs); i += 2 {
			r.MatchConditions = append(r.MatchConditions, admissionregistrationv1.MatchCondition{Name: pairs[i], Expression: pairs[i+1]})
		}
	}
}

func client(c admissionregistrationv1.WebhookClientConfig) func(*registration) {
	return func(r *registration) { r.ClientConfig = c }
}

func mutatingFor(change func(*registration)) *webhook.Hook {
	reg := registration{Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))}
	change(&reg)
	return webhook.Mutating(reg, label)
}

// A mux is a minimal Registrar.
type mux map[string]http.Handler

func (m mux) Register(path string, handler http.Handler) { m[path] = handler }

// usedByCalls reports whether an error is about a field of the registration that each call uses.
func usedByCalls(err string) bool {
	return strings.HasPrefix(err, "rules[") || strings.HasPrefix(err, "timeoutSeconds") || strings.HasPrefix(err, "sideEffects")
}

func TestAMountedHookNeedsNoRegistration(t *testing.T) {
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{}, admit)
	ask(t, hook, call{}).allowed(t, call{}, false)
	want(t, ask(t, hook, call{kind: "/v1/Node"}).failed(t).Message, "the hook handles kind Pod (v1), not kind Node (v1)")
	_, _, confErr := webhook.Configurations(webhook.ConfigurationOptions{Name: "c", URL: "https://localhost"}, hook)
	for _, err := range []error{hook.Check(), confErr, webhook.NewServer(webhook.Options{}, hook).Start(t.Context()), webhook.Register(mux{}, hook)} {
		if !strings.Contains(fmt.Sprint(err), "validating[].rules: Required value") {
			t.Errorf("got %v", err)
		}
	}
}

func TestWithPath(t *testing.T) {
	const host = "https://localhost"
	for _, clientConfig := range []admissionregistrationv1.WebhookClientConfig{
		{}, at(host), at(host + "/other%2F"), service("n", "s", "/other", 0), service("n", "s", "", 0),
	} {
		original := mutatingFor(client(clientConfig))
		before, hook := original.Path(), original.WithPath("/pods/attach/")
		want(t, hook.Path(), "/pods/attach")
		want(t, original.Path(), before)
		mounted := mux{}
		if err := webhook.Register(mounted, hook); err != nil || mounted["/pods/attach"] == nil {
			t.Errorf("mounted at %v, %v", mounted, err)
		}
		c, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "c", URL: host}, hook)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Webhooks[0].ClientConfig; got.URL != nil {
			want(t, *got.URL, host+"/pods/attach")
		} else {
			want(t, *got.Service.Path, "/pods/attach")
		}
	}
}

func TestPathsThatWithPathRefuses(t *testing.T) {
	for path, problem := range map[string]string{
		"": "must start with a slash", "pods": "must start with a slash", "https://x/pods": "must start with a slash",
		"/pods?a=b": "must be only a path", "/pods?": "must be only a path", "/pods#a": "must be only a path",
		"//host/pods": "must be only a path", "/a%20b": "must be only a path", "/a\n": "must be only a path",
	} {
		hook := mutatingFor(func(*registration) {}).WithPath(path)
		problem = fmt.Sprintf("webhook pods.example.com: the path %q %s", path, problem)
		_, _, confErr := webhook.Configurations(webhook.ConfigurationOptions{Name: "c", URL: "https://localhost"}, hook)
		for _, err := range []error{hook.Check(), confErr, webhook.NewServer(webhook.Options{}, hook).Start(t.Context())} {
			if !strings.Contains(fmt.Sprint(err), problem) {
				t.Errorf("got %v, want %s", err, problem)
			}
		}
		if err := hook.WithPath("/good").Check(); err != nil {
			t.Errorf("a good path after %q: %v", path, err)
		}
	}
	upper := mutatingFor(func(*registration) {}).WithPath("/A_b")
	if err := upper.Check(); err != nil {
		t.Error(err)
	}
	_, _, err := webhook.Configurations(webhook.ConfigurationOptions{
		Name: "c", Service: &admissionregistrationv1.ServiceReference{Namespace: "n", Name: "s"},
	}, upper)
	want(t, fmt.Sprint(err), `mutating[pods.example.com].clientConfig.service.path: Invalid value: "/A_b": segment "A_b": `+aSubdomain)
}

func TestOnEverything(t *testing.T) {
	if got := webhook.Rules(webhook.OnEverything()); !reflect.DeepEqual(got, everything) {
		t.Errorf("got %+v, want %+v", got, everything)
	}
}

func TestRegistrationsTheAPIServerWouldRefuse(t *testing.T) {
	for _, in := range refusedRegistrations {
		row(t, in.reason, func(t *testing.T) {
			hook := mutatingFor(in.change)
			err := hook.Check()
			if err == nil {
				t.Fatal("taken")
			}
			place := "mutating[" + hook.Name() + "]."
			want(t, err.Error(), place+in.want)
			_, _, confErr := webhook.Configurations(webhook.ConfigurationOptions{Name: "c", URL: "https://localhost"}, hook)
			startErr := webhook.NewServer(webhook.Options{}, hook).Start(t.Context())
			registerErr := webhook.Register(mux{}, hook)
			for _, err := range []error{confErr, startErr, registerErr} {
				if err == nil || !strings.Contains(err.Error(), place+in.want) {
					t.Errorf("got %v, want it to say so too", err)
				}
			}
			if !usedByCalls(in.want) {
				ask(t, hook, call{}).allowed(t, call{}, true)
			} else if status := ask(t, hook, call{}).failed(t); status.Message != "the registration of the hook is invalid: "+place+in.want {
				t.Errorf("a call fails with %q", status.Message)
			}
		})
	}
}

func TestRegistrationsTheAPIServerAccepts(t *testing.T) {
	for reason, change := range map[string]func(*registration){
		"least":                func(*registration) {},
		"unknown versions":     func(r *registration) { r.AdmissionReviewVersions = []string{"v9", "v1beta1"} },
		"all wildcards":        func(r *registration) { r.Rules = everything },
		"several resources":    resources("pods", "pods/status", "*/scale", "nodes/*"),
		"a name listed twice":  resources("pods", "pods"),
		"qualified conditions": conditions("a", "true", "example.com/a", "true"),
		"a root path":          client(service("n", "s", "/", 0)),
		"a path to be trimmed": client(service("n", "s", "/a.b/c-d/", 0)),
		"part of a service":    client(service("", "", "/a", 8443)),
		"URL with any path":    client(at("https://x/A_b%20/?")),
		"the longest timeout":  func(r *registration) { r.TimeoutSeconds = new(int32(30)) },
		"empty selectors": func(r *registration) {
			r.NamespaceSelector, r.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
		},
		"what the user may set": func(r *registration) { r.Rules[0].Scope = new(admissionregistrationv1.NamespacedScope) },
	} {
		if err := mutatingFor(change).Check(); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestAllErrorsAreReportedAtOnce(t *testing.T) {
	bad := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "bad", TimeoutSeconds: new(int32(99))}, admit)
	good := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "a.example.com", Rules: everything}, admit)
	twin := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "a.example.com", Rules: everything, ClientConfig: service("n", "s", "/other", 0)}, admit)
	elsewhere := webhook.Mutating(registration{Name: "a.example.com", Rules: everything, ClientConfig: service("n", "s", "/validate/a.example.com", 0)},
		label)
	_, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "Bad", URL: "http://x", Service: &admissionregistrationv1.ServiceReference{}}, bad, good, twin, elsewhere)
	want(t, fmt.Sprint(err), strings.Join([]string{
		`validating[bad].name: Invalid value: "bad": should be a domain with at least three segments separated by dots`,
		`validating[bad].rules: Required value: a hook without rules is never called`,
		`validating[bad].timeoutSeconds: Invalid value: 99: must be between 1 and 30`,
		`two webhooks of one configuration have the name a.example.com`,
		`webhooks a.example.com and a.example.com share the path /validate/a.example.com`,
		`ConfigurationOptions.Name: Invalid value: "Bad": ` + aSubdomain,
		`ConfigurationOptions.URL: Forbidden: set either URL or Service, not both`,
		`ConfigurationOptions.URL: Invalid value: "http://x": must begin with https://`,
	}, "\n"))
	if startErr := webhook.NewServer(webhook.Options{}, bad, good, twin).Start(t.Context()); !strings.Contains(fmt.Sprint(startErr), "two webhooks") || !strings.Contains(fmt.Sprint(startErr), "validating[bad].rules") {
		t.Errorf("Start: %v", startErr)
	}
}
