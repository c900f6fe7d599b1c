// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/pkg/chain"
)

// configuration returns a configuration with one webhook and additional fields.
func configuration(sort, name, webhook, fields string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: %s}
webhooks:
- {name: %s, clientConfig: {url: "https://hooks.example.com/"}, sideEffects: None, admissionReviewVersions: [v1], rules: [%s]%s}
`, sort, name, webhook, everything, fields)
}

const (
	everything = `{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}`
	aPod       = `{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, labels: {app: web}}, spec: {containers: [{name: app, image: example.com/app:1}]}}`
	aShop      = `{apiVersion: example.com/v1, kind: Shop, metadata: {name: a, namespace: shop}, spec: {size: 3}}`
	shops      = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: shops, singular: shop, kind: Shop, listKind: ShopList}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://hooks.example.com/"}}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v3, served: false, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`
	aHub = `{apiVersion: example.com/v1, kind: Hub, metadata: {name: hub, namespace: default, labels: {team: web}}}`
	hubs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: namespaces.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: namespaces, singular: hub, kind: Hub, listKind: HubList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`
	theShop = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: web}}}`
)

// summary returns a line for each webhook and for each other fact of the report.
func summary(o Object) string {
	var lines []string
	if o.Error != "" {
		lines = append(lines, "error: "+o.Error)
	}
	for _, w := range o.Webhooks {
		line := fmt.Sprintf("%s: %s by %s: %s", w.Name, w.Called, w.Decision, w.Why)
		if w.Rejects {
			line += " (rejects)"
		}
		lines = append(lines, line)
	}
	if r := o.Rejection; r != nil {
		lines = append(lines, fmt.Sprintf("rejected by %q before %s with %d", r.By, r.Before, r.Code))
	}
	return strings.Join(append(lines, o.Notes...), "\n")
}

func TestExplain(t *testing.T) {
	conditions := func(all ...string) string {
		var list []string
		for i, c := range all {
			list = append(list, fmt.Sprintf("{name: c%d, expression: '%s'}", i, c))
		}
		return ", matchConditions: [" + strings.Join(list, ", ") + "]"
	}
	one := func(fields string) string { return configuration("Mutating", "m", "m.example.com", fields) }
	only := func(rule, fields string) string { return strings.Replace(one(fields), everything, rule, 1) }
	both := func(fields string) string {
		return one(fields) + "---" + configuration("Validating", "v", "v.example.com", fields)
	}
	jane := &User{Name: "jane"}
	scope := `authorizer.group("").resource("pods").check("get").allowed()`
	for _, row := range []struct {
		name, reason, hooks, object, more string
		ask                               Ask
		allow                             []string
		kubernetes                        string
		want                              []string
	}{
		{name: "called", reason: "the detail names the rule", hooks: both(""), object: aPod, want: []string{
			"m.example.com: yes by Matches: rules[0] is for CREATE of v1 pods", "v.example.com: yes by Matches"}},
		{name: "namespace not known", reason: "its labels are not guessed", hooks: one(", namespaceSelector: {matchLabels: {team: web}}"), object: aPod,
			want: []string{`m.example.com: unknown by NamespaceSelector: team=web: the labels of namespace "shop" are unknown`}},
		{name: "namespace not known, but its name", reason: "the name is a label", object: aPod,
			hooks: one(", namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [shop]}, {key: team, operator: Exists}]}"),
			want:  []string{"m.example.com: no by NamespaceSelector: kubernetes.io/metadata.name notin (shop): the namespace is shop"}},
		{name: "namespace matches by name", reason: "the selector needs no other label", object: aPod,
			hooks: one(", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}"), want: []string{"m.example.com: yes by Matches"}},
		{name: "namespace not known, not for pods", reason: "the labels do not matter", object: aPod,
			hooks: only(`{operations: ["*"], apiGroups: [apps], apiVersions: ["*"], resources: ["*"]}`, ", namespaceSelector: {matchLabels: {team: web}}"),
			want:  []string{"m.example.com: no by Rules"}},
		{name: "namespace not known, condition false", reason: "the labels do not matter", object: aPod,
			hooks: one(", namespaceSelector: {matchLabels: {team: web}}" + conditions("false")), want: []string{`m.example.com: no by MatchCondition: condition "c0" is false`}},
		{name: "namespace given", reason: "it is among the files", hooks: one(", namespaceSelector: {matchLabels: {team: web}}"), object: aPod, more: theShop,
			want: []string{"m.example.com: yes by Matches"}},
		{name: "labels given", reason: "by a flag", hooks: one(", namespaceSelector: {matchLabels: {team: web}}"), object: aPod, ask: Ask{NamespaceLabels: map[string]string{"team": "db"}},
			want: []string{`m.example.com: no by NamespaceSelector: team=web: namespace "shop" has team=db`}},
		{name: "a namespace", reason: "its own labels count", hooks: one(", namespaceSelector: {matchLabels: {team: web}}"), object: theShop,
			want: []string{"m.example.com: yes by Matches: rules[0] is for CREATE of v1 namespaces"}},
		{name: "deleted namespace", reason: "its own labels count", hooks: one(", namespaceSelector: {matchLabels: {team: web}}"), object: theShop, ask: Ask{Operation: "DELETE"},
			want: []string{"m.example.com: yes by Matches: rules[0] is for DELETE of v1 namespaces"}},
		{name: "called namespaces, by its name", reason: "the API server ignores the group, so the selector reads the labels of the object, which lack the name label", object: aHub, more: hubs,
			hooks: one(", namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [default]}]}"),
			want:  []string{"m.example.com: yes by Matches"}},
		{name: "called namespaces, by its labels", reason: "the API server looks at no group", hooks: one(", namespaceSelector: {matchLabels: {team: db}}"), object: aHub, more: hubs,
			want: []string{"m.example.com: no by NamespaceSelector: team=db: the object itself (its resource is named namespaces) has team=web"}},
		{name: "called namespaces, deleted", reason: "the labels of the namespace count", hooks: one(", namespaceSelector: {matchLabels: {team: web}}"), object: aHub, more: hubs, ask: Ask{Operation: "DELETE"},
			want: []string{`m.example.com: unknown by NamespaceSelector: team=web: the labels of namespace "default" are unknown`}},
		{name: "authorizer", reason: "the permissions are unknown", hooks: one(conditions(scope)), object: aPod, ask: Ask{User: jane},
			want: []string{`m.example.com: unknown by MatchCondition: condition "c0": whether jane may get pods is not known`}},
		{name: "authorizer, another false", reason: "it does not matter", hooks: one(conditions(scope, "false")), object: aPod, ask: Ask{User: jane},
			want: []string{`m.example.com: no by MatchCondition: condition "c1" is false`}},
		{name: "authorizer, Ignore and an error", reason: "it is not called either way", object: aPod, ask: Ask{User: jane},
			hooks: one(conditions(scope, `object.metadata.labels.x == "y"`) + ", failurePolicy: Ignore"), want: []string{`m.example.com: no by MatchCondition: condition "c1" cannot be evaluated, which failurePolicy Ignore ignores`}},
		{name: "authorizer, Fail and an error", reason: "it may be rejected", object: aPod, ask: Ask{User: jane},
			hooks: one(conditions(scope, `object.metadata.labels.x == "y"`)), want: []string{"m.example.com: unknown by MatchCondition"}},
		{name: "allowed", reason: "by a flag", hooks: one(conditions(scope)), object: aPod, ask: Ask{User: jane}, allow: []string{"get:pods"}, want: []string{"m.example.com: yes by Matches"}},
		{name: "not allowed", reason: "the user has no other permissions", hooks: one(conditions(scope)), object: aPod, ask: Ask{User: jane}, allow: []string{"*:pods.apps"}, want: []string{"m.example.com: no by MatchCondition"}},
		{name: "error under Fail", reason: "later webhooks are not called", hooks: both(conditions(`object.metadata.labels.x == "y"`)), object: aPod, want: []string{
			`m.example.com: no by MatchCondition: condition "c0" cannot be evaluated: expression 'object.metadata.labels.x == "y"' resulted in error: no such key: x (rejects)`,
			`rejected by "m.example.com" before validating webhooks with 403`}},
		{name: "error of a validating one", reason: "that is found before any is called", object: aPod,
			hooks: configuration("Validating", "a", "a.example.com", "") + "---" + configuration("Validating", "b", "b.example.com", conditions(`object.metadata.labels.x == "y"`)),
			want:  []string{"a.example.com: no by Rejection: the request is rejected before this webhook is called, because of b.example.com", "(rejects)", `rejected by "b.example.com" before storage with 403`}},
		{name: "invalid", reason: "the API server rejects it in between", hooks: both(""), object: `{apiVersion: v1, kind: Pod, metadata: {name: web}}`, want: []string{
			"m.example.com: yes by Matches", "v.example.com: no by Rejection", `rejected by "" before validating webhooks with 422`}},
		{name: "dry run", reason: "an old configuration may have side effects", object: aPod, ask: Ask{DryRun: true},
			hooks: strings.Replace(configuration("Validating", "a", "a.example.com", ""), "sideEffects: None", "sideEffects: Some", 1) + "---" + configuration("Validating", "b", "b.example.com", ""),
			want:  []string{"a.example.com: no by DryRun: it has side effects (sideEffects: Some), so it is not called for a dry run (rejects)", "b.example.com: yes", `rejected by "a.example.com" before storage with 400`}},
		{name: "v1beta1", reason: "its defaults are others", object: aPod, ask: Ask{DryRun: true},
			hooks: strings.NewReplacer("k8s.io/v1", "k8s.io/v1beta1", "sideEffects: None, ", "").Replace(one("")), want: []string{"m.example.com: no by DryRun: it has side effects (sideEffects: Unknown)"}},
		{name: "static manifests", reason: "they come first, and are called for configurations", object: strings.ReplaceAll(one(""), "\n---", ""),
			hooks: one("") + "---" + configuration("Mutating", "z.static.k8s.io", "z.example.com", ""),
			want:  []string{"z.example.com: yes by Matches", "m.example.com: no by Resource: no webhook is called for a MutatingWebhookConfiguration"}},
		{name: "virtual", reason: "Kubernetes 1.36 calls webhooks for it", hooks: one(""), object: `{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: x}}`,
			want: []string{"m.example.com: yes by Matches", "from Kubernetes 1.37 on, no webhook is called for a TokenReview: explain that with --kubernetes 1.37"}},
		{name: "virtual, newer", reason: "Kubernetes 1.37 does not", hooks: one(""), object: `{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: x}}`, kubernetes: "1.37",
			want: []string{"m.example.com: no by Resource: since Kubernetes 1.37 no webhook is called for a TokenReview"}},
		{name: "no definition", reason: "its resource is unknown", hooks: one(""), object: aShop,
			want: []string{"error: the resource of example.com/v1 Shop is unknown: give its CustomResourceDefinition"}},
		{name: "resource by a flag", reason: "its versions are unknown", object: aShop, ask: Ask{Resource: "shops.v1.example.com"},
			hooks: only(`{operations: ["*"], apiGroups: [example.com], apiVersions: [v2], resources: [shops]}`, ""),
			want:  []string{"m.example.com: unknown by Rules: rules[0] is for other versions of shops.example.com, and it is unknown whether they are served"}},
		{name: "resource by a flag, exact", reason: "other versions do not matter", object: aShop, ask: Ask{Resource: "shops.v1.example.com"},
			hooks: only(`{operations: ["*"], apiGroups: [example.com], apiVersions: [v2], resources: [shops]}`, ", matchPolicy: Exact"), want: []string{"m.example.com: no by Rules"}},
		{name: "resource by a flag, condition", reason: "the defaults of the resource are unknown", object: aShop, ask: Ask{Resource: "shops.v1.example.com"}, hooks: one(conditions("object.spec.size > 2")),
			want: []string{`m.example.com: unknown by MatchCondition: condition "c0": it is true for the object as it is written, but the API server may first set defaults, which are unknown for a Shop`}},
		{name: "resource by a flag, condition on metadata", reason: "that is not defaulted", object: aShop, ask: Ask{Resource: "shops.v1.example.com"}, hooks: one(conditions(`object.metadata.name == "a"`)),
			want: []string{"m.example.com: yes by Matches"}},
		{name: "custom resource", reason: "with its definition all is known", object: aShop, more: shops, hooks: one(conditions("object.spec.size > 2")), want: []string{"m.example.com: yes by Matches"}},
		{name: "version that is not served", reason: "there is no such request", object: strings.Replace(aShop, "/v1", "/v3", 1), more: shops, hooks: one(""), want: []string{"error: version v3 of shops.example.com is not served"}},
		{name: "conversion webhook", reason: "it is not called for this", object: aShop, more: shops, hooks: only(`{operations: ["*"], apiGroups: [example.com], apiVersions: [v2], resources: [shops]}`, conditions("object.spec.size > 2")),
			want: []string{`m.example.com: unknown by MatchCondition: condition "c0": it reads version v2, and only the conversion webhook of the kind converts to it`}},
		{name: "made up", reason: "what a client sends is unknown", object: aPod, ask: Ask{SubResource: "exec"}, hooks: one(conditions(`object.command[0] == "ls"`)),
			want: []string{`m.example.com: unknown by MatchCondition: condition "c0": it reads the PodExecOptions that a client sends, which is unknown`}},
		{name: "scale", reason: "it has the replicas", object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 4}}`, ask: Ask{SubResource: "scale"}, hooks: one(conditions("object.spec.replicas > 3")),
			want: []string{"m.example.com: yes"}},
		{name: "plugins", reason: "they come first", object: aPod, hooks: one(conditions("object.spec.tolerations.size() == 0")),
			want: []string{`but the plugin DefaultTolerationSeconds of the API server may change tolerations first`}},
		{name: "plugins leave it", reason: "the plugin keeps a value that is set", object: strings.Replace(aPod, "spec: {", "spec: {serviceAccountName: app, ", 1), hooks: one(conditions(`object.spec.serviceAccountName == "app"`)), want: []string{"m.example.com: yes"}},
		{name: "defaults not known", reason: "the defaults of the kind are unknown", object: `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {}}}`,
			hooks: one(conditions("has(object.spec.policyTypes)")), want: []string{"it is false for the object as it is written, but the API server may first set defaults, which are unknown for a NetworkPolicy"}},
		{name: "no such kind", reason: "Kubernetes has none", object: `{apiVersion: apps/v1, kind: Deploment, metadata: {name: a}}`, hooks: one(""), want: []string{"error: apps/v1 has no kind Deploment"}},
		{name: "beta", reason: "it may be off", object: `{apiVersion: networking.k8s.io/v1beta1, kind: Ingress, metadata: {name: a}}`, hooks: one(""), want: []string{"API servers serve networking.k8s.io/v1beta1 only if --runtime-config enables it"}},
		{name: "other namespace", reason: "the request is refused at once", object: aPod, ask: Ask{Namespace: "other"}, hooks: one(""), want: []string{"m.example.com: no by Rejection", `before mutating webhooks with 400`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, err := FromFiles(read(t, row.hooks), read(t, row.object+"\n---\n"+row.more))
			if err != nil {
				t.Fatal(err)
			}
			if row.kubernetes != "" {
				w.Kubernetes = row.kubernetes
			}
			if len(row.allow) > 0 {
				if err := w.Allow(row.allow); err != nil {
					t.Fatal(err)
				}
			}
			report, err := w.Explain(t.Context(), read(t, row.object), row.ask)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := report.Text(&text, painter, ""); err != nil {
				t.Error(err)
			}
			for line := range strings.Lines(text.String()) {
				if len([]rune(line)) > columns+1 && len(strings.Fields(line)) > 1 && !strings.HasPrefix(line, "hint: ") {
					t.Errorf("longer than %d columns: %s", columns, line)
				}
			}
			got := summary(report.Objects[0])
			for _, want := range row.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s\n got %s\nwant %s", row.reason, got, want)
				}
			}
			if len(report.Objects[0].Webhooks) > 0 && row.name == "static manifests" && !strings.HasPrefix(got, "z.") {
				t.Errorf("the order is %s", got)
			}
		})
	}
}

// TestRequests checks which API request is derived from an object and the flags.
func TestRequests(t *testing.T) {
	deployment := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {a: b}}, spec: {replicas: 3}}`
	for _, row := range []struct {
		name, object string
		ask          Ask
		want         string // or a part of the error
	}{
		{"create", aPod, Ask{}, "CREATE v1 pods shop/ Pod"},
		{"lower case", aPod, Ask{Operation: "delete"}, "DELETE v1 pods shop/ old Pod"},
		{"update", aPod, Ask{Operation: "UPDATE"}, "UPDATE v1 pods shop/ Pod old Pod; the old object is assumed to equal the new one; --old FILE sets another"},
		{"default namespace", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, Ask{}, "CREATE v1 configmaps default/ ConfigMap"},
		{"cluster-scoped", `{apiVersion: v1, kind: Node, metadata: {name: a}}`, Ask{Namespace: "shop"}, "CREATE v1 nodes / Node"},
		{"status", deployment, Ask{SubResource: "status"}, "UPDATE apps/v1 deployments/status shop/ Deployment old Deployment"},
		{"scale", deployment, Ask{SubResource: "scale"}, `UPDATE apps/v1 deployments/scale shop/ Scale old Scale`},
		{"a scale", `{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web}}`, Ask{Resource: "deployments.v1.apps", SubResource: "scale"}, "UPDATE apps/v1 deployments/scale default/ Scale old Scale"},
		{"eviction", aPod, Ask{SubResource: "eviction"}, "CREATE v1 pods/eviction shop/ Eviction; webhooks receive a different object, of kind Eviction"},
		{"an eviction", `{apiVersion: policy/v1, kind: Eviction, metadata: {name: web, namespace: shop}}`, Ask{}, "CREATE v1 pods/eviction shop/ Eviction"},
		{"exec", aPod, Ask{SubResource: "exec"}, "CONNECT v1 pods/exec shop/web PodExecOptions; webhooks receive a different object"},
		{"options", `{apiVersion: v1, kind: PodExecOptions, command: [ls]}`, Ask{Namespace: "shop", Name: "web"}, "CONNECT v1 pods/exec shop/web PodExecOptions"},
		{"proxy of a node", `{apiVersion: v1, kind: NodeProxyOptions}`, Ask{Name: "a"}, "CONNECT v1 nodes/proxy /a NodeProxyOptions"},
		{"token", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`, Ask{SubResource: "token"}, "CREATE v1 serviceaccounts/token default/ TokenRequest"},
		{"options without a name", `{apiVersion: v1, kind: PodExecOptions}`, Ask{}, "the request needs a name: a PodExecOptions does not say to which of the pods it applies"},
		{"scale without a resource", `{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web}}`, Ask{}, "a Scale does not name the resource that it scales"},
		{"no operation", aPod, Ask{Operation: "READ"}, "--operation READ: want CREATE, UPDATE, DELETE or CONNECT"},
		{"connect to what", aPod, Ask{Operation: "CONNECT"}, "pods does not support CONNECT, but subresources such as pods/exec do"},
		{"delete status", aPod, Ask{Operation: "DELETE", SubResource: "status"}, "pods/status does not support DELETE, only UPDATE"},
		{"no subresource", deployment, Ask{SubResource: "exec"}, `deployments.apps have no subresource "exec"`},
		{"another subresource", `{apiVersion: v1, kind: PodExecOptions}`, Ask{SubResource: "attach"}, "a PodExecOptions is for the subresource exec, not attach"},
		{"old for create", aPod, Ask{Old: read(t, aPod)}, "--old is for UPDATE"},
		{"another old", aPod, Ask{Operation: "UPDATE", Old: read(t, deployment)}, "--old has no Pod shop/web"},
		{"not a resource", aPod, Ask{Resource: "pods"}, "--resource pods: want RESOURCE.VERSION.GROUP"},
		{"another resource", aPod, Ask{Resource: "services.v1."}, "--resource services.v1. does not match a Pod"},
		{"scope unknown", `{apiVersion: example.com/v1, kind: Shop, metadata: {name: a}}`, Ask{Resource: "shops.v1.example.com"}, "it is unknown whether shops.example.com are namespaced"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, err := newFacts("files").request(t.Context(), read(t, row.object)[0], row.ask)
			got := fmt.Sprint(err)
			if err == nil {
				got = sentence(t, a)
			}
			if !strings.Contains(got, row.want) {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func sentence(t *testing.T, a *knownRequest) string {
	t.Helper()
	s := fmt.Sprintf("%s %s %s", a.Operation, version(a.Resource.Group, a.Resource.Version), a.Resource.Resource)
	if a.SubResource != "" {
		s += "/" + a.SubResource
	}
	s += fmt.Sprintf(" %s/%s", a.Namespace, a.Name)
	if a.Object != nil {
		s += " " + read(t, string(a.Object))[0].GVK.Kind
	}
	if a.OldObject != nil {
		s += " old " + read(t, string(a.OldObject))[0].GVK.Kind
	}
	return strings.Join(append([]string{s}, a.notes...), "; ")
}

func TestUsersGroups(t *testing.T) {
	for _, row := range []struct {
		user User
		want []string
	}{
		{User{Name: "jane"}, []string{"system:authenticated"}},
		{User{Name: "jane", Groups: []string{"a"}}, []string{"a", "system:authenticated"}},
		{User{Name: "system:anonymous"}, []string{"system:unauthenticated"}},
		{User{Name: "system:serviceaccount:shop:ci"}, []string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"}},
	} {
		if diff := cmp.Diff(row.want, userInfo(row.user).Groups); diff != "" {
			t.Error(row.user.Name, diff)
		}
	}
}

// TestReinvocation checks that explanations of reinvocation agree with the API server's code.
func TestReinvocation(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range 20 {
		var text strings.Builder
		for i := range 4 {
			fields := ", reinvocationPolicy: " + []string{"Never", "IfNeeded"}[r.IntN(2)]
			if r.IntN(4) == 0 {
				fields += ", objectSelector: {matchLabels: {app: db}}"
			}
			text.WriteString("---" + configuration("Mutating", fmt.Sprint("c", i), fmt.Sprintf("m%d.example.com", i), fields))
		}
		w, err := FromFiles(read(t, text.String()), nil)
		if err != nil {
			t.Fatal(err)
		}
		report, err := w.Explain(t.Context(), read(t, aPod), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		for _, changing := range report.Objects[0].Changing {
			var want []string
			for _, h := range report.Objects[0].Webhooks {
				if slices.Contains(h.Reinvocation.By, changing) {
					want = append(want, h.Name)
				}
			}
			if diff := cmp.Diff(want, calledAgain(t, w, changing), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("seed %d, case %d: called again after %s:\n%s\n%s", seed, n, changing, diff, text.String())
			}
		}
	}
}

// TestReinvocationByASecondCall checks two mutating webhooks that change the object in every call. The explanation and
// the calls must show that the second webhook is called again only if both have reinvocationPolicy IfNeeded.
func TestReinvocationByASecondCall(t *testing.T) {
	for _, row := range []struct {
		first, second string // reinvocationPolicy of the first and the second webhook
		want          string
	}{
		{"IfNeeded", "IfNeeded", "a b a b"}, {"Never", "IfNeeded", "a b"}, {"IfNeeded", "Never", "a b a"}, {"Never", "Never", "a b"},
	} {
		w, err := FromFiles(read(t, configuration("Mutating", "a", "a.example.com", ", reinvocationPolicy: "+row.first)+"---"+
			configuration("Mutating", "b", "b.example.com", ", reinvocationPolicy: "+row.second)), nil)
		if err != nil {
			t.Fatal(err)
		}
		report, err := w.Explain(t.Context(), read(t, aPod), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		explained := "a b"
		for _, h := range report.Objects[0].Webhooks {
			if len(h.Reinvocation.By)+len(h.Reinvocation.ByAgain) > 0 {
				explained += " " + h.Name[:1]
			}
		}
		_, in := w.hooks(true)
		calls := ""
		in.Handlers = map[string]http.Handler{}
		for _, name := range []string{"a", "b"} {
			in.Handlers[name+".example.com"] = http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
				calls += " " + name
				change(rw, req, fmt.Sprint("change-", len(calls)))
			})
		}
		c, err := chain.New(in, chain.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Admit(t.Context(), chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Object: read(t, aPod)[0].JSON}); err != nil {
			t.Fatal(err)
		}
		if calls = strings.TrimSpace(calls); calls != row.want || explained != row.want {
			t.Errorf("%+v: the calls are %s, the explanation has %s", row, calls, explained)
		}
	}
}

// calledAgain returns the webhooks that a chain calls twice if one webhook changes the object in the first round.
func calledAgain(t *testing.T, w *Facts, changing string) []string {
	t.Helper()
	hooks, in := w.hooks(true)
	in.Handlers = map[string]http.Handler{}
	for _, h := range hooks {
		in.Handlers[h.name] = http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			label := ""
			if h.name == changing {
				label = "changed"
			}
			change(rw, req, label)
		})
	}
	c, err := chain.New(in, chain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := c.Admit(t.Context(), chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Object: read(t, aPod)[0].JSON})
	if err != nil || !result.Admitted() {
		t.Fatal(err, result)
	}
	var again []string
	for _, call := range result.Calls {
		if call.Round == 1 {
			again = append(again, call.Webhook)
		}
	}
	return again
}

// TestBroken checks a cluster with a stored configuration that this program cannot read. The decision about its
// webhooks must be unknown, and the other configurations must be explained.
func TestBroken(t *testing.T) {
	w, err := FromFiles(read(t, configuration("Mutating", "a", "a.example.com", ", matchConditions: [{name: new, expression: fromTheFuture()}]")+"---"+
		configuration("Mutating", "b", "b.example.com", "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Explain(t.Context(), read(t, aPod), Ask{}); err == nil || !strings.Contains(err.Error(), ": an API server would reject this configuration: mutating[a].webhooks[0].matchConditions[0].expression") {
		t.Error(err)
	}
	clear(w.origins) // as if it were from a cluster
	report, err := w.Explain(t.Context(), read(t, aPod), Ask{})
	if err != nil {
		t.Fatal(err)
	}
	got := summary(report.Objects[0])
	if !strings.Contains(got, "a.example.com: unknown by Configuration: this version of admitkit cannot read it") || !strings.Contains(got, "b.example.com: yes") {
		t.Error(got)
	}
	if webhooks, objects := report.unknown(""); len(webhooks) != 1 || objects != 0 {
		t.Error(webhooks, objects)
	}
}

func TestInterrupted(t *testing.T) {
	w, err := FromFiles(read(t, configuration("Mutating", "a", "a.example.com", "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Explain(ctx, read(t, aPod), Ask{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzExplain checks that every input is explained or rejected with an error.
func FuzzExplain(f *testing.F) {
	f.Add([]byte(configuration("Mutating", "a", "a.example.com", "")), []byte(aPod), "UPDATE", "scale", "pods.v1.")
	f.Add([]byte(configuration("Validating", "a", "a.example.com", "")), []byte(aShop+"\n---"+shops), "", "", "")
	f.Add([]byte(configuration("Mutating", "a", "a.example.com", ", matchConditions: [{name: c, expression: object.x}]")), []byte("{apiVersion: v1, kind: PodExecOptions}"), "CONNECT", "exec", "")
	f.Fuzz(func(t *testing.T, hooks, object []byte, operation, sub, resource string) {
		if len(hooks)+len(object) > 1<<14 {
			return
		}
		configurations, err := objects.Read(t.Context(), []string{"-"}, strings.NewReader(string(hooks)), nil)
		if err != nil {
			return
		}
		all, err := objects.Read(t.Context(), []string{"-"}, strings.NewReader(string(object)), nil)
		if err != nil {
			return
		}
		w, err := FromFiles(configurations, all)
		if err != nil {
			return
		}
		report, err := w.Explain(t.Context(), all, Ask{Operation: operation, SubResource: sub, Resource: resource, Name: "a"})
		if err != nil {
			return
		}
		for _, o := range report.Objects {
			for _, w := range o.Webhooks {
				if w.Called == "" || w.Decision == "" || w.Why == "" || w.Order == 0 {
					t.Errorf("%+v", w)
				}
			}
		}
		if err := report.Text(&strings.Builder{}, painter, ""); err != nil {
			t.Error(err)
		}
	})
}
