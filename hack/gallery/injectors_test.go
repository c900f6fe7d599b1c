// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/gallery/podpreset"
	"github.com/admitkit/admitkit/examples/gallery/sidecarinjection"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// injectors returns the controllers that add parts to Pods. Kubernetes has none of them, or no longer has it.
func injectors() []*controller {
	return []*controller{{
		name: "SidecarInjection", generate: (*generator).podRequest, hooks: func(*testing.T, cluster, string) []*webhook.Hook {
			return sidecarinjection.Hooks(sidecarinjection.Config{Image: "proxy:v1"})
		},
		broken: limitedLater(),
	}, {
		name: "PodPreset", generate: (*generator).podRequest, hooks: func(*testing.T, cluster, string) []*webhook.Hook {
			return []*webhook.Hook{podpreset.Hook(presets())}
		},
	}}
}

// presets returns a preset for each of some Namespaces.
func presets() (list []podpreset.Preset) {
	of := corev1.LocalObjectReference{Name: "database"}
	for _, namespace := range []string{"plain", "empty", "ns-0", "ns-1", "ns-2", "ns-3", "ns-4", "ns-5"} {
		list = append(list, podpreset.Preset{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "database"}, Spec: podpreset.Spec{
			Env:          []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
			EnvFrom:      []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: of}}},
			Volumes:      []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: of}}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: "/settings"}},
		}})
	}
	return list
}

// TestInjectors runs the hooks of SidecarInjection and PodPreset with an API server. Their originals are not part of
// Kubernetes. A later webhook adds a container to every Pod, so the API server calls the hooks again.
func TestInjectors(t *testing.T) {
	need.APIServer(t)
	s := startServer(t, controllers())
	create(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mesh", Labels: map[string]string{sidecarinjection.RevisionLabel: "default"}}})
	var hooks []*webhook.Hook
	for _, c := range injectors() {
		hooks = append(hooks, c.hooksFor(t, cluster{}, "")...)
	}
	s.serveFor(t, "gallery", hooks...)
	s.serveFor(t, "the-rival-is-later", rival())

	t.Run("SidecarInjection", func(t *testing.T) {
		count := &steps{}
		defer func() { rowOf(injectors()[0]).onServers = count.String() }()
		for annotation, want := range map[string]string{
			"":                              "setup late app mesh-proxy",
			sidecarinjection.HoldAnnotation: "setup late mesh-proxy app", sidecarinjection.NativeAnnotation: "mesh-proxy setup late app",
			sidecarinjection.InjectLabel: "setup late app",
		} {
			pod := s.admit(t, "mesh", map[string]string{annotation: "true"}, map[string]string{sidecarinjection.InjectLabel: inject(annotation)})
			volumes := len(pod.Spec.Volumes)
			count.that(t, annotation, names(pod) == want && volumes <= 1 && (volumes == 1) == strings.Contains(want, "mesh-proxy"),
				"got %s and %d volumes, want %s", names(pod), volumes, want)
		}
		got := names(s.admit(t, "plain", nil, map[string]string{sidecarinjection.RevisionLabel: "default"}))
		count.that(t, "a Pod that selects the revision", got == "setup late app mesh-proxy", "got %s", got)
	})
	t.Run("PodPreset", func(t *testing.T) {
		count := &steps{}
		defer func() { rowOf(injectors()[1]).onServers = count.String() }()
		pod := s.admit(t, "plain", nil, nil)
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			count.that(t, c.Name, len(c.Env) == 1 && len(c.EnvFrom) == 1 && len(c.VolumeMounts) == 1, "got %+v", c)
		}
		count.that(t, "the Pod", len(pod.Spec.Volumes) == 1 && pod.Annotations[podpreset.AppliedPrefix+"database"] != "",
			"got the volumes %v and the annotations %v", pod.Spec.Volumes, pod.Annotations)
	})
}

// inject returns the value of the label. It is "false" only if the annotation has the key of the label, so that the
// label takes precedence.
func inject(annotation string) string {
	if annotation == sidecarinjection.InjectLabel {
		return "false"
	}
	return "true"
}

// rival returns a later webhook, which adds a container in front of the others.
func rival() *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: "rival.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if spec := &req.Object.Spec; !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == "late" }) {
			spec.Containers = slices.Insert(spec.Containers, 0, corev1.Container{Name: "late", Image: "late:v1"})
		}
		return nil
	})
}

// serveFor registers the hooks until the end of the test.
func (s *server) serveFor(t *testing.T, name string, hooks ...*webhook.Hook) {
	t.Helper()
	for i, hook := range hooks {
		hooks[i] = hook.WithLogger(logr.Discard())
	}
	stop, err := s.Serve(t.Context(), name, hooks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// admit creates a Pod as a dry run, and returns it as the API server would store it.
func (s *server) admit(t *testing.T, namespace string, annotations, labels map[string]string) *corev1.Pod {
	t.Helper()
	delete(annotations, "")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "shop-", Annotations: annotations, Labels: labels},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default", // which the admission controller ServiceAccount would set
			InitContainers:     []corev1.Container{{Name: "setup", Image: "setup:v1"}}, Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}},
		},
	}
	if err := s.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	return pod
}

// names returns the names of all containers.
func names(pod *corev1.Pod) string {
	var all []string
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, c.Name)
	}
	return strings.Join(all, " ")
}
