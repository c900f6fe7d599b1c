// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func smallPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Volumes:    []corev1.Volume{volume("data"), volume("logs")},
			Containers: []corev1.Container{{Name: "web", Image: "web:v1", VolumeMounts: []corev1.VolumeMount{mount("data", "/data")}}, {Name: "helper", Image: "helper"}},
		},
	}
}

func volume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func mount(name, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: name, MountPath: path}
}

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

type podCase struct {
	name string
	edit func(pod *corev1.Pod, web *corev1.Container)
	// paths lists the fields with errors, separated by spaces. It is empty for a valid Pod.
	paths string
}

const first = "spec.containers[0]."

var podCases = []podCase{
	{"as it is", func(*corev1.Pod, *corev1.Container) {}, ""},
	{"no name", func(pod *corev1.Pod, _ *corev1.Container) { pod.Name = "" }, "metadata.name"},
	{"generateName only", func(pod *corev1.Pod, _ *corev1.Container) { pod.Name, pod.GenerateName = "", "web-" }, ""},
	{"bad generateName", func(pod *corev1.Pod, _ *corev1.Container) { pod.Name, pod.GenerateName = "", "Web-" }, "metadata.generateName"},
	{"name with dots", func(pod *corev1.Pod, _ *corev1.Container) { pod.Name = "web.v1" }, ""},
	{"upper case name", func(pod *corev1.Pod, _ *corev1.Container) { pod.Name = "Web" }, "metadata.name"},
	{"bad label key", func(pod *corev1.Pod, _ *corev1.Container) { pod.Labels["a b"] = "x" }, "metadata.labels"},
	{"bad label value", func(pod *corev1.Pod, _ *corev1.Container) { pod.Labels["a"] = "x y" }, "metadata.labels[a]"},
	{"annotation key in upper case", func(pod *corev1.Pod, _ *corev1.Container) { pod.Annotations = map[string]string{"Example.com/X": " "} }, ""},
	{"bad annotation key", func(pod *corev1.Pod, _ *corev1.Container) { pod.Annotations = map[string]string{"a/b/c": ""} }, "metadata.annotations"},
	{"large annotation", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Annotations = map[string]string{"a": strings.Repeat("x", 256<<10)}
	}, "metadata.annotations"},
	{"bad finalizer", func(pod *corev1.Pod, _ *corev1.Container) { pod.Finalizers = []string{"mine"} }, "metadata.finalizers[0]"},

	{"no containers", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Containers = nil }, "spec.containers"},
	{"container twice", func(pod *corev1.Pod, web *corev1.Container) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: web.Name, Image: "x"})
	}, "spec.containers[2].name"},
	{"init container of the same name", func(pod *corev1.Pod, web *corev1.Container) {
		pod.Spec.InitContainers = []corev1.Container{{Name: web.Name, Image: "x"}}
	}, "spec.initContainers[0].name"},
	{"container without a name", func(_ *corev1.Pod, web *corev1.Container) { web.Name = "" }, first + "name"},
	{"container with a bad name", func(_ *corev1.Pod, web *corev1.Container) { web.Name = "web_1" }, first + "name"},
	{"no image", func(_ *corev1.Pod, web *corev1.Container) { web.Image = "" }, first + "image"},
	{"image and a space", func(_ *corev1.Pod, web *corev1.Container) { web.Image = "web " }, first + "image"},
	{"odd image", func(_ *corev1.Pod, web *corev1.Container) { web.Image = "?" }, ""},
	{"ephemeral container", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "x"}}}
	}, "spec.ephemeralContainers"},
	{"ephemeral container of the same name", func(pod *corev1.Pod, web *corev1.Container) {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: web.Name, Image: "x"}}}
	}, "spec.ephemeralContainers spec.ephemeralContainers[0].name"},

	{"volume twice", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Volumes[1].Name = "data" }, "spec.volumes[1].name"},
	{"volume without a name", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Volumes[1].Name = "" }, "spec.volumes[1].name"},
	{"volume with a bad name", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Volumes[1].Name = "-cfg" }, "spec.volumes[1].name"},
	{"volume without a source", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Volumes[1].EmptyDir = nil }, ""},
	{"volume with two sources", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.Volumes[1].Secret = &corev1.SecretVolumeSource{SecretName: "x"}
	}, "spec.volumes[1].secret"},
	{"secret without a name", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}
	}, "spec.volumes[1].secret.secretName"},
	{"mount of no volume", func(_ *corev1.Pod, web *corev1.Container) { web.VolumeMounts[0].Name = "gone" }, first + "volumeMounts[0].name"},
	{"mount in an init container of no volume", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "x", VolumeMounts: []corev1.VolumeMount{mount("gone", "/x")}}}
	}, "spec.initContainers[0].volumeMounts[0].name"},
	{"mount path twice", func(_ *corev1.Pod, web *corev1.Container) {
		web.VolumeMounts = append(web.VolumeMounts, mount("logs", "/data"))
	}, first + "volumeMounts[1].mountPath"},
	{"mount path twice with a slash", func(_ *corev1.Pod, web *corev1.Container) {
		web.VolumeMounts = append(web.VolumeMounts, mount("logs", "/data/"))
	}, ""},
	{"one volume at two paths", func(_ *corev1.Pod, web *corev1.Container) {
		web.VolumeMounts = append(web.VolumeMounts, mount("data", "/more"))
	}, ""},
	{"one path in two containers", func(pod *corev1.Pod, web *corev1.Container) { pod.Spec.Containers[1].VolumeMounts = web.VolumeMounts }, ""},
	{"no mount path", func(_ *corev1.Pod, web *corev1.Container) { web.VolumeMounts[0].MountPath = "" }, first + "volumeMounts[0].mountPath"},
	{"sub-path up", func(_ *corev1.Pod, web *corev1.Container) { web.VolumeMounts[0].SubPath = "a/../.." }, first + "volumeMounts[0].subPath"},

	{"environment twice", func(_ *corev1.Pod, web *corev1.Container) {
		web.Env = []corev1.EnvVar{{Name: "A"}, {Name: "A", Value: "2"}}
	}, ""},
	{"environment from one source twice", func(_ *corev1.Pod, web *corev1.Container) {
		from := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "x"}}}
		web.EnvFrom = []corev1.EnvFromSource{from, from}
	}, ""},
	{"environment without a name", func(_ *corev1.Pod, web *corev1.Container) { web.Env = []corev1.EnvVar{{Value: "2"}} }, first + "env[0].name"},
	{"environment with an odd name", func(_ *corev1.Pod, web *corev1.Container) { web.Env = []corev1.EnvVar{{Name: "a b.c"}} }, ""},
	{"environment with a bad name", func(_ *corev1.Pod, web *corev1.Container) { web.Env = []corev1.EnvVar{{Name: "A=1"}} }, first + "env[0].name"},
	{"environment with two values", func(_ *corev1.Pod, web *corev1.Container) {
		web.Env = []corev1.EnvVar{{Name: "A", Value: "1", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	}, first + "env[0].valueFrom"},
	{"environment from an unknown field", func(_ *corev1.Pod, web *corev1.Container) {
		web.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.replicas"}}}}
	}, first + "env[0].valueFrom.fieldRef.fieldPath"},

	{"one port on TCP and UDP", func(_ *corev1.Pod, web *corev1.Container) {
		web.Ports = []corev1.ContainerPort{{ContainerPort: 53}, {ContainerPort: 53, Protocol: "UDP"}, {ContainerPort: 53}}
	}, ""},
	{"port name twice", func(_ *corev1.Pod, web *corev1.Container) {
		web.Ports = []corev1.ContainerPort{{Name: "x", ContainerPort: 1}, {Name: "x", ContainerPort: 2}}
	}, first + "ports[1].name"},
	{"port name in two containers", func(pod *corev1.Pod, web *corev1.Container) {
		web.Ports = []corev1.ContainerPort{{Name: "x", ContainerPort: 1}}
		pod.Spec.Containers[1].Ports = web.Ports
	}, ""},
	{"host port twice", func(pod *corev1.Pod, web *corev1.Container) {
		web.Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 80}}
		pod.Spec.Containers[1].Ports = web.Ports
	}, "spec.containers[1].ports[0].hostPort"},
	{"ports of the host", func(pod *corev1.Pod, web *corev1.Container) {
		pod.Spec.HostNetwork = true
		web.Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 80}}
	}, first + "ports[0].hostPort"},
	{"port without a number", func(_ *corev1.Pod, web *corev1.Container) { web.Ports = []corev1.ContainerPort{{Name: "x"}} }, first + "ports[0].containerPort"},
	{"large port", func(_ *corev1.Pod, web *corev1.Container) { web.Ports = []corev1.ContainerPort{{ContainerPort: 65536}} }, first + "ports[0].containerPort"},
	{"unknown protocol", func(_ *corev1.Pod, web *corev1.Container) {
		web.Ports = []corev1.ContainerPort{{ContainerPort: 1, Protocol: "tcp"}}
	}, first + "ports[0].protocol"},

	{"limits only", func(_ *corev1.Pod, web *corev1.Container) {
		web.Resources.Limits = quantities("cpu", "0.5", "example.com/gpu", "1")
	}, ""},
	{"odd quantities", func(_ *corev1.Pod, web *corev1.Container) {
		web.Resources.Limits = quantities("cpu", "1500u", "memory", "1.5Gi", "ephemeral-storage", "1e3")
	}, ""},
	{"more than the limit", func(_ *corev1.Pod, web *corev1.Container) {
		web.Resources = corev1.ResourceRequirements{Requests: quantities("cpu", "2"), Limits: quantities("cpu", "1")}
	}, first + "resources.requests"},
	{"negative quantity", func(_ *corev1.Pod, web *corev1.Container) { web.Resources.Requests = quantities("memory", "-1") }, first + "resources.requests[memory]"},
	{"unknown resource", func(_ *corev1.Pod, web *corev1.Container) { web.Resources.Requests = quantities("gpu", "1") }, first + "resources.requests[gpu]"},
	{"extended resource without a limit", func(_ *corev1.Pod, web *corev1.Container) {
		web.Resources.Requests = quantities("example.com/gpu", "1")
	}, first + "resources.limits"},

	{"probe without a handler", func(_ *corev1.Pod, web *corev1.Container) { web.LivenessProbe = &corev1.Probe{} }, first + "livenessProbe"},
	{"probe with two handlers", func(_ *corev1.Pod, web *corev1.Container) {
		web.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}, GRPC: &corev1.GRPCAction{Port: 1},
		}}
	}, first + "livenessProbe.grpc"},
	{"probe of a bad port", func(_ *corev1.Pod, web *corev1.Container) {
		web.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(0)}}}
	}, first + "readinessProbe.httpGet.port"},
	{"probe of an init container", func(pod *corev1.Pod, _ *corev1.Container) {
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}}
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "x", ReadinessProbe: probe}}
	}, "spec.initContainers[0].readinessProbe"},
	{"probe of a sidecar", func(pod *corev1.Pod, _ *corev1.Container) {
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}}
		pod.Spec.InitContainers = []corev1.Container{{Name: "side", Image: "x", ReadinessProbe: probe, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	}, ""},

	{"equal tolerations", func(pod *corev1.Pod, _ *corev1.Container) {
		t := corev1.Toleration{Key: "a", Operator: "Exists"}
		pod.Spec.Tolerations = []corev1.Toleration{t, t, {Key: "a", Operator: "Exists", Effect: "NoExecute"}}
	}, ""},
	{"bad toleration", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Tolerations = []corev1.Toleration{{Value: "x"}} }, "spec.tolerations[0].operator"},
	{"unknown restart policy", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.RestartPolicy = "Sometimes" }, "spec.restartPolicy"},
	{"unknown DNS policy", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.DNSPolicy = "Sometimes" }, "spec.dnsPolicy"},
	{"no nameserver", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.DNSPolicy = "None" }, "spec.dnsConfig"},
	{"negative grace period", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.TerminationGracePeriodSeconds = new(int64(-5)) }, ""},
	{"no time", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.ActiveDeadlineSeconds = new(int64(0)) }, "spec.activeDeadlineSeconds"},
}

func edited(c podCase) *corev1.Pod {
	pod := smallPod()
	c.edit(pod, &pod.Spec.Containers[0])
	return pod
}

func pathsOf(errs field.ErrorList) []string {
	var paths []string
	for _, e := range errs {
		if !slices.Contains(paths, e.Field) {
			paths = append(paths, e.Field)
		}
	}
	slices.Sort(paths)
	return paths
}

func TestValidatePods(t *testing.T) {
	for _, c := range slices.Concat(podCases, hostCases) {
		t.Run(c.name, func(t *testing.T) {
			want := strings.Fields(c.paths)
			slices.Sort(want)
			pod := edited(c)
			if got := pathsOf(Validate(pod)); !slices.Equal(got, want) {
				t.Errorf("refused: %q, want %q", got, want)
			}
			Default(pod)
			if got := pathsOf(Validate(pod)); !slices.Equal(got, want) {
				t.Errorf("with the defaults, refused: %q, want %q", got, want)
			}
		})
	}
}

func TestPodsAgreeWithTheAPIServer(t *testing.T) {
	s := startServer(t)
	var n count
	for _, c := range slices.Concat(podCases, hostCases) {
		pod := edited(c)
		errs := Validate(pod)
		stored, refusal := s.create(t, pod)
		Default(pod)
		n.compare(t, c.name, pod, stored, errs, refusal)
	}
	if n.limited > 0 {
		t.Errorf("%+v: Validate must know every rule of these cases", n)
	}
}
