// SPDX-License-Identifier: Apache-2.0

// Package livetest tests an example with a real API server: it starts one for the tests of a
// package, and it checks manifests against the code, against each other, and against the server.
package livetest

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/examples/internal/program"
	"github.com/admitkit/admitkit/examples/testcluster"
)

var update = flag.Bool("update", false, "write manifests/webhooks.yaml from the code")

const dir = "manifests"

// CheckWebhooks compares manifests/webhooks.yaml with what the program prints.
func CheckWebhooks(t *testing.T, p program.Program) {
	t.Helper()
	args := []string{"--print-configuration", "--inject-ca-from=" + p.Name + "/" + p.Name}
	var out bytes.Buffer
	out.WriteString("# SPDX-License-Identifier: Apache-2.0\n" +
		"# Printed by " + p.Name + " " + strings.Join(args, " ") + "; a test compares.\n")
	if err := p.Run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "webhooks.yaml")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, out.Bytes()) {
		t.Errorf("%s is not what the code says; run `go test -update`. It must be:\n%s", file, out.String())
	}
}

// CheckAccepted has a real API server check everything but the objects of cert-manager, whose
// types it does not know, and the Pod that the Deployment makes. Nobody there warns either.
func CheckAccepted(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	objects := render(t, c)
	namespace := one(t, objects, "Namespace", "")
	run := func(object *unstructured.Unstructured, args ...string) {
		t.Helper()
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Kubectl(t.Context(), string(text), append(args, "-f", "-")...)
		if err != nil {
			t.Error(err)
		} else if strings.Contains(out, "Warning") {
			t.Errorf("%s %s: %s", object.GetKind(), object.GetName(), out)
		}
	}
	run(namespace, "create") // the others need it, a dry run too
	defer func() {
		if err := c.Client.Delete(context.WithoutCancel(t.Context()), namespace); err != nil {
			t.Error(err)
		}
	}()
	for _, object := range append(objects, podOf(t, objects)) {
		if object != namespace && object.GroupVersionKind().Group != "cert-manager.io" {
			run(object, "apply", "--dry-run=server")
		}
	}
}

// podOf returns a Pod from the template, since Pod Security only warns about Deployments.
func podOf(t *testing.T, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	deployment := one(t, objects, "Deployment", "")
	pod := &unstructured.Unstructured{Object: map[string]any{}}
	set(t, pod, lookup(t, deployment, "spec", "template", "spec"), "spec")
	set(t, pod, lookup(t, deployment, "spec", "template", "metadata"), "metadata")
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetName(deployment.GetName())
	pod.SetNamespace(deployment.GetNamespace())
	return pod
}

// render returns what kustomize makes of the folder.
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

// one returns the object of this kind and name, or the only one when the name is empty.
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
