// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/gallery/workloaddefaults"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// rollouts is a custom workload. The test acts as its controller.
const rollouts = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: rollouts, singular: rollout, kind: Rollout, listKind: RolloutList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

var rolloutKind = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Rollout"}

const templates = "templates" // the Namespace

// TestPodsOfControllers runs the hook of WorkloadDefaults with an API server and the controllers that create Pods. The
// hook completes the templates of a Deployment, a CronJob and a Rollout. The Namespace gets its owner label only after
// that, so a Pod has the label if and only if the hook has changed the Pod itself. It must do so only for the Deployment
// that is older than the hook.
func TestPodsOfControllers(t *testing.T) {
	need.APIServer(t)
	s := startServer(t, controllers())
	if err := s.StartControllers("deployment-controller", "replicaset-controller", "cronjob-controller", "job-controller"); err != nil {
		t.Fatal(err)
	}
	kubectl(t, s, rollouts, "create", "-f", "-")
	kubectl(t, s, "", "wait", "--for=condition=Established", "--timeout=2m", "crd/rollouts.shop.example.com")
	create(t, s, labelled(templates, nil))
	create(t, s, deployment("older"))
	in, owners := serveTemplates(t, s)

	create(t, s, deployment("newer"))
	job := startCronJob(t, s)
	rollout := createRollout(t, s)
	labelNamespace(t, s, in)
	for _, name := range []string{"older", "newer"} {
		patch(t, s, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: templates}}, `{"spec":{"replicas":1}}`)
	}
	patch(t, s, job, `{"spec":{"suspend":false}}`)
	create(t, s, podOf(t, rollout))

	pods := podsByApp(t, s, 4)
	for app, pod := range pods {
		cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().String()
		completed, label := pod.Annotations[workloaddefaults.Annotation] != "", pod.Labels[workloaddefaults.OwnerLabel]
		if older := app == "older"; cpu != "100m" || completed == older || (label == "shop") != older {
			t.Errorf("the Pod of %s requests %s CPU; its template was completed: %v; its owner label is %q", app, cpu, completed, label)
		}
	}
	var sets appsv1.ReplicaSetList
	if err := s.Client.List(t.Context(), &sets, client.InNamespace(templates)); err != nil || len(sets.Items) != 2 {
		t.Errorf("got %d ReplicaSets of two Deployments (%v)", len(sets.Items), err)
	}
	want := []string{"CronJob", "Deployment", "Job of CronJob", "Pod of Job", "Pod of ReplicaSet", "Pod of Rollout", "ReplicaSet of Deployment", "Rollout"}
	if got := owners.kinds(); !slices.Equal(got, want) {
		t.Errorf("got the owners %q, want %q", got, want)
	}
}

// serveTemplates serves the hook, and a second one that only records owners.
func serveTemplates(t *testing.T, s *server) (cluster, *ownerLog) {
	t.Helper()
	in := cluster{client: s.typed, factory: informers.NewSharedInformerFactory(s.typed, 0)}
	config, err := workloaddefaults.Load("")
	if err != nil {
		t.Fatal(err)
	}
	config.Workloads = []webhook.Workload{{Kind: metav1.GroupVersionKind(rolloutKind), Resource: "rollouts", Path: "spec.template"}}
	owners := &ownerLog{seen: map[string]bool{}}
	recorder := webhook.ValidatingPodTemplates(admissionregistrationv1.ValidatingWebhook{Name: "owners.example.com"}, owners.record, config.Workloads...)
	hook := workloaddefaults.Hook(in.namespaces(t), config)
	in.factory.Start(t.Context().Done())
	in.factory.WaitForCacheSync(t.Context().Done())
	s.serveFor(t, "gallery", hook, recorder)
	return in, owners
}

// An ownerLog contains the kinds of the objects with a template that were created, and the kinds of their controllers.
type ownerLog struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (l *ownerLog) record(_ context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error {
	if req.Operation != admissionv1.Create {
		return nil
	}
	kind := req.Kind.Kind
	if owner := req.Controller(); owner != nil {
		kind = fmt.Sprintf("%s of %s", kind, owner.Kind)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[kind] = true
	return nil
}

func (l *ownerLog) kinds() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.seen))
}

// template returns a Pod template with the label app.
func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}}},
	}
}

// deployment returns a Deployment without replicas.
func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: templates}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name),
	}}
}

// startCronJob creates a CronJob that is overdue, and returns its first Job, which is suspended.
func startCronJob(t *testing.T, s *server) *batchv1.Job {
	t.Helper()
	job := batchv1.JobSpec{Suspend: ptr.To(true), Template: template("cron")}
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "cron", Namespace: templates}}
	cron.Spec = batchv1.CronJobSpec{Schedule: "@hourly", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}
	create(t, s, cron)
	patch(t, s, cron, fmt.Sprintf(`{"status":{"lastScheduleTime":%q}}`, time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339)), "status")
	var jobs batchv1.JobList
	waitFor(t, func() bool {
		return s.Client.List(t.Context(), &jobs, client.InNamespace(templates)) == nil && len(jobs.Items) == 1
	})
	return &jobs.Items[0]
}

func createRollout(t *testing.T, s *server) *unstructured.Unstructured {
	t.Helper()
	own := template("rollout")
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&own)
	if err != nil {
		t.Fatal(err)
	}
	rollout := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": content}}}
	rollout.SetGroupVersionKind(rolloutKind)
	rollout.SetNamespace(templates)
	rollout.SetName("rollout")
	create(t, s, rollout)
	return rollout
}

// podOf returns the Pod that the controller of a Rollout would create.
func podOf(t *testing.T, rollout *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	content, _, err := unstructured.NestedMap(rollout.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, pod); err != nil {
		t.Fatal(err)
	}
	pod.Name, pod.Namespace = "rollout", templates
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(rollout, rolloutKind)}
	return pod
}

// labelNamespace sets the owner label of the Namespace, and waits until the hook sees it.
func labelNamespace(t *testing.T, s *server, in cluster) {
	t.Helper()
	patch(t, s, labelled(templates, nil), fmt.Sprintf(`{"metadata":{"labels":{%q:"shop"}}}`, workloaddefaults.OwnerLabel))
	lister := in.factory.Core().V1().Namespaces().Lister()
	waitFor(t, func() bool {
		cached, err := lister.Get(templates)
		return err == nil && cached.Labels[workloaddefaults.OwnerLabel] == "shop"
	})
}

// podsByApp waits until there are so many Pods, and returns them by their label app.
func podsByApp(t *testing.T, s *server, n int) map[string]corev1.Pod {
	t.Helper()
	var list corev1.PodList
	waitFor(t, func() bool {
		return s.Client.List(t.Context(), &list, client.InNamespace(templates)) == nil && len(list.Items) >= n
	})
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Labels["app"]] = pod
	}
	if len(pods) != n || len(list.Items) != n {
		t.Errorf("got %d Pods with %d different labels, want %d", len(list.Items), len(pods), n)
	}
	return pods
}

// patch applies a JSON merge patch to the object or to a subresource.
func patch(t *testing.T, s *server, object client.Object, content string, subresource ...string) {
	t.Helper()
	change := client.RawPatch(types.MergePatchType, []byte(content))
	var err error
	if len(subresource) > 0 {
		err = s.Client.SubResource(subresource[0]).Patch(t.Context(), object, change)
	} else {
		err = s.Client.Patch(t.Context(), object, change)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, s *server, stdin string, args ...string) {
	t.Helper()
	if _, err := s.Kubectl(t.Context(), stdin, args...); err != nil {
		t.Fatal(err)
	}
}
