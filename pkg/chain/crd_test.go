// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/chain"
)

const widgetDefinition = `
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "!has(self.color) || self.color != 'red' || self.size < 3", message: red is small}
            - {rule: "self.size >= oldSelf.size", message: never shrinks}
            properties:
              size: {type: integer, default: 1, maximum: 9}
              color: {type: string}
              replicas: {type: integer}
              parts:
                type: array
                items: {type: object, properties: {name: {type: string}, weight: {type: integer, default: 5}}}
          status: {type: object, properties: {replicas: {type: integer}, phase: {type: string}}}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    subresources: {status: {}}
    schema: *schema
  - name: v1alpha1
    served: false
    storage: false
    schema: *schema
`

func widgets(t *testing.T, edit ...func(*apiextensionsv1.CustomResourceDefinition)) chain.Options {
	t.Helper()
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(widgetDefinition), &d); err != nil {
		t.Fatal(err)
	}
	for _, f := range edit {
		f(&d)
	}
	return chain.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{&d}}
}

func widgetRequest(op admissionv1.Operation, version, object, old string) chain.Request {
	req := chain.Request{Operation: op, Resource: metav1.GroupVersionResource{Group: "example.com", Version: version, Resource: "widgets"}}
	head := `{"apiVersion":"example.com/` + version + `","kind":"Widget","metadata":{"name":"w"},`
	if object != "" {
		req.Object = []byte(head + object[1:])
	}
	if old != "" {
		req.OldObject = []byte(head + old[1:])
	}
	return req
}

func widgetRule(version string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"*"},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{version}, Resources: []string{"widgets", "widgets/*"}}}}
}

func TestCustomResources(t *testing.T) {
	m, v, got := sent(t, widgetRequest(admissionv1.Create, "v1", `{"spec":{"color":"blue","odd":1,"parts":[{"name":"a"}]},"status":{"phase":"x"}}`, ""), widgets(t))
	if got.Rejection != nil {
		t.Fatal(got.Rejection.Message)
	}
	want := `{"color":"blue","parts":[{"name":"a","weight":5}],"size":1}`
	if s := at(m, "object.spec"); s != want {
		t.Errorf("the mutating webhook is sent %s", s)
	}
	if at(m, "object.status") == "missing" || at(v, "object.status") != "missing" || at(v, "object.metadata.generation") != "1" || at(v, "namespace") != `"default"` {
		t.Errorf("the validating webhook is sent %s", at(v, "object"))
	}
	if len(got.Warnings) != 1 || got.Warnings[0] != `unknown field "spec.odd"` || len(got.Limits) != 0 {
		t.Errorf("the warnings are %q, the limits %q", got.Warnings, got.Limits)
	}
}

func TestCustomResourcesAreValidated(t *testing.T) {
	for _, test := range []struct {
		name string
		req  chain.Request
		code int32
		text string
	}{
		{"schema", widgetRequest(admissionv1.Create, "v1", `{"spec":{"size":10}}`, ""), 422, "spec.size in body should be less than or equal to 9"},
		{"type", widgetRequest(admissionv1.Create, "v1", `{"spec":{"color":1}}`, ""), 422, "spec.color in body must be of type string"},
		{"rule", widgetRequest(admissionv1.Create, "v1", `{"spec":{"color":"red","size":3}}`, ""), 422, "red is small"},
		{"transition", widgetRequest(admissionv1.Update, "v1", `{"spec":{"size":1}}`, `{"spec":{"size":2}}`), 422, "never shrinks"},
		{"replicas", widgetRequest(admissionv1.Create, "v1", `{"spec":{"replicas":-1}}`, ""), 422, "should be a non-negative integer"},
		{"ratcheting", widgetRequest(admissionv1.Update, "v1", `{"spec":{"size":10,"color":"x"}}`, `{"spec":{"size":10}}`), 0, ""},
		{"ratcheting of rules", widgetRequest(admissionv1.Update, "v1", `{"metadata":{"name":"w","labels":{"a":"b"}},"spec":{"color":"red","size":5}}`, `{"spec":{"color":"red","size":5}}`), 0, ""},
		{"metadata", widgetRequest(admissionv1.Create, "v1", `{"metadata":{"name":"W"}}`, ""), 422, "RFC 1123 subdomain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := admit(t, newChain(t, chain.Webhooks{}, widgets(t)), test.req)
			if test.code == 0 != (got.Rejection == nil) {
				t.Fatalf("the rejection is %+v", got.Rejection)
			}
			if r := got.Rejection; r != nil && (r.Code != test.code || !strings.Contains(r.Message, test.text)) {
				t.Errorf("the rejection is %d %s", r.Code, r.Message)
			}
		})
	}
}

func TestVersionsThatAreNotServed(t *testing.T) {
	c := newChain(t, chain.Webhooks{}, widgets(t))
	for _, version := range []string{"v1alpha1", "v7"} {
		if got, err := c.Admit(t.Context(), widgetRequest(admissionv1.Create, version, `{"spec":{}}`, "")); err == nil {
			t.Errorf("%s: got %+v", version, got)
		}
	}
}

func TestCustomResourcesAreUpdated(t *testing.T) {
	generation := func(req chain.Request) (string, *chain.Result) {
		req.OldObject = []byte(strings.Replace(string(req.OldObject), `"name":"w"`, `"name":"w","generation":4`, 1))
		_, v, got := sent(t, req, widgets(t))
		if got.Rejection != nil {
			t.Fatal(got.Rejection.Message)
		}
		return at(v, "object.metadata.generation") + " " + at(v, "object.spec.size") + " " + at(v, "object.status.phase"), got
	}
	for _, test := range []struct{ sub, object, old, want string }{
		{"", `{"spec":{"size":2}}`, `{"spec":{"size":1},"status":{"phase":"old"}}`, `5 2 "old"`},
		{"", `{"spec":{"size":1},"status":{"phase":"new"}}`, `{"spec":{"size":1},"status":{"phase":"old"}}`, `4 1 "old"`},
		{"status", `{"spec":{"size":2},"status":{"phase":"new"}}`, `{"spec":{"size":1},"status":{"phase":"old"}}`, `4 1 "new"`},
	} {
		req := widgetRequest(admissionv1.Update, "v1", test.object, test.old)
		req.SubResource = test.sub
		if s, _ := generation(req); s != test.want {
			t.Errorf("%q %s: generation, size and phase are %s, want %s", test.sub, test.object, s, test.want)
		}
	}
}

// TestEquivalentVersions registers webhooks for other versions than that of the request. Each webhook must receive its
// own version, and its patch must be converted back.
func TestEquivalentVersions(t *testing.T) {
	for name, conversion := range map[string]*apiextensionsv1.CustomResourceConversion{
		"None": nil,
		"Webhook": {Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "team", Name: "convert"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen, kinds []string
			see := func(req *admissionv1.AdmissionRequest) string {
				seen = append(seen, string(req.Object.Raw[:40]))
				kinds = append(kinds, req.Kind.Version+" for "+req.RequestKind.Version)
				return `[{"op":"add","path":"/spec/color","value":"blue"},{"op":"add","path":"/spec/parts","value":[{"name":"p","odd":1}]}]`
			}
			w := chain.Webhooks{
				Mutating: mutating(
					mutatingHook("a.example.com", func(h *admissionregistrationv1.MutatingWebhook) { h.Rules = widgetRule("v1") }),
					mutatingHook("b.example.com", func(h *admissionregistrationv1.MutatingWebhook) {
						h.Rules, h.MatchPolicy = widgetRule("v1"), ptr.To(admissionregistrationv1.Exact)
					}),
					mutatingHook("c.example.com", func(h *admissionregistrationv1.MutatingWebhook) { h.Rules = widgetRule("v1beta1") }),
					mutatingHook("d.example.com", func(h *admissionregistrationv1.MutatingWebhook) { h.Rules = widgetRule("v1alpha1") })),
				Handlers: map[string]http.Handler{"a.example.com": patching(see), "b.example.com": allowing(), "c.example.com": patching(see), "d.example.com": allowing()},
			}
			options := widgets(t, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Conversion = conversion })
			options.Conversions = map[string]http.Handler{"widgets.example.com": http.HandlerFunc(convert)}
			c := newChain(t, w, options)
			got := admit(t, c, widgetRequest(admissionv1.Create, "v1beta1", `{"spec":{}}`, ""))
			if got.Rejection != nil {
				t.Fatal(got.Rejection.Message)
			}
			checkResult(t, got)
			if trace(got) != "a0 c0 d0" || strings.Join(kinds, ", ") != "v1 for v1beta1, v1beta1 for v1beta1" {
				t.Errorf("the calls are %s: %s, %q", trace(got), kinds, seen)
			}
			if v := got.Webhooks[0]; v.Detail != "rules[0] is for the equivalent CREATE of example.com/v1 widgets" {
				t.Errorf("the verdict is %+v", v)
			}
			// Webhooks can get a version that is not served. Unknown fields are dropped only when the object is stored.
			if sent := string(got.Calls[2].Request); !strings.Contains(sent, `"apiVersion":"example.com/v1alpha1"`) || !strings.Contains(sent, `"odd":1`) {
				t.Errorf("the last webhook is sent %s", sent)
			}
			if !strings.HasPrefix(string(got.Object), `{"apiVersion":"example.com/v1beta1"`) || !strings.Contains(string(got.Object), `"parts":[{"name":"p","weight":5}]`) {
				t.Errorf("the object is %s", got.Object)
			}
			if len(got.Warnings) != 1 || got.Warnings[0] != "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget" {
				t.Errorf("the warnings are %q", got.Warnings)
			}
		})
	}
}

// convert is a conversion webhook between versions with equal fields.
func convert(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, object := range review.Request.Objects {
		var u map[string]any
		if err := json.Unmarshal(object.Raw, &u); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		u["apiVersion"] = review.Request.DesiredAPIVersion
		raw, err := json.Marshal(u)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer.ConvertedObjects = append(answer.ConvertedObjects, runtime.RawExtension{Raw: raw})
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(apiextensionsv1.ConversionReview{TypeMeta: review.TypeMeta, Response: answer}); err != nil {
		panic(err)
	}
}

func TestDefinitionsAreValidated(t *testing.T) {
	for text, edit := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"must be spec.names.plural":     func(d *apiextensionsv1.CustomResourceDefinition) { d.Name = "other.example.com" },
		"must have exactly one version": func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Storage = false },
		"openAPIV3Schema: Required":     func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Schema = nil },
		"undeclared reference to 'nobody'": func(d *apiextensionsv1.CustomResourceDefinition) {
			spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			spec.XValidations[0].Rule = "nobody"
		},
	} {
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(widgetDefinition), &d); err != nil {
			t.Fatal(err)
		}
		edit(&d)
		if _, err := chain.New(chain.Webhooks{}, chain.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{&d}}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want an error with %q, got %v", text, err)
		}
	}
}
