// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/problem"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// TestKinds checks that the Go type of each kind exists and can decode the sample. The tests in test/projects check the
// samples with an API server.
func TestKinds(t *testing.T) {
	scheme := newScheme(t)
	seen := map[string]bool{}
	for _, k := range Kinds() {
		object, err := scheme.New(k.GroupVersionKind)
		if err != nil {
			t.Errorf("%s: %v", k, err)
			continue
		}
		goType := reflect.TypeOf(object).Elem()
		if goType.PkgPath() != k.Package || goType.Name() != k.Type {
			t.Errorf("%s: its type is %s.%s, not %s.%s", k, goType.PkgPath(), goType.Name(), k.Package, k.Type)
		}
		if err := yaml.UnmarshalStrict([]byte(k.Sample), object); err != nil {
			t.Errorf("%s: the sample: %v", k, err)
		}
		if m, err := meta.Accessor(object); err != nil || (m.GetNamespace() != "") != k.Namespaced() {
			t.Errorf("%s: the sample is in namespace %q: %v", k, m.GetNamespace(), err)
		}
		if seen[k.stem()] || seen[k.name()] {
			t.Errorf("%s: another kind has its files or functions", k)
		}
		seen[k.stem()], seen[k.name()] = true, true
		if found, err := find(k.String()); err != nil || found != k {
			t.Errorf("%s is not found by its own name: %v", k, err)
		}
	}
}

func TestParse(t *testing.T) {
	const module = "example.com/shop"
	rows := []struct{ text, reason, want string }{
		{"pods", "the plural is enough", "v1/pods corev1.Pod pods Pod"},
		{"v1/pods", "the core group has no name", "v1/pods corev1.Pod pods Pod"},
		{"deployments", "one group has them", "apps/v1/deployments appsv1.Deployment deployments Deployment"},
		{"apps/v1/deployments", "as the API server writes it", "apps/v1/deployments appsv1.Deployment deployments Deployment"},
		{"deployments.apps", "as kubectl writes it", "apps/v1/deployments appsv1.Deployment deployments Deployment"},
		{"deployments.v1.apps", "as kubectl writes it, with the version", "apps/v1/deployments appsv1.Deployment deployments Deployment"},
		{"networking.k8s.io/v1/ingresses", "the whole group", "networking.k8s.io/v1/ingresses networkingv1.Ingress ingresses Ingress"},
		{"networking/ingresses", "the first word of it", "networking.k8s.io/v1/ingresses networkingv1.Ingress ingresses Ingress"},
		{"autoscaling/v2/horizontalpodautoscalers", "there is a v1: names tell them apart", "autoscaling/v2/horizontalpodautoscalers autoscalingv2.HorizontalPodAutoscaler horizontalpodautoscalers_v2 HorizontalPodAutoscalerV2"},
		{"events.events.k8s.io", "there are others in the core group", "events.k8s.io/v1/events eventsv1.Event events_events EventsEvent"},
		{"v1/events", "there are others in a group of their own", "v1/events corev1.Event events_core CoreEvent"},
		{"example.com/v1/widgets=example.com/other/api/v1.Widget", "a type of another module", "example.com/v1/widgets apiv1.Widget widgets Widget"},
		{"example.com/v1/widgets=example.com/shop/pkg/apis/widgets/v1.Widget", "a type of the project", "example.com/v1/widgets widgetsv1.Widget widgets Widget in pkg/apis/widgets/v1"},
		{"widgets.v1.example.com=example.com/other/types.Widget", "a package that is not called like the version", "example.com/v1/widgets types.Widget widgets Widget WithKinds"},
		{"example.com/v1/widgets=example.com/other/webhook.Widget", "a package that is called like another one", "example.com/v1/widgets apiwebhook.Widget widgets Widget WithKinds"},
		{"serving.knative.dev/v1/services=knative.dev/serving/pkg/apis/serving/v1.Service", "a kind that is called like a built-in one", "serving.knative.dev/v1/services servingv1.Service services_serving ServingService"},
		{"example.com/v1/widgets=gopkg.in/widgets.v2.Widget", "a dot in the last element", "example.com/v1/widgets widgetsv2.Widget widgets Widget WithKinds"},

		{"pod", "singular", `unknown kind "pod"; did you mean v1/pods?`},
		{"Deployment", "the kind", `unknown kind "Deployment"; did you mean apps/v1/deployments?`},
		{"deploymets", "a letter is missing", `unknown kind "deploymets"; did you mean apps/v1/deployments?`},
		{"apps/v2/deployments", "no such version", `unknown kind "apps/v2/deployments"; did you mean apps/v1/deployments?`},
		{"widgets", "not built in", `unknown kind "widgets"; admitkit init --list-kinds`},
		{"events", "two groups", `"events" is ambiguous: v1/events, events.k8s.io/v1/events; use one`},
		{"horizontalpodautoscalers", "two versions", `is ambiguous: autoscaling/v1/horizontalpodautoscalers, autoscaling/v2/`},
		{"mutatingwebhookconfigurations", "exempt", "mutatingwebhookconfigurations cannot have hooks: the API server calls only static webhooks for them"},
		{"authorization.k8s.io/v1/subjectaccessreviews", "virtual", "subjectaccessreviews cannot have hooks: the API server uses them"},
		{"pods/eviction", "a subresource", `"pods/eviction" is a subresource`},
		{"", "nothing", `unknown kind ""`},
		{"a/b/c/d", "too much", `"a/b/c/d" is not the name of a kind`},
		{"widgets=example.com/shop/api/v1.Widget", "no group", "lacks the group or the version of widgets"},
		{"shop/v1/widgets=example.com/shop/api/v1.Widget", "no domain", `"shop" is not an API group of custom resources`},
		{"example.com/v1/Widgets=example.com/shop/api/v1.Widget", "not a plural", "version and plural must be lower-case"},
		{"example.com/v1/widgets=Widget", "no package", `"Widget" is not a Go type`},
		{"example.com/v1/widgets=example.com/shop/api/v1", "no type", `"example.com/shop/api/v1" is not a Go type`},
		{"example.com/v1/widgets=example.com/shop/api/v1.widget", "not exported", `"widget" is not an exported Go type`},
		{"example.com/v1/widgets=example.com/\"/v1.Widget", "a quote", `is not an import path`},
		{"example.com/v1/widgets=../api/v1.Widget", "a folder", `is not an import path`},
		{"example.com/v1/widgets=example.com/shop.Widget", "package main", "the package example.com/shop is the main program"},
		{"example.com/v1/widgets=example.com/shop/hooks.Widget", "would import itself", "the project uses the folder hooks for something else"},
	}
	for _, row := range rows {
		k, err := parse(row.text, module)
		if err != nil {
			got := strings.Join(append([]string{err.Error()}, problem.Hints(err)...), "; ")
			if !strings.Contains(got, row.want) {
				t.Errorf("%q: got %s\nwant %s: %s", row.text, got, row.want, row.reason)
			}
			continue
		}
		got := k.String() + " " + k.GoType() + " " + k.stem() + " " + k.name()
		if k.local != "" {
			got += " in " + k.local
		}
		if k.NeedsKinds() {
			got += " WithKinds"
		}
		if got != row.want {
			t.Errorf("%q: got  %s\nwant %s: %s", row.text, got, row.want, row.reason)
		}
	}
}

// FuzzParse checks that any text either causes an error or gives a kind whose files can be rendered.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"pods", "deployments.v1.apps", "a/b/c/d", "example.com/v1/widgets=example.com/shop/api/v1.Widget", "example.com/v1/w=x.Y", "x.example.com/v1/w=0/v1.Y"} {
		f.Add(text)
	}
	scheme := newScheme(f)
	f.Fuzz(func(t *testing.T, text string) {
		p := &Project{Name: "shop", Domain: "example.com", Certs: SelfManaged, Module: "example.com/shop"}
		for _, mutates := range []bool{true, false} {
			names := [2][]string{}
			names[map[bool]int{true: 0, false: 1}[mutates]] = []string{text}
			var err error
			if p.Hooks, err = p.hooksOf(names[0], names[1]); err != nil {
				return
			}
			all, err := p.render(t.Context(), &tree{})
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			check(t, scheme, p, all)
		}
	})
}
