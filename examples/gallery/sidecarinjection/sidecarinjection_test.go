// SPDX-License-Identifier: Apache-2.0

package sidecarinjection

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/chain"
	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
)

var config = Config{Image: "mesh-proxy:v1"}

// pod applies the changes to a Pod with an init container, and returns it.
func pod(changes ...func(*corev1.Pod)) *corev1.Pod {
	setup := func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "a"}} }
	return gallerytest.Pod(append([]func(*corev1.Pod){setup}, changes...)...)
}

func label(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, key, value) }
}

func annotation(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func names(pod *corev1.Pod) string {
	var all []string
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, c.Name)
	}
	return strings.Join(all, " ")
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	hold, nativeSidecars := Config{Image: "a", HoldApplicationUntilProxyStarts: true}, Config{Image: "a", NativeSidecars: true}
	rows := []struct {
		reason string
		config Config
		pod    *corev1.Pod
		want   string // the names of all containers
	}{
		{"last", config, pod(), "setup app mesh-proxy"},
		{"the Pod asks for first", config, pod(annotation(HoldAnnotation, "true")), "setup mesh-proxy app"},
		{"first by default", hold, pod(), "setup mesh-proxy app"},
		{"the Pod asks for last", hold, pod(annotation(HoldAnnotation, "false")), "setup app mesh-proxy"},
		{"the Pod asks for a native sidecar", hold, pod(annotation(NativeAnnotation, "true")), "mesh-proxy setup app"},
		{"a native sidecar by default", nativeSidecars, pod(), "mesh-proxy setup app"},
		{"the Pod asks for no native sidecar", nativeSidecars, pod(annotation(NativeAnnotation, "false")), "setup app mesh-proxy"},
		{"opted out with a label", config, pod(label(InjectLabel, "false")), "setup app"},
		{"opted out with an annotation", config, pod(annotation(InjectLabel, "false")), "setup app"},
		{"the label takes precedence", config, pod(label(InjectLabel, "true"), annotation(InjectLabel, "false")), "setup app mesh-proxy"},
		{"in the host network", config, pod(func(p *corev1.Pod) { p.Spec.HostNetwork = true }), "setup app"},
		{"a mirror Pod", config, pod(annotation(corev1.MirrorPodAnnotationKey, "")), "setup app"},
		{"the user's proxy stays where it is", nativeSidecars, pod(func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: ContainerName}, corev1.Container{Name: "other"})
		}), "setup app mesh-proxy other"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			decision, after := gallerytest.Call(t, Hooks(row.config)[0], row.pod, nil)
			gallerytest.Denied(t, decision, "")
			if got := names(after); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			own := proxyOf(&after.Spec)
			if own == nil {
				if decision.Patch != nil {
					t.Errorf("the patch is %s", decision.Patch)
				}
				return
			}
			if mounted, _ := mountIn(own, nil); !mounted || !hasVolume(&after.Spec) || after.Annotations[StatusAnnotation] != "default" {
				t.Errorf("the Pod is not complete: %+v", after)
			}
			inits, held := strings.HasPrefix(row.want, ContainerName), strings.Contains(row.want, "setup "+ContainerName)
			if (own.RestartPolicy != nil) != inits || (own.StartupProbe != nil) != inits || (own.Lifecycle != nil) != held {
				t.Errorf("got the container %+v", own)
			}
		})
	}
}

// TestPodResources requires that the proxy adds no requests to a Pod whose own requests would then be too small.
func TestPodResources(t *testing.T) {
	t.Parallel()
	_, after := gallerytest.Call(t, Hooks(config)[0], pod(func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{} }), nil)
	if own := proxyOf(&after.Spec); len(own.Resources.Requests)+len(own.Resources.Limits) > 0 {
		t.Errorf("the proxy has the resources %v", own.Resources)
	}
}

func TestUsersProxy(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{"auto": config.Image, "mine:v1": "mine:v1"} {
		custom := corev1.Container{Name: ContainerName, Image: image, Args: []string{"--mine"}, VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: "/own"}}}
		_, after := gallerytest.Call(t, Hooks(config)[0], pod(func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, custom) }), nil)
		got := after.Spec.Containers[1]
		if got.Image != want || got.Args[0] != "--mine" || len(got.VolumeMounts) != 2 || got.VolumeMounts[1] != mount() {
			t.Errorf("%s: got %+v", image, got)
		}
	}
}

func TestDenials(t *testing.T) {
	t.Parallel()
	own := func(c corev1.Container) func(*corev1.Pod) {
		c.Name = ContainerName
		return func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, c) }
	}
	rows := map[string]func(*corev1.Pod){
		`metadata.labels[mesh.example.com/inject]: Unsupported value: "yes"`:                                     label(InjectLabel, "yes"),
		`metadata.annotations[mesh.example.com/inject]: Unsupported value: "yes"`:                                annotation(InjectLabel, "yes"),
		`metadata.annotations[mesh.example.com/native-sidecar]: Unsupported value: ""`:                           annotation(NativeAnnotation, ""),
		`metadata.annotations[mesh.example.com/hold-application-until-proxy-starts]: Unsupported value: "1"`:     annotation(HoldAnnotation, "1"),
		`spec.volumes[0].name: Invalid value: "mesh-proxy-token": the name is reserved`:                          func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: VolumeName}} },
		`spec.containers[1].volumeMounts[0].mountPath: Invalid value: "/var/run/secrets/mesh/"`:                  own(corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: MountPath + "/"}}}),
		`spec.containers[1].volumeDevices[0].devicePath: Invalid value: "/var/run/secrets/mesh": the path is re`: own(corev1.Container{VolumeDevices: []corev1.VolumeDevice{{Name: "a", DevicePath: MountPath}}}),
		`spec.initContainers[1].restartPolicy: Invalid value: "": the proxy must keep running`: func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: ContainerName})
		},
	}
	for want, change := range rows {
		decision, _ := gallerytest.Call(t, Hooks(config)[0], pod(change), nil)
		if decision.Allowed || decision.Result.Code != http.StatusUnprocessableEntity || !strings.Contains(decision.Result.Message, want) {
			t.Errorf("%s: got %+v", want, decision.Result)
		}
	}
}

// TestSelections checks which hook the API server calls, and that it never calls more than one. It uses the API
// server's own matching code.
func TestSelections(t *testing.T) {
	t.Parallel()
	type labels = map[string]string
	rows := []struct {
		namespace, pod      labels
		byDefault, byCanary string // the start of the name of the hook that is called
	}{
		{nil, nil, "", ""},
		{nil, labels{InjectLabel: "true"}, "object", ""},
		{nil, labels{RevisionLabel: "canary"}, "", "rev.object"},
		{nil, labels{RevisionLabel: "default"}, "rev.object", ""},
		{nil, labels{RevisionLabel: "canary", InjectLabel: "true"}, "", "rev.object"},
		{nil, labels{RevisionLabel: "canary", InjectLabel: "false"}, "", ""},
		{labels{InjectionLabel: "enabled"}, nil, "namespace", ""},
		{labels{InjectionLabel: "enabled"}, labels{InjectLabel: "false"}, "", ""},
		{labels{InjectionLabel: "enabled"}, labels{RevisionLabel: "canary"}, "namespace", ""},
		{labels{InjectionLabel: "enabled", RevisionLabel: "canary"}, nil, "namespace", ""},
		{labels{InjectionLabel: "disabled"}, labels{InjectLabel: "true"}, "", ""},
		{labels{InjectionLabel: "disabled", RevisionLabel: "canary"}, labels{RevisionLabel: "canary"}, "", ""},
		{labels{RevisionLabel: "canary"}, nil, "", "rev.namespace"},
		{labels{RevisionLabel: "canary"}, labels{RevisionLabel: "default"}, "", "rev.namespace"},
		{labels{RevisionLabel: "canary"}, labels{InjectLabel: "false"}, "", ""},
		{labels{RevisionLabel: "default"}, labels{InjectLabel: "true"}, "rev.namespace", ""},
	}
	for i, row := range rows {
		for revision, want := range map[string]string{"default": row.byDefault, "canary": row.byCanary} {
			if got := called(t, Config{Image: "a", Revision: revision}, "team-a", row.namespace, row.pod); got != want {
				t.Errorf("row %d: of the revision %s, the API server calls %q, want %q", i, revision, got, want)
			}
		}
	}
	if got := called(t, config, "kube-system", labels{InjectionLabel: "enabled"}, nil); got != "" {
		t.Errorf("kube-system: got %s", got)
	}
}

// called returns the names of the hooks that the API server calls for a Pod, without their common suffix.
func called(t *testing.T, config Config, namespace string, namespaceLabels, podLabels map[string]string) string {
	t.Helper()
	configuration := configurationOf(t, Hooks(config))
	c, err := chain.New(chain.Webhooks{Mutating: []*admissionregistrationv1.MutatingWebhookConfiguration{configuration}},
		chain.Options{Namespaces: map[string]map[string]string{namespace: namespaceLabels}})
	if err != nil {
		t.Fatal(err)
	}
	object, err := json.Marshal(pod(func(p *corev1.Pod) { p.Namespace, p.Labels = namespace, podLabels }))
	if err != nil {
		t.Fatal(err)
	}
	explanation, err := c.Explain(t.Context(), chain.Request{
		Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: namespace, Object: object,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, w := range explanation.Webhooks {
		if !slices.ContainsFunc(w.Predicates, func(p chain.Predicate) bool { return p.Result != chain.Holds }) {
			all = append(all, strings.TrimSuffix(w.Webhook, ".sidecarinjection.example.com"))
		}
	}
	return strings.Join(all, " ")
}

func configurationOf(t *testing.T, hooks []*webhook.Hook) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	configuration, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "test", URL: "https://127.0.0.1"}, hooks...)
	if err != nil {
		t.Fatal(err)
	}
	return configuration
}

func TestLoad(t *testing.T) {
	t.Parallel()
	rows := []struct{ reason, content, want string }{
		{"valid", "image: a\nrevision: canary\nholdApplicationUntilProxyStarts: true\nnativeSidecars: true\n", ""},
		{"empty", "", "FILE:1: the file is empty: must be a map with the fields holdApplicationUntilProxyStarts, image, nativeSidecars, revision"},
		{"no image", "nativeSidecars: true\n", "FILE:1: image: Required value: set the image of the proxy"},
		{"misspelt", "image: a\nrev: b\n", `FILE:2: rev: unknown field: allowed are holdApplicationUntilProxyStarts, image, nativeSidecars, revision`},
		{"revision", "image: a\nrevision: A b\n", `FILE:2: revision: Invalid value: "A b"`},
		{"image", "image: auto\n", `FILE:1: image: Invalid value: "auto": this value stands for the image of the injector`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "injector.yaml")
			if err := os.WriteFile(file, []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Load(file)
			want := strings.ReplaceAll(row.want, "FILE", file)
			switch {
			case (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want):
				t.Errorf("got %v, want %q", err, want)
			case err == nil && got != (Config{Revision: "canary", Image: "a", HoldApplicationUntilProxyStarts: true, NativeSidecars: true}):
				t.Errorf("got %+v", got)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("want an error for a file that does not exist")
	}
}

// TestIdempotent runs the harness on the hook for Namespaces that select the revision, and with fewer samples on the
// hook for Pods that select it. The other two hooks have the same handler.
func TestIdempotent(t *testing.T) {
	t.Parallel()
	complete := pod(func(p *corev1.Pod) {
		own := proxy(config.Image)
		own.VolumeMounts = []corev1.VolumeMount{mount()}
		p.Spec.Containers, p.Spec.Volumes = append(p.Spec.Containers, own), []corev1.Volume{volume()}
	})
	custom := pod(func(p *corev1.Pod) {
		own := proxy(autoImage)
		own.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers = append(p.Spec.InitContainers, own)
	})
	samples := []runtime.Object{pod(), pod(annotation(HoldAnnotation, "true")), pod(annotation(NativeAnnotation, "true")), complete, custom}
	for i, namespace := range []map[string]string{{RevisionLabel: "default"}, nil} {
		registration := configurationOf(t, Hooks(config)).Webhooks[i]
		if namespace == nil {
			samples = []runtime.Object{pod(label(RevisionLabel, "default"))}
		}
		idempotence.Check(t, idempotence.Handler(registration, func() http.Handler { return Hooks(config)[i] }), idempotence.Options{
			Samples: samples, Objects: 10, Budget: 10 * time.Minute, // enough for a slow machine
			Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: namespace}}},
		})
	}
}
