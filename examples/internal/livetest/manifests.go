// SPDX-License-Identifier: Apache-2.0

// Package livetest tests an example with a real API server. It starts the server for the tests of a package,
// and checks the manifests against the code, each other, and the server.
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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/genblock"
	"github.com/admitkit/admitkit/pkg/lint"
	"github.com/admitkit/admitkit/pkg/program"
)

var update = flag.Bool("update", false, "write manifests/webhooks.yaml and rbac.yaml from the code")

const dir = "manifests"

// CheckWebhooks checks that manifests/webhooks.yaml is the output of the program with --print-configuration and these
// flags. With the flag -update it writes the file.
func CheckWebhooks(t *testing.T, p program.Program, flags ...string) {
	t.Helper()
	args := append([]string{"--print-configuration", "--inject-ca-from=" + p.Name + "/" + p.Name}, flags...)
	checkPrinted(t, p, "webhooks.yaml", args)
}

// CheckRBAC checks that manifests/rbac.yaml is the output of the program with --print-rbac. With the flag -update it
// writes the file.
func CheckRBAC(t *testing.T, c *testcluster.Cluster, p program.Program) {
	t.Helper()
	checkPrinted(t, p, "rbac.yaml", append(Arguments(t, c), "--print-rbac"))
}

// checkPrinted checks that the generated block of a manifest is the output of the program with these arguments.
func checkPrinted(t *testing.T, p program.Program, name string, args []string) {
	t.Helper()
	var out bytes.Buffer
	if err := p.Run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := genblock.Replace(got, out.Bytes())
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(got, want) {
		t.Errorf("%s differs from the output of the program; run `go test -update`. It must be:\n%s", file, want)
	}
}

// CheckLint checks that package lint has no finding about the manifests, except for those that are ignored with a reason.
func CheckLint(t *testing.T, c *testcluster.Cluster, options lint.Options) {
	t.Helper()
	var input lint.Input
	for _, object := range render(t, c) {
		input.Objects = append(input.Objects, object)
	}
	for _, f := range lint.Run(input, options) {
		if f.Suppressed == "" {
			t.Errorf("%s %s %s %s: %s: %s", f.Rule, f.Object, f.Webhook, f.Path, f.Message, f.Fix)
		}
	}
}

// CheckAccepted checks that a real API server accepts the manifests and the Deployment's Pod without a
// warning. It skips the objects of cert-manager, because the server does not have their types.
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
	run(namespace, "create") // the other objects need it, even for a dry run
	defer DeleteNamespace(t, c, namespace.GetName())
	for _, object := range append(objects, podOf(t, objects)) {
		if object != namespace && object.GroupVersionKind().Group != "cert-manager.io" {
			run(object, "apply", "--dry-run=server")
		}
	}
}

// podOf returns a Pod with the template of the Deployment. Pod Security rejects invalid Pods, but only warns
// about Deployments.
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

// DeleteNamespace deletes a namespace and finishes the deletion in place of a controller manager. So another
// test can create the namespace again.
func DeleteNamespace(t *testing.T, c *testcluster.Cluster, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := client.IgnoreNotFound(c.Client.Delete(ctx, namespace))
	if err == nil {
		err = c.Client.SubResource("finalize").Update(ctx, namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}
