// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/internal/hooktest"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

const image = "registry.example.com/proxy:v1"

// newPod returns a Pod that requests the proxy, with these changes.
func newPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-", Labels: map[string]string{Label: "enabled"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func label(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[Label] = value }
}

func withVolume(v corev1.Volume) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, v) }
}

func withContainer(c corev1.Container) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, c) }
}

func withInit(c corev1.Container) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.InitContainers = append(p.Spec.InitContainers, c) }
}

func mounting(m corev1.VolumeMount) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, m) }
}

func injected(p *corev1.Pod) {
	if err := inject(p, image); err != nil {
		panic(err)
	}
}

var data = corev1.Volume{Name: "data"}

func TestInjectAddsMissingParts(t *testing.T) {
	socket := mount()
	rows := []struct {
		name   string
		reason string
		pod    *corev1.Pod
		want   string // init containers | containers | volumes, each container with its mounts
	}{
		{"plain", "every part is added", newPod(), "sidecar-proxy[+] | app[+] | +"},
		{"not asked", "no label, no proxy", newPod(func(p *corev1.Pod) { p.Labels = nil }), " | app[] | "},
		{"disabled", "the label declines the proxy", newPod(label("disabled")), " | app[] | "},
		{"order", "the user's parts keep their order, the proxy starts first",
			newPod(withInit(corev1.Container{Name: "b"}), withInit(corev1.Container{Name: "a"}), withContainer(corev1.Container{Name: "aa"}), withVolume(data)),
			"sidecar-proxy[+] b[+] a[+] | app[+] aa[+] | data +"},
		{"own output", "nothing is left to do", newPod(injected), "sidecar-proxy[+] | app[+] | +"},
		{"container added later", "its mount is missing although the volume is there",
			newPod(injected, withContainer(corev1.Container{Name: "late"})), "sidecar-proxy[+] | app[+] late[+] | +"},
		{"proxy removed", "the volume and the mounts do not mean that the proxy exists",
			newPod(injected, func(p *corev1.Pod) { p.Spec.InitContainers = nil }), "sidecar-proxy[+] | app[+] | +"},
		{"volume removed", "the container and the mounts do not mean that the volume exists",
			newPod(injected, func(p *corev1.Pod) { p.Spec.Volumes = nil }), "sidecar-proxy[+] | app[+] | +"},
		{"annotation set", "the hook never reads it",
			newPod(func(p *corev1.Pod) { p.Annotations = map[string]string{StatusAnnotation: "injected"} }), "sidecar-proxy[+] | app[+] | +"},
		{"moved to the back", "the proxy stays where another webhook moved it",
			newPod(injected, withInit(corev1.Container{Name: "a"}), func(p *corev1.Pod) { slices.Reverse(p.Spec.InitContainers) }),
			"a[+] sidecar-proxy[+] | app[+] | +"},
		{"user's own proxy", "a container of that name is the proxy, wherever it is",
			newPod(withContainer(corev1.Container{Name: ContainerName, Image: "mine:v1"})), " | app[+] sidecar-proxy[+] | +"},
		{"user's own volume", "the same name and content is the same volume", newPod(withVolume(volume())), "sidecar-proxy[+] | app[+] | +"},
		{"mounted by the user", "the path counts, however it is written",
			newPod(withVolume(volume()), mounting(corev1.VolumeMount{Name: VolumeName, MountPath: MountPath + "/"})),
			"sidecar-proxy[+] | app[sidecar-proxy-socket:/run/sidecar-proxy/] | +"},
		{"mounted elsewhere too", "a mount at another path does not count",
			newPod(withVolume(volume()), mounting(corev1.VolumeMount{Name: VolumeName, MountPath: "/other"})),
			"sidecar-proxy[+] | app[sidecar-proxy-socket:/other +] | +"},
		{"mount below", "nested mounts are legal", newPod(withVolume(data), mounting(corev1.VolumeMount{Name: "data", MountPath: MountPath + "/more"})),
			"sidecar-proxy[+] | app[data:/run/sidecar-proxy/more +] | data +"},
		{"mount kept", "the user's options of the mount are kept",
			newPod(withVolume(volume()), mounting(corev1.VolumeMount{Name: VolumeName, MountPath: MountPath, ReadOnly: true})),
			"sidecar-proxy[+] | app[+] | +"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			resp, after := callInject(t, row.pod)
			if !resp.Allowed {
				t.Fatalf("%s: denied: %s", row.reason, resp.Result.Message)
			}
			if got := sketch(after, socket); got != row.want {
				t.Errorf("%s:\n got %q\nwant %q", row.reason, got, row.want)
			}
			if again, _ := callInject(t, after); again.Patch != nil {
				t.Errorf("%s: a call with its own output returns a patch: %s", row.reason, again.Patch)
			}
		})
	}
}

func TestConflictsAreDenied(t *testing.T) {
	rows := []struct {
		name, reason string
		change       func(*corev1.Pod)
		want         string // the field
	}{
		{"label", "a misspelt value does not decline the proxy", label("true"), "metadata.labels[sidecar.example.com/inject]"},
		{"volume", "the content is not the proxy's", withVolume(corev1.Volume{Name: VolumeName}), "spec.volumes[0].name"},
		{"path", "another volume is mounted there", mounting(corev1.VolumeMount{Name: "data", MountPath: MountPath}), "spec.containers[0].volumeMounts[0].mountPath"},
		{"path with slash", "it is the same place", mounting(corev1.VolumeMount{Name: "data", MountPath: MountPath + "/"}), "spec.containers[0].volumeMounts[0].mountPath"},
		{"relative path", "the kubelet puts the slash before it", mounting(corev1.VolumeMount{Name: "data", MountPath: MountPath[1:]}), "spec.containers[0].volumeMounts[0].mountPath"},
		{"sub-path", "a folder of the volume is not the volume", mounting(corev1.VolumeMount{Name: VolumeName, MountPath: MountPath, SubPath: "x"}), "spec.containers[0].volumeMounts[0].mountPath"},
		{"device", "a path can be a device", func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: MountPath}}
		}, "spec.containers[0].volumeDevices[0].devicePath"},
		{"init container", "init containers have mount paths too", withInit(corev1.Container{Name: "i", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: MountPath}}}),
			"spec.initContainers[0].volumeMounts[0].mountPath"},
		{"plain init container", "it ends before the Pod runs", withInit(corev1.Container{Name: ContainerName}), "spec.initContainers[0].restartPolicy"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			pod := newPod(row.change)
			for range 2 { // every call must return the same denial
				resp, _ := callInject(t, pod)
				if resp.Allowed || resp.Result.Code != http.StatusUnprocessableEntity || resp.Patch != nil {
					t.Fatalf("%s: want a denial with code 422, got %+v", row.reason, resp)
				}
				if got := hooktest.Fields(resp); !slices.Equal(got, []string{row.want}) {
					t.Errorf("%s: fields are %q, want %q", row.reason, got, row.want)
				}
			}
			if resp := callVerify(t, pod); resp.Allowed || !slices.Contains(hooktest.Fields(resp), row.want) {
				t.Errorf("%s: verify: want the cause %s, got %q", row.reason, row.want, hooktest.Fields(resp))
			}
		})
	}
}

func TestVerifyDeniesIncompletePods(t *testing.T) {
	lateInit := func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "setup"})
	}
	rows := []struct {
		name string
		pod  *corev1.Pod
		want []string
	}{
		{"injected", newPod(injected), nil},
		{"not asked", newPod(func(p *corev1.Pod) { p.Labels = nil }), nil},
		{"disabled", newPod(label("disabled")), nil},
		{"nothing there", newPod(), []string{"spec.initContainers", "spec.volumes", "spec.containers[0].volumeMounts"}},
		{"late containers", newPod(injected, withContainer(corev1.Container{Name: "late"}), lateInit),
			[]string{"spec.initContainers[1].volumeMounts", "spec.containers[1].volumeMounts"}},
		{"proxy without its mount", newPod(injected, func(p *corev1.Pod) { p.Spec.InitContainers[0].VolumeMounts = nil }),
			[]string{"spec.initContainers[0].volumeMounts"}},
		{"proxy stopped", newPod(injected, func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }),
			[]string{"spec.initContainers[0].restartPolicy"}},
		{"path taken", newPod(injected, func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].Name = "data" }),
			[]string{"spec.containers[0].volumeMounts[0].mountPath"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			resp := callVerify(t, row.pod)
			if got := hooktest.Fields(resp); resp.Allowed != (row.want == nil) || !slices.Equal(got, row.want) {
				t.Errorf("allowed is %v and the fields are %q, want %q", resp.Allowed, got, row.want)
			}
			if row.name == "late containers" && !strings.Contains(resp.Result.Message, "container setup must mount") {
				t.Errorf("the message does not name the container: %s", resp.Result.Message)
			}
		})
	}
}

// TestUnknownFieldsStayWhereTheyAre sends a Pod with fields that the Go types of this program lack, as a newer API
// server may do. Each field must stay in its container.
func TestUnknownFieldsStayWhereTheyAre(t *testing.T) {
	const body = `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"` + Label + `":"enabled"}},"spec":{"future":1,` +
		`"containers":[{"name":"app","image":"shop:v1","future":2}],"initContainers":[{"name":"setup","future":3}]}}`
	hook := hooktest.Named(t, Hooks(image), "inject.sidecar.example.com")
	req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", body, nil)
	resp := webhooktest.Decision(t, hook, req)
	type part struct {
		Name   string `json:"name"`
		Future int    `json:"future"`
	}
	got := webhooktest.Patched[struct {
		Spec struct {
			Future         int    `json:"future"`
			Containers     []part `json:"containers"`
			InitContainers []part `json:"initContainers"`
		} `json:"spec"`
	}](t, req, resp).Spec
	want := []part{{"app", 2}, {ContainerName, 0}, {"setup", 3}}
	if all := slices.Concat(got.Containers, got.InitContainers); got.Future != 1 || !slices.Equal(all, want) {
		t.Errorf("got %+v", got)
	}
}

func callInject(t *testing.T, pod *corev1.Pod) (*admissionv1.AdmissionResponse, *corev1.Pod) {
	t.Helper()
	req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", pod, nil)
	resp := webhooktest.Decision(t, hooktest.Named(t, Hooks(image), "inject.sidecar.example.com"), req)
	return resp, webhooktest.Patched[corev1.Pod](t, req, resp)
}

func callVerify(t *testing.T, pod *corev1.Pod) *admissionv1.AdmissionResponse {
	t.Helper()
	req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", pod, nil)
	return webhooktest.Decision(t, hooktest.Named(t, Hooks(image), "verify.sidecar.example.com"), req)
}

// sketch describes a Pod in one line, with + for the proxy's volume and for each of its mounts.
func sketch(pod *corev1.Pod, socket corev1.VolumeMount) string {
	list := func(containers []corev1.Container) string {
		var words []string
		for _, c := range containers {
			var mounts []string
			for _, m := range c.VolumeMounts {
				text := m.Name + ":" + m.MountPath
				if m.Name == socket.Name && m.MountPath == socket.MountPath {
					text = "+"
				}
				mounts = append(mounts, text)
			}
			words = append(words, c.Name+"["+strings.Join(mounts, " ")+"]")
		}
		return strings.Join(words, " ")
	}
	var volumes []string
	for _, v := range pod.Spec.Volumes {
		volumes = append(volumes, strings.Replace(v.Name, VolumeName, "+", 1))
	}
	return list(pod.Spec.InitContainers) + " | " + list(pod.Spec.Containers) + " | " + strings.Join(volumes, " ")
}

func TestInjectedContainerIsANativeSidecar(t *testing.T) {
	pod := newPod(injected)
	c := pod.Spec.InitContainers[0]
	if c.Image != image || ptr.Deref(c.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
		t.Errorf("got image %s, restartPolicy %v", c.Image, c.RestartPolicy)
	}
	requests, _ := json.Marshal(c.Resources.Requests)
	limits, _ := json.Marshal(c.Resources.Limits)
	if string(requests) != string(limits) {
		t.Errorf("requests %s and limits %s differ: a Guaranteed Pod would lose its class", requests, limits)
	}
	if pod.Annotations[StatusAnnotation] != "injected" {
		t.Errorf("annotations are %v", pod.Annotations)
	}
}
