// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// typed converts an object to its Go type and leaves apiVersion and kind empty, as programs usually do.
func typed(t *testing.T, object runtime.Object) runtime.Object {
	t.Helper()
	u := object.(*unstructured.Unstructured)
	into, ok := map[string]runtime.Object{
		"admissionregistration.k8s.io/v1 MutatingWebhookConfiguration":        &admissionregistrationv1.MutatingWebhookConfiguration{},
		"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration":      &admissionregistrationv1.ValidatingWebhookConfiguration{},
		"admissionregistration.k8s.io/v1beta1 MutatingWebhookConfiguration":   &admissionregistrationv1beta1.MutatingWebhookConfiguration{},
		"admissionregistration.k8s.io/v1beta1 ValidatingWebhookConfiguration": &admissionregistrationv1beta1.ValidatingWebhookConfiguration{},
		"v1 Namespace":                           &corev1.Namespace{},
		"v1 Service":                             &corev1.Service{},
		"v1 Pod":                                 &corev1.Pod{},
		"apps/v1 Deployment":                     &appsv1.Deployment{},
		"apps/v1 StatefulSet":                    &appsv1.StatefulSet{},
		"apps/v1 DaemonSet":                      &appsv1.DaemonSet{},
		"autoscaling/v2 HorizontalPodAutoscaler": &autoscalingv2.HorizontalPodAutoscaler{},
		"apiextensions.k8s.io/v1 CustomResourceDefinition": &apiextensionsv1.CustomResourceDefinition{},
	}[u.GetAPIVersion()+" "+u.GetKind()]
	if !ok {
		t.Fatalf("%s %s has no Go type here", u.GetAPIVersion(), u.GetKind())
	}
	document := u.DeepCopy().Object
	delete(document, "apiVersion")
	delete(document, "kind")
	encoded, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// TestGoTypes checks that Go types without apiVersion and kind have the same findings as documents.
func TestGoTypes(t *testing.T) {
	texts := []string{
		join(mutating(exclude), ownService, ownDeployment, labelled, ownScaler), old(cleanValidating), old(mutating("-failurePolicy")),
		join(mutating(exclude), ownService, "apiVersion: v1\nkind: Pod\nmetadata: {namespace: sidecar, name: a, labels: {app: webhook}}\n"),
		join(mutating(exclude), ownService, "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {namespace: sidecar, name: a}\nspec: {template: {metadata: {labels: {app: webhook}}}}\n"),
	}
	files, err := filepath.Glob("testdata/projects/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		documents := parse(t, text)
		var objects []runtime.Object
		for _, d := range documents {
			objects = append(objects, typed(t, d))
		}
		want := Run(Input{Objects: documents}, Options{Now: clock})
		if diff := cmp.Diff(want, Run(Input{Objects: objects}, Options{Now: clock})); diff != "" {
			t.Errorf("%s\n(-documents +types)\n%s", text, diff)
		}
	}
}

// TestOtherObjectsAreSkipped checks that other kinds and invalid objects are skipped.
func TestOtherObjectsAreSkipped(t *testing.T) {
	objects := append(parse(t, join("apiVersion: v1\nkind: Service\nspec: 3\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", cleanMutating)),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &unstructured.Unstructured{}, nil)
	if findings := Run(Input{Objects: objects}, Options{Now: clock}); len(findings) != 0 {
		t.Errorf("%+v", findings)
	}
}

// TestWrongTypes checks that a finding about a value of the wrong type names the field and both types.
func TestWrongTypes(t *testing.T) {
	for change, want := range map[string]string{
		`timeoutSeconds: "5"`:                            "timeoutSeconds is a string, but must be a number",
		"timeoutSeconds: true":                           "timeoutSeconds is a boolean, but must be a number",
		"admissionReviewVersions: v1":                    "admissionReviewVersions is a string, but must be a list",
		"failurePolicy: [Fail]":                          "failurePolicy is a list, but must be a string",
		"sideEffects: 1":                                 "sideEffects is a number, but must be a string",
		"namespaceSelector: all":                         "namespaceSelector is a string, but must be an object",
		"objectSelector: {matchLabels: [a]}":             "matchLabels is a list, but must be an object",
		"rules: {operations: [CREATE]}":                  "rules is an object, but must be a list",
		"clientConfig: {service: {port: https}}":         "port is a string, but must be a number",
		"matchConditions: [{name: a, expression: true}]": "expression is a boolean, but must be a string",
	} {
		findings := Run(Input{Objects: parse(t, mutating(change))}, Options{Now: clock})
		if len(findings) != 1 || findings[0].Rule != "AK101" || findings[0].Message != want || findings[0].Webhook != "sidecar.example.com" {
			t.Errorf("%s: %+v, want %q", change, findings, want)
		}
	}
}
