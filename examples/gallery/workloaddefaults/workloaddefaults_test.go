// SPDX-License-Identifier: Apache-2.0

package workloaddefaults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// hook returns the hook for a cluster with one Namespace, team-a, whose owner label is shop.
func hook(t *testing.T) *webhook.Hook {
	t.Helper()
	config, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{OwnerLabel: "shop"}}}
	return Hook(gallerytest.NamespaceReader(namespace), config)
}

func list(pairs ...string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		all[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return all
}

// owned makes a ReplicaSet the controller of the Pod.
func owned(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop", UID: "a", Controller: ptr.To(true)}}
}

func completed(p *corev1.Pod) { p.Annotations = map[string]string{Annotation: "true"} }

func TestPods(t *testing.T) {
	t.Parallel()
	labelled := func(p *corev1.Pod) { p.Labels = map[string]string{OwnerLabel: "cart"} }
	resources := func(r corev1.ResourceRequirements) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Resources = r }
	}
	whole := func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Limits: list("memory", "1Gi")} }
	rows := []struct {
		reason string
		pod    *corev1.Pod
		want   corev1.ResourceList // requests of the container
		owner  string              // value of the label
	}{
		{"nothing is set", gallerytest.Pod(), list("cpu", "100m", "memory", "128Mi"), "shop"},
		{"a request is set", gallerytest.Pod(resources(corev1.ResourceRequirements{Requests: list("cpu", "1")})), list("cpu", "1", "memory", "128Mi"), "shop"},
		{"a limit is set", gallerytest.Pod(resources(corev1.ResourceRequirements{Limits: list("memory", "64Mi")})), list("cpu", "100m"), "shop"},
		{"the Pod has a limit", gallerytest.Pod(whole), list("cpu", "100m"), "shop"},
		{"the label is set", gallerytest.Pod(labelled), list("cpu", "100m", "memory", "128Mi"), "cart"},
		{"the template was completed", gallerytest.Pod(owned, completed), nil, ""},
		{"the template was not completed", gallerytest.Pod(owned), list("cpu", "100m", "memory", "128Mi"), "shop"},
		{"the annotation without a controller", gallerytest.Pod(completed), list("cpu", "100m", "memory", "128Mi"), "shop"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			marked := row.pod.Annotations[Annotation]
			decision, after := gallerytest.Call(t, hook(t), row.pod, nil)
			gallerytest.Denied(t, decision, "")
			if got := after.Spec.Containers[0].Resources.Requests; !equality.Semantic.DeepEqual(got, row.want) {
				t.Errorf("got the requests %v, want %v", got, row.want)
			}
			if got := after.Labels[OwnerLabel]; got != row.owner {
				t.Errorf("got the owner %q, want %q", got, row.owner)
			}
			if after.Annotations[Annotation] != marked {
				t.Error("the hook must not mark a Pod, which may get more containers")
			}
		})
	}
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	template := corev1.PodTemplateSpec{Spec: gallerytest.Pod(func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:v1"}}
	}).Spec}
	meta := metav1.ObjectMeta{Name: "shop", Namespace: "team-a"}
	check := func(kind string, got corev1.PodTemplateSpec) {
		t.Helper()
		for _, c := range append(got.Spec.InitContainers, got.Spec.Containers...) {
			if !equality.Semantic.DeepEqual(c.Resources.Requests, list("cpu", "100m", "memory", "128Mi")) {
				t.Errorf("%s: the container %s has the requests %v", kind, c.Name, c.Resources.Requests)
			}
		}
		if got.Labels[OwnerLabel] != "shop" || got.Annotations[Annotation] != "true" {
			t.Errorf("%s: got the labels %v and the annotations %v", kind, got.Labels, got.Annotations)
		}
	}
	_, deployment := gallerytest.On(t, hook(t), admissionv1.Create, appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments",
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}}, nil)
	check("Deployment", deployment.Spec.Template)
	_, job := gallerytest.On(t, hook(t), admissionv1.Create, batchv1.SchemeGroupVersion.WithKind("CronJob"), "cronjobs",
		&batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}}}, nil)
	check("CronJob", job.Spec.JobTemplate.Spec.Template)
}

func TestCustomWorkloads(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rollouts.yaml")
	content := "requests: {cpu: 100m}\nworkloads: [{kind: {group: shop.example.com, version: v1, kind: Rollout}, resource: rollouts, path: spec.template}]"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	rollout := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "shop.example.com/v1", "kind": "Rollout", "metadata": map[string]any{"name": "shop", "namespace": "team-a"}, "spec": spec,
		}}
	}
	h := Hook(gallerytest.NamespaceReader(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}), config)
	kind := schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Rollout"}
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app"}}}}
	_, after := gallerytest.On(t, h, admissionv1.Create, kind, "rollouts", rollout(map[string]any{"template": template, "steps": int64(2)}), nil)
	want := rollout(map[string]any{"steps": int64(2), "template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{Annotation: "true"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "resources": map[string]any{"requests": map[string]any{"cpu": "100m"}}}}},
	}})
	if !equality.Semantic.DeepEqual(after, want) {
		t.Errorf("got %v, want %v", after, want)
	}
}

func TestUnknownNamespaceFails(t *testing.T) {
	t.Parallel()
	elsewhere := gallerytest.Pod(func(p *corev1.Pod) { p.Namespace = "gone" })
	if got := gallerytest.Fails(t, hook(t), elsewhere, nil); !strings.Contains(got, "namespaces gone: does not exist") {
		t.Errorf("got %q", got)
	}
}

func TestIdempotent(t *testing.T) {
	t.Parallel()
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}}, Spec: gallerytest.Pod().Spec}
	gallerytest.Idempotent(t, func() *webhook.Hook { return hook(t) },
		gallerytest.Pod(owned), gallerytest.Pod(owned, completed),
		&appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team-a"},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
		})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	const custom = "requests: {cpu: 1}\nworkloads: "
	rows := []struct{ reason, content, want string }{
		{"valid", "requests: {cpu: 250m, ephemeral-storage: 1Gi}", ""},
		{"empty", "", "FILE:1: the file is empty: must be a map with the fields requests, workloads"},
		{"misspelt", "request: {cpu: 1}", `FILE:1: request: unknown field: did you mean requests?`},
		{"not a quantity", "requests: {cpu: many}", `FILE:1: requests[cpu]: Invalid value: "many": must be a quantity such as 100m, 2 or 128Mi`},
		{"negative", "requests: {cpu: -1}", `FILE:1: requests[cpu]: Invalid value: "-1": must be greater than zero`},
		{"a workload without a path", custom + "[{kind: {version: v1, kind: Rollout}, resource: rollouts}]", "FILE:2: workloads[0].path: Required value: set the path of the Pod template, such as spec.template"},
		{"a workload without a kind", custom + "[{resource: rollouts, path: spec.template}]", "FILE:2: workloads[0].kind.version: Required value: set the version of the kind, such as v1\nFILE:2: workloads[0].kind.kind: Required value: set the name"},
		{"a workload without a resource", custom + "[{kind: {version: v1, kind: Rollout}, path: spec.template}]", "FILE:2: workloads[0].resource: Required value: set the plural name of the kind, such as rollouts"},
		{"a path with an empty name", custom + "[{kind: {version: v1, kind: Rollout}, resource: rollouts, path: spec..template}]", `FILE:2: workloads[0].path: Invalid value: "spec..template": must be field names with dots between them`},
		{"a built-in kind", custom + "\n- {kind: {group: apps, version: v1, kind: Deployment}, resource: deployments, path: spec.template}", `FILE:3: workloads[0].kind: Forbidden: Deployment is built in: remove it`},
		{"a kind twice", custom + strings.Repeat("\n- {kind: {group: shop.example.com, version: v1, kind: Rollout}, resource: rollouts, path: spec.template}", 2), `FILE:4: workloads[1].kind: Duplicate value: "Rollout.shop.example.com"`},
		{"another case", custom + "[{kind: {Group: shop.example.com, version: v1, kind: Rollout}}]", "FILE:2: workloads[0].kind.Group: unknown field: did you mean group?"},
		{"not supported", "requests: {example.com/gpu: 1}", `FILE:1: requests[example.com/gpu]: Unsupported value: "example.com/gpu": supported values: "cpu", "ephemeral-storage", "memory"`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "requests.yaml")
			if err := os.WriteFile(file, []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := Load(file)
			want := strings.ReplaceAll(row.want, "FILE", file)
			switch {
			case (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want):
				t.Errorf("got %v, want %q", err, want)
			case err == nil && !equality.Semantic.DeepEqual(config.Requests, list("cpu", "250m", "ephemeral-storage", "1Gi")):
				t.Errorf("got %v", config.Requests)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("want an error for a file that does not exist")
	}
}
