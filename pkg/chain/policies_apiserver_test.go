// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/internal/k8svalidation"
)

// A policyCase is a file of testdata/policies: a policy, its bindings, and requests.
type policyCase struct {
	name     string
	Kind     string            `json:"kind"`
	Spec     json.RawMessage   `json:"spec"`
	Bindings []json.RawMessage `json:"bindings"`
	Requests []policyRequest   `json:"requests"`
}

// A policyRequest is a request for an object that has the label of its policy.
type policyRequest struct {
	Resource    string                `json:"resource"`  // configmaps by default
	Namespace   string                `json:"namespace"` // shop by default
	Name        string                `json:"name"`
	Operation   admissionv1.Operation `json:"operation"` // CREATE by default
	Annotations map[string]string     `json:"annotations"`
	Data        map[string]string     `json:"data"`
	Old         map[string]string     `json:"old"` // data of the stored object
	Spec        map[string]any        `json:"spec"`
}

func policyCases(t testing.TB) (all []policyCase) {
	t.Helper()
	files, err := filepath.Glob("testdata/policies/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := policyCase{name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		if err := yaml.UnmarshalStrict(content, &c); err != nil {
			t.Fatal(file, err)
		}
		all = append(all, c)
	}
	return all
}

// add adds the policy and its bindings to p. Without matchConstraints, the policy is for new ConfigMaps and Deployments.
// It is only for objects with the label "row" and its name.
func (c policyCase) add(t testing.TB, p *Policies) {
	t.Helper()
	read := func(from json.RawMessage, into any) {
		if err := json.Unmarshal(from, into); err != nil {
			t.Fatal(c.name, err)
		}
	}
	restrict := func(of **admissionregistrationv1.MatchResources) {
		if *of == nil {
			rule := admissionregistrationv1.NamedRuleWithOperations{}
			rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
			rule.APIGroups, rule.APIVersions, rule.Resources = []string{"", "apps"}, []string{"v1"}, []string{"configmaps", "deployments"}
			*of = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}}
		}
		(*of).ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"row": c.name}}
	}
	meta := func(i int) metav1.ObjectMeta { return metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", c.name, i)} }
	switch c.Kind {
	case "ValidatingAdmissionPolicy":
		v := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: c.name}}
		read(c.Spec, &v.Spec)
		restrict(&v.Spec.MatchConstraints)
		p.Validating = append(p.Validating, v)
		for i, spec := range c.Bindings {
			b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta(i)}
			read(spec, &b.Spec)
			b.Spec.PolicyName = c.name
			p.ValidatingBindings = append(p.ValidatingBindings, b)
		}
	case "MutatingAdmissionPolicy":
		m := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: c.name}}
		read(c.Spec, &m.Spec)
		restrict(&m.Spec.MatchConstraints)
		p.Mutating = append(p.Mutating, m)
		for i, spec := range c.Bindings {
			b := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta(i)}
			read(spec, &b.Spec)
			b.Spec.PolicyName = c.name
			p.MutatingBindings = append(p.MutatingBindings, b)
		}
	default:
		t.Fatalf("%s: unknown kind %q", c.name, c.Kind)
	}
}

// path returns the path of the objects in the API.
func (r policyRequest) path() string {
	root := "/api/v1"
	switch r.Resource {
	case "deployments":
		root = "/apis/apps/v1"
	case "widgets":
		root = "/apis/shop.example.com/v1"
	}
	return fmt.Sprintf("%s/namespaces/%s/%s", root, r.Namespace, r.Resource)
}

// object returns the object of the request with these data.
func (r policyRequest) object(t testing.TB, data map[string]string) []byte {
	t.Helper()
	doc := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	if data != nil {
		doc["data"] = data
	}
	switch r.Resource {
	case "widgets":
		doc = map[string]any{"apiVersion": "shop.example.com/v1", "kind": "Widget", "spec": map[string]any{}}
		if r.Spec != nil {
			doc["spec"] = r.Spec
		}
	case "deployments":
		labels := map[string]string{"app": "a"}
		container := map[string]any{"name": "app", "image": "shop:1"}
		spec := map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container}}}}
		maps.Copy(spec, r.Spec)
		doc = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}
	}
	doc["metadata"] = map[string]any{"name": r.Name, "namespace": r.Namespace, "labels": map[string]string{"row": r.Annotations["row"]}, "annotations": r.Annotations}
	encoded, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

var widgetsResource = schema.GroupVersionResource{Group: "shop.example.com", Version: "v1", Resource: "widgets"}

func widgetDefinition(t testing.TB) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(`
metadata: {name: widgets.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            default: {}
            properties:
              size: {type: integer, default: 1}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}}
`), &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// An outcome is what a client gets.
type outcome struct {
	Object   map[string]any
	Status   *metav1.Status
	Warnings []string
}

// withoutDrawnFields removes what differs between two servers: the fields that a server draws or counts.
func withoutDrawnFields(t testing.TB, object []byte, status *metav1.Status, warnings []string) outcome {
	t.Helper()
	o := outcome{Status: status, Warnings: warnings}
	if status != nil {
		o.Status = status.DeepCopy()
		o.Status.TypeMeta, o.Status.ListMeta = metav1.TypeMeta{}, metav1.ListMeta{}
		return o
	}
	if len(object) == 0 {
		return o
	}
	if err := json.Unmarshal(object, &o.Object); err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	metadata, _ := o.Object["metadata"].(map[string]any)
	for _, name := range []string{"uid", "creationTimestamp", "managedFields", "resourceVersion", "selfLink", "generation"} {
		delete(metadata, name)
	}
	delete(o.Object, "status")
	return o
}

// TestPoliciesAsOnAPIServer sends the requests of testdata/policies to the engine and to an API server with the same
// policies, and compares the objects, statuses and warnings.
func TestPoliciesAsOnAPIServer(t *testing.T) {
	server := apiservertest.Start(t, nil)
	var policies Policies
	cases := policyCases(t)
	mutates := apiservertest.HasMutatingPolicies(t, server.Config)
	if !mutates {
		cases = slices.DeleteFunc(cases, func(c policyCase) bool { return c.Kind == "MutatingAdmissionPolicy" })
	}
	for _, c := range cases {
		c.add(t, &policies)
	}
	for name, limits := range map[string]string{"limits": "2", "limits-large": "7"} {
		policies.Params = append(policies.Params, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"limits": "yes"}}, Data: map[string]string{"most": limits}})
	}
	teams := map[string]map[string]string{"shop": {"team": "a"}, "other": {"team": "b"}}
	widget := widgetDefinition(t)
	standard := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "standard", "namespace": "shop"},
		"spec": map[string]any{"ports": []any{map[string]any{"name": "web", "port": int64(80)}}},
	}}
	policies.Params = append(policies.Params, standard)
	if _, err := envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{widget.DeepCopy()}}); err != nil {
		t.Fatal(err)
	}
	install(t, server.Config, policies, teams, mutates)
	engine, err := New(Webhooks{}, Options{
		Namespaces: teams, Policies: policies, CRDs: []*apiextensionsv1.CustomResourceDefinition{widget},
		Default: func(object runtime.Object) { k8svalidation.Default(object) },
		Validate: func(object, old runtime.Object) field.ErrorList {
			if old != nil {
				return k8svalidation.ValidateUpdate(object, old)
			}
			return k8svalidation.Validate(object)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }() // it has no connections
	transport, err := rest.HTTPClientFor(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		for i, r := range c.Requests {
			t.Run(fmt.Sprintf("%s/%d", c.name, i), func(t *testing.T) {
				r.Resource, r.Namespace, r.Operation = cmp.Or(r.Resource, "configmaps"), cmp.Or(r.Namespace, "shop"), cmp.Or(r.Operation, admissionv1.Create)
				r.Name = cmp.Or(r.Name, fmt.Sprintf("%s-%d", c.name, i))
				if r.Annotations == nil {
					r.Annotations = map[string]string{}
				}
				r.Annotations["row"] = c.name
				want := r.send(t, transport, server.Config.Host)
				got := r.admit(t, engine)
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("the engine differs from the API server (-API server, +engine):\n%s", diff)
				}
			})
		}
	}
}

// admit sends the request to the engine.
func (r policyRequest) admit(t *testing.T, engine *Chain) outcome {
	t.Helper()
	req := Request{Operation: r.Operation, Resource: metav1.GroupVersionResource{Version: "v1", Resource: r.Resource}, Namespace: r.Namespace, Name: r.Name, DryRun: true}
	switch r.Resource {
	case "deployments":
		req.Resource.Group = "apps"
	case "widgets":
		req.Resource.Group = "shop.example.com"
	}
	if r.Operation != admissionv1.Delete {
		req.Object = r.object(t, r.Data)
	}
	switch r.Operation {
	case admissionv1.Update:
		req.OldObject = r.object(t, r.Old)
	case admissionv1.Delete:
		req.OldObject = r.object(t, r.Data)
	}
	result, err := engine.Admit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return withoutDrawnFields(t, result.Object, result.Rejection, result.Warnings)
}

// send sends the request to the API server as a dry run. It creates the stored object first if the request needs one.
func (r policyRequest) send(t *testing.T, client *http.Client, host string) outcome {
	t.Helper()
	do := func(method, path string, body []byte) (*http.Response, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, host+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		response, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }() // it was read
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, content
	}
	method, path, body, stored := http.MethodPost, r.path(), r.object(t, r.Data), []byte(nil)
	switch r.Operation {
	case admissionv1.Update:
		method, path, stored = http.MethodPut, path+"/"+r.Name, r.object(t, r.Old)
	case admissionv1.Delete:
		method, path, stored, body = http.MethodDelete, path+"/"+r.Name, body, nil
	}
	if stored != nil {
		if response, content := do(http.MethodPost, r.path(), stored); response.StatusCode != http.StatusCreated {
			t.Fatal(string(content))
		}
	}
	response, content := do(method, path+"?dryRun=All&fieldManager=admitkit", body)
	var warnings []string
	shown, _ := utilnet.ParseWarningHeaders(response.Header["Warning"])
	for _, w := range shown {
		warnings = append(warnings, w.Text)
	}
	if response.StatusCode >= http.StatusBadRequest {
		var status metav1.Status
		if err := json.Unmarshal(content, &status); err != nil {
			t.Fatal(err, string(content))
		}
		return withoutDrawnFields(t, nil, &status, warnings)
	}
	if r.Operation == admissionv1.Delete {
		content = nil
	}
	return withoutDrawnFields(t, content, nil, warnings)
}

// install creates the policies, their parameters and the namespaces, and waits until the API server evaluates the
// policies.
func install(t *testing.T, config *rest.Config, p Policies, namespaces map[string]map[string]string, mutates bool) {
	t.Helper()
	must := func(err error) {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	ctx, o, client := t.Context(), metav1.CreateOptions{}, kubernetes.NewForConfigOrDie(config)
	for name, labels := range namespaces {
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, o)
		must(err)
	}
	for _, object := range p.Params {
		switch object := object.(type) {
		case *corev1.ConfigMap:
			_, err := client.CoreV1().ConfigMaps(object.Namespace).Create(ctx, object, o)
			must(err)
		case *unstructured.Unstructured:
			_, err := dynamic.NewForConfigOrDie(config).Resource(widgetsResource).Namespace(object.GetNamespace()).Create(ctx, object, o)
			must(err)
		}
	}
	api := client.AdmissionregistrationV1()
	last := policyCase{name: "zz-last-validating", Kind: "ValidatingAdmissionPolicy", Spec: json.RawMessage(`{"validations":[{"expression":"false","message":"it is installed"}]}`), Bindings: []json.RawMessage{json.RawMessage(`{"validationActions":["Deny"]}`)}}
	lastMutating := policyCase{name: "zz-last-mutating", Kind: "MutatingAdmissionPolicy", Bindings: []json.RawMessage{json.RawMessage(`{}`)},
		Spec: json.RawMessage(`{"reinvocationPolicy":"Never","mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{metadata: Object.metadata{labels: {'installed': 'yes'}}}"}}]}`)}
	all := Policies{Mutating: slices.Clone(p.Mutating), MutatingBindings: slices.Clone(p.MutatingBindings), Validating: slices.Clone(p.Validating), ValidatingBindings: slices.Clone(p.ValidatingBindings)}
	last.add(t, &all)
	if mutates {
		lastMutating.add(t, &all)
	}
	for _, m := range all.Mutating {
		_, err := api.MutatingAdmissionPolicies().Create(ctx, m, o)
		must(err)
	}
	for _, v := range all.Validating {
		_, err := api.ValidatingAdmissionPolicies().Create(ctx, v, o)
		must(err)
	}
	for _, b := range all.MutatingBindings {
		_, err := api.MutatingAdmissionPolicyBindings().Create(ctx, b, o)
		must(err)
	}
	for _, b := range all.ValidatingBindings {
		_, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, b, o)
		must(err)
	}
	custom := func() error { // the API server reads the schema and the parameters of custom resources later
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "probe", "labels": map[string]any{"row": "custom-resource"}}}}
		_, err := dynamic.NewForConfigOrDie(config).Resource(widgetsResource).Namespace("shop").Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	probe := func(row string) (*corev1.ConfigMap, error) {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: row, Labels: map[string]string{"row": row}}}
		return client.CoreV1().ConfigMaps("shop").Create(ctx, c, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	var err error
	if wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, denied := probe(last.name)
		installed := denied != nil && strings.Contains(denied.Error(), "it is installed")
		if !mutates {
			return installed, nil
		}
		var changed *corev1.ConfigMap
		if changed, err = probe(lastMutating.name); err == nil {
			err = custom()
		}
		return installed && err == nil && changed.Labels["installed"] == "yes", nil
	}) != nil {
		t.Fatalf("the API server does not evaluate the policies: %v", err)
	}
}
