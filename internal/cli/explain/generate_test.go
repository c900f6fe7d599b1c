// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A generator generates random configurations and requests.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 0))} }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

// some picks one value or two different ones.
func some[T comparable](g generator, from ...T) []T {
	all := []T{pick(g, from...)}
	if other := pick(g, from...); other != all[0] && g.IntN(2) == 0 {
		all = append(all, other)
	}
	return all
}

func (g generator) rule() admissionregistrationv1.RuleWithOperations {
	r := admissionregistrationv1.RuleWithOperations{
		Operations: pick(g, []admissionregistrationv1.OperationType{"*"}, some(g, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect)),
		Rule: admissionregistrationv1.Rule{
			APIGroups:   pick(g, []string{"*"}, some(g, "", "apps", "explain.example.com", "autoscaling", "policy", "rbac.authorization.k8s.io", "events.k8s.io")),
			APIVersions: pick(g, []string{"*"}, []string{"v1"}, some(g, "v1", "v1beta1", "v2")),
			Resources: pick(g, []string{"*"}, []string{"*/*"}, []string{"*"}, []string{"*/*"}, []string{"pods/*"}, []string{"*/status"}, []string{"*/exec"}, some(g, "pods", "configmaps", "namespaces", "services"), some(g, "widgets", "planets"),
				some(g, "pods/exec", "pods/eviction", "widgets/status", "deployments/scale"), some(g, "horizontalpodautoscalers", "deployments", "clusterroles", "events")),
		},
	}
	if g.IntN(3) == 0 {
		r.Scope = pick(g, new(admissionregistrationv1.AllScopes), new(admissionregistrationv1.NamespacedScope), new(admissionregistrationv1.ClusterScope))
	}
	return r
}

func (g generator) selector(key string, values ...string) *metav1.LabelSelector {
	switch g.IntN(7) {
	case 0:
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: pick(g, values...)}}
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn, Values: some(g, values...)}}}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: some(g, values...)}}}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: pick(g, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}}
	}
	return nil
}

// expressions are CEL expressions of conditions. Those in the second list fail for some requests.
var (
	expressions = []string{
		"true", "false",
		`request.userInfo.username == "jane"`, `"developers" in request.userInfo.groups`,
		`request.operation != "UPDATE" || oldObject.metadata.name.startsWith("o-1")`,
		`request.dryRun == false`, `oldObject == null`, `!has(request.subResource)`,
		`request.resource.resource == "pods"`, `request.resource.version == "v1"`, `request.requestKind.version == "v1"`,
		`request.operation in ["DELETE", "CONNECT"] || (has(object.metadata.labels) && "color" in object.metadata.labels)`,
		`request.operation in ["DELETE", "CONNECT"] || object.kind != "Widget" || object.spec.size > 2`,
		`request.operation in ["DELETE", "CONNECT"] || object.apiVersion != "explain.example.com/v1beta1"`,
		`request.resource.resource != "pods" || has(request.subResource) && request.subResource == "exec" && object.command[0] == "ls" || request.operation == "CREATE"`,
		`request.resource.resource != "services" || request.operation == "DELETE" || !has(object.spec.clusterIP)`,
		`request.resource.resource != "services" || request.operation == "DELETE" || object.spec.type != "NodePort" || !object.spec.ports.exists(p, has(p.nodePort))`,
		`request.resource.resource != "services" || request.operation == "DELETE" || object.spec.type == "NodePort"`,
		`has(request.userInfo.extra) && "case" in request.userInfo.extra`, `has(request.userInfo.extra) && "other" in request.userInfo.extra`,
		`request.operation in ["DELETE", "CONNECT"] || !has(object.metadata.annotations) || "sure" in object.metadata.annotations`,
		`authorizer.requestResource.check("breakglass").allowed()`,
		`!authorizer.group("").resource("pods").namespace("plain").check("list").allowed()`,
	}
	shaky = []string{
		`object.metadata.annotations["sure"] == "yes"`, `object.metadata.labels.color == "red"`, `request.namespace != "plain"`,
		`oldObject.metadata.labels.color != "red"`, `object.kind == "Pod"`, `object.spec.size < 3`, `request.subResource == "exec"`,
	}
)

func (g generator) conditions() []admissionregistrationv1.MatchCondition {
	var all []admissionregistrationv1.MatchCondition
	for i := range max(0, g.IntN(5)-2) {
		expression := pick(g, expressions...)
		if g.IntN(8) == 0 {
			expression = pick(g, shaky...)
		}
		all = append(all, admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("c%d", i), Expression: expression})
	}
	return all
}

// configurations returns configurations in random order, with names that are hard to sort.
func (g generator) configurations() (mutating []*admissionregistrationv1.MutatingWebhookConfiguration, validating []*admissionregistrationv1.ValidatingWebhookConfiguration) {
	names := []string{"a", "a-b", "a.b", "ab", "a1", "b", "0z"}
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i, name := range names[:5] {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		v := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: names[(i+2)%len(names)]}}
		for n := range 1 + g.IntN(5) {
			c.Webhooks = append(c.Webhooks, g.webhook(fmt.Sprintf("m%d.%s.example.com", n, name)))
			w := g.webhook(fmt.Sprintf("v%d.%s.example.com", n, v.Name))
			v.Webhooks = append(v.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: w.Name, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
				AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions})
		}
		mutating, validating = append(mutating, c), append(validating, v)
	}
	return mutating, validating
}

func (g generator) webhook(name string) admissionregistrationv1.MutatingWebhook {
	h := admissionregistrationv1.MutatingWebhook{Name: name, SideEffects: new(pick(g, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)),
		AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: g.selector("team", "a", "b"), ObjectSelector: g.selector("color", "red", "blue"), MatchConditions: g.conditions()}
	if g.IntN(6) == 0 {
		h.NamespaceSelector = g.selector("kubernetes.io/metadata.name", "plain", "team-a")
	}
	if slices.ContainsFunc(h.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return slices.Contains(shaky, c.Expression) }) {
		// The requests with which register waits for the API server must not fail, so the webhook ignores their
		// namespace.
		if h.NamespaceSelector == nil {
			h.NamespaceSelector = &metav1.LabelSelector{}
		}
		h.NamespaceSelector.MatchExpressions = append(h.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"default"}})
	}
	for range 1 + g.IntN(3) {
		h.Rules = append(h.Rules, g.rule())
	}
	if g.IntN(3) == 0 {
		h.MatchPolicy = new(admissionregistrationv1.Exact)
	}
	if g.IntN(2) == 0 {
		h.FailurePolicy = new(admissionregistrationv1.Ignore)
	}
	if g.IntN(2) == 0 {
		h.ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)
	}
	return h
}

// A randomRequest is a request from the generator.
type randomRequest struct {
	id                              string
	operation, resource, sub        string
	group, version, namespace, name string
	user                            User
	dryRun                          bool
	// stored is the object that exists before the request. The test creates it before it registers the webhooks, and
	// then sets stored to the object that the API server returned.
	stored, object map[string]any
}

func (c *randomRequest) gv() schema.GroupVersion {
	return schema.GroupVersion{Group: c.group, Version: c.version}
}

// A sort is a resource for which the generator makes requests.
type sort struct {
	group, version, resource, kind string
	global                         bool
	operations                     []string
	subs                           []string
	body                           func(g generator, o map[string]any)
}

func with(name string, value any) func(generator, map[string]any) {
	return func(_ generator, o map[string]any) { o[name] = value }
}

var changes = []string{"CREATE", "UPDATE", "DELETE"}

var template = map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "example.com/a:1"}}}}

var sorts = []sort{
	{version: "v1", resource: "pods", kind: "Pod", operations: changes, subs: []string{"exec", "attach", "portforward", "eviction", "status"}, body: with("spec", template["spec"])},
	{version: "v1", resource: "configmaps", kind: "ConfigMap", operations: changes, body: with("data", map[string]any{"a": "b"})},
	{version: "v1", resource: "namespaces", kind: "Namespace", global: true, operations: changes, body: func(g generator, o map[string]any) {
		if g.IntN(2) == 0 {
			labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
			if labels != nil {
				labels["team"] = pick(g, "a", "b")
			}
		}
	}},
	{version: "v1", resource: "services", kind: "Service", operations: changes, body: func(g generator, o map[string]any) {
		o["spec"] = map[string]any{"type": pick(g, "ClusterIP", "NodePort"), "ports": []any{map[string]any{"port": 80}}}
	}},
	{group: "apps", version: "v1", resource: "deployments", kind: "Deployment", operations: changes, subs: []string{"scale", "status"},
		body: with("spec", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}, "template": template})},
	{group: "rbac.authorization.k8s.io", version: "v1", resource: "clusterroles", kind: "ClusterRole", global: true, operations: changes, body: with("rules", []any{})},
	{group: "autoscaling", version: "v2", resource: "horizontalpodautoscalers", kind: "HorizontalPodAutoscaler", operations: []string{"CREATE", "UPDATE"},
		body: with("spec", map[string]any{"maxReplicas": 3, "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}})},
	{group: "explain.example.com", version: "v1", resource: "widgets", kind: "Widget", operations: changes, subs: []string{"status", "scale"}, body: widgetSpec},
	{group: "explain.example.com", version: "v1beta1", resource: "widgets", kind: "Widget", operations: changes, subs: []string{"status"}, body: widgetSpec},
	{version: "v1", resource: "events", kind: "Event", operations: []string{"CREATE"}, body: func(_ generator, o map[string]any) {
		o["involvedObject"] = map[string]any{"kind": "Pod", "name": "a", "namespace": o["metadata"].(map[string]any)["namespace"]}
	}},
	{group: "authorization.k8s.io", version: "v1", resource: "selfsubjectaccessreviews", kind: "SelfSubjectAccessReview", global: true, operations: []string{"CREATE"},
		body: func(_ generator, o map[string]any) {
			delete(o, "metadata")
			o["spec"] = map[string]any{"resourceAttributes": map[string]any{"verb": "get", "resource": "pods"}}
		}},
	{group: "admissionregistration.k8s.io", version: "v1", resource: "mutatingwebhookconfigurations", kind: "MutatingWebhookConfiguration", global: true,
		operations: []string{"CREATE"}, body: with("webhooks", []any{})},
	{group: "explain.example.com", version: "v1", resource: "planets", kind: "Planet", global: true, operations: changes, body: with("spec", map[string]any{})},
}

func widgetSpec(g generator, o map[string]any) {
	if o["spec"] = map[string]any{}; g.IntN(2) == 0 {
		o["spec"] = map[string]any{"size": g.IntN(6)}
	}
}

// request generates one request. number makes its names unique.
func (g generator) request(number int) *randomRequest {
	s := pick(g, sorts...)
	if g.IntN(4) == 0 {
		s = sorts[0] // Pods have the most operations and subresources
	}
	c := &randomRequest{id: fmt.Sprint("case-", number), operation: pick(g, s.operations...), resource: s.resource, group: s.group, version: s.version, name: fmt.Sprint("o-", number),
		user: pick(g, User{Name: "jane"}, User{Name: "jane", Groups: []string{"developers"}}, User{Name: "root", Groups: []string{"system:masters"}}), dryRun: g.IntN(4) == 0}
	if !s.global {
		c.namespace = pick(g, "plain", "team-a", "team-b")
	}
	object := func() map[string]any {
		metadata := map[string]any{"name": c.name, "annotations": map[string]any{"sure": "yes"}}
		if c.namespace != "" {
			metadata["namespace"] = c.namespace
		}
		switch g.IntN(6) {
		case 0:
		case 1:
			metadata["labels"] = map[string]any{"other": "x"}
		default:
			metadata["labels"] = map[string]any{"color": pick(g, "red", "blue", "green")}
		}
		o := map[string]any{"apiVersion": c.gv().String(), "kind": s.kind, "metadata": metadata}
		s.body(g, o)
		return o
	}
	if len(s.subs) > 0 && g.IntN(2) == 0 {
		c.sub = pick(g, s.subs...)
		c.operation = subresourceOf[c.sub].operation
		if c.operation == "CONNECT" {
			c.dryRun = false
		}
	}
	switch {
	case c.operation == "CREATE" && c.sub == "":
		c.object = object()
		c.dryRun = c.dryRun || s.group == "admissionregistration.k8s.io" // otherwise the new configuration would affect later requests
		if g.IntN(12) == 0 && c.object["metadata"] != nil {
			c.object["metadata"].(map[string]any)["labels"] = map[string]any{"color": "not a label!"} // the API server rejects it after the mutating webhooks
		}
	default:
		c.stored, c.object = object(), object()
		if s.kind == "Deployment" || s.kind == "HorizontalPodAutoscaler" {
			c.object["spec"] = c.stored["spec"]
		}
	}
	return c
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// path returns the URL path of the request.
func (c *randomRequest) path(name, sub string) string {
	path := "/apis/" + c.group + "/" + c.version
	if c.group == "" {
		path = "/api/" + c.version
	}
	if c.namespace != "" {
		path += "/namespaces/" + c.namespace
	}
	for _, part := range slices.DeleteFunc([]string{c.resource, name, sub}, func(s string) bool { return s == "" }) {
		path += "/" + part
	}
	return path
}
