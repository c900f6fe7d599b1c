// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/internal/livetest"
	"github.com/admitkit/admitkit/examples/sidecar-injector/inject"
	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/pkg/webhook"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) { livetest.Main(m, &cluster) }

const image = "registry.example.com/proxy:v1"

// serve registers the hooks with the API server until the end of the test.
func serve(t *testing.T, name string, hooks ...*webhook.Hook) {
	t.Helper()
	stop, err := cluster.Serve(t.Context(), name, hooks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// create creates the Pod as a dry run and returns the object in the response.
func create(t *testing.T, spec corev1.PodSpec) (*corev1.Pod, error) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "shop-", Labels: map[string]string{inject.Label: "enabled"}},
		Spec:       spec,
	}
	err := cluster.Client.Create(t.Context(), pod, client.DryRunAll)
	return pod, err
}

func container(name string, mounts ...corev1.VolumeMount) corev1.Container {
	return corev1.Container{Name: name, Image: name + ":v1", VolumeMounts: mounts}
}

func TestPodGetsItsProxy(t *testing.T) {
	serve(t, "sidecar-injector", inject.Hooks(image)...)
	pod, err := create(t, corev1.PodSpec{
		InitContainers: []corev1.Container{container("setup")}, Containers: []corev1.Container{container("shop")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := pod.Spec.InitContainers[0]; got.Name != inject.ContainerName || got.Image != image {
		t.Errorf("the first init container is %s (%s)", got.Name, got.Image)
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != inject.MountPath {
			t.Errorf("%s mounts %v", c.Name, c.VolumeMounts)
		}
	}
	if pod.Annotations[inject.StatusAnnotation] != "injected" {
		t.Errorf("annotations are %v", pod.Annotations)
	}
}

// TestContainersOfALaterWebhookGetTheMount registers another webhook that adds a container after the injector. The API
// server must call the injector again, which adds the mount to that container.
func TestContainersOfALaterWebhookGetTheMount(t *testing.T) {
	serve(t, "sidecar-injector", inject.Hooks(image)...)
	serve(t, "the-rival-is-later", rival(func(p *corev1.Pod) {
		for _, c := range p.Spec.Containers {
			if c.Name == "rival" {
				return
			}
		}
		p.Spec.Containers = append(p.Spec.Containers, container("rival"))
	}))
	pod, err := create(t, corev1.PodSpec{Containers: []corev1.Container{container("shop")}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(pod.Spec.Containers); n != 2 || len(pod.Spec.InitContainers) != 1 || len(pod.Spec.Volumes) != 1 {
		t.Errorf("%d containers, init containers %v, volumes %v", n, pod.Spec.InitContainers, pod.Spec.Volumes)
	}
	for _, c := range pod.Spec.Containers {
		if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != inject.MountPath {
			t.Errorf("%s mounts %v", c.Name, c.VolumeMounts)
		}
	}
}

// TestNoPodIsStoredWithoutItsProxy registers another webhook that removes the proxy in every call. The validating hook
// must deny the Pod.
func TestNoPodIsStoredWithoutItsProxy(t *testing.T) {
	serve(t, "sidecar-injector", inject.Hooks(image)...)
	serve(t, "the-rival-is-later", rival(func(p *corev1.Pod) { p.Spec.InitContainers = nil }))
	_, err := create(t, corev1.PodSpec{Containers: []corev1.Container{container("shop")}})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the container sidecar-proxy is missing") {
		t.Errorf("got %v", err)
	}
}

// rival returns another mutating webhook, which applies the change. The API server calls it again whenever the injector
// has changed the Pod.
func rival(change func(*corev1.Pod)) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:               "rival.example.com",
		Rules:              webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		change(req.Object)
		return nil
	})
}

func TestConflictsAreDenied(t *testing.T) {
	serve(t, "sidecar-injector", inject.Hooks(image)...)
	_, err := create(t, corev1.PodSpec{
		Containers: []corev1.Container{container("shop", corev1.VolumeMount{Name: "data", MountPath: inject.MountPath})},
		Volumes:    []corev1.Volume{{Name: "data"}},
	})
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil {
		t.Fatalf("got %v", err)
	}
	if causes := status.ErrStatus.Details.Causes; len(causes) != 1 || causes[0].Field != "spec.containers[0].volumeMounts[0].mountPath" {
		t.Errorf("causes are %v", causes)
	}
}

// TestPodsWithoutTheLabelAreNotChanged creates a Pod that the objectSelector does not match. The API server must not
// call the injector for it.
func TestPodsWithoutTheLabelAreNotChanged(t *testing.T) {
	serve(t, "sidecar-injector", inject.Hooks(image)...)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "other"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container("other")}},
	}
	if err := cluster.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if len(pod.Spec.InitContainers) > 0 || len(pod.Spec.Volumes) > 0 || pod.Annotations != nil {
		t.Errorf("a Pod without the label was changed to %+v", pod.Spec)
	}
}
