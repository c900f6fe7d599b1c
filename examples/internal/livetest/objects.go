// SPDX-License-Identifier: Apache-2.0

package livetest

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/examples/testcluster"
)

// Arguments returns the Deployment's arguments for the program.
func Arguments(t *testing.T, c *testcluster.Cluster) []string {
	t.Helper()
	return into[appsv1.Deployment](t, one(t, render(t, c), "Deployment", "")).Spec.Template.Spec.Containers[0].Args
}

// render returns the output of kustomize for the manifests.
func render(t *testing.T, c *testcluster.Cluster) []*unstructured.Unstructured {
	t.Helper()
	out, err := c.Kubectl(t.Context(), "", "kustomize", dir)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(out, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		objects = append(objects, object)
	}
	return objects
}

// one returns the object of this kind and name. If the name is empty, it returns the only object of the kind.
func one(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == kind && (name == "" || object.GetName() == name) {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d objects of kind %s named %q, want one", len(found), kind, name)
	}
	return found[0]
}

func lookup(t *testing.T, object *unstructured.Unstructured, at ...string) any {
	t.Helper()
	value, found, err := unstructured.NestedFieldCopy(object.Object, at...)
	if err != nil || !found {
		t.Fatalf("%s %s has no %s (%v)", object.GetKind(), object.GetName(), strings.Join(at, "."), err)
	}
	return value
}

func set(t *testing.T, object *unstructured.Unstructured, value any, at ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(object.Object, value, at...); err != nil {
		t.Fatal(err)
	}
}

func into[T any](t *testing.T, object *unstructured.Unstructured) T {
	t.Helper()
	var value T
	text, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}
