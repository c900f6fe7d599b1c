// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
)

// benchPod returns the JSON of a Pod with n containers that look as in a typical Deployment.
func benchPod(n int) []byte {
	pod := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-7d4b9c5f6-x2x9z", Namespace: "shop", UID: "6a9c3a5e-6f1b-4d52-9c29-3c1f6b9f1b0e",
			Labels: map[string]string{"app": "web", "pod-template-hash": "7d4b9c5f6"}, CreationTimestamp: metav1.Unix(1_700_000_000, 0)},
		Spec: corev1.PodSpec{ServiceAccountName: "web", RestartPolicy: corev1.RestartPolicyAlways, Volumes: []corev1.Volume{{Name: "config",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}}}},
	}
	for i := range n {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("app-", i), Image: "registry.example.com/shop/web:v1.2.3", Args: []string{"--port=8080", "--verbose"},
			Env:   []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "REGION", Value: "eu"}},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("128Mi")}},
			VolumeMounts:  []corev1.VolumeMount{{Name: "config", MountPath: "/etc/web", ReadOnly: true}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
		})
	}
	raw, err := json.Marshal(&pod)
	if err != nil {
		panic(err)
	}
	return raw
}

// BenchmarkUnmarshal compares Unmarshal with the decoder of sigs.k8s.io/json.
func BenchmarkUnmarshal(b *testing.B) {
	type projection struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Containers []struct {
				Name  string `json:"name"`
				Image string `json:"image"`
			} `json:"containers"`
		} `json:"spec"`
	}
	for _, n := range []int{2, 12, 300} {
		raw := benchPod(n)
		for _, decoder := range []struct {
			name      string
			unmarshal func([]byte, any) error
		}{{"admitkit", Unmarshal}, {"sigs.k8s.io", kjson.UnmarshalCaseSensitivePreserveInts}} {
			for into, fresh := range map[string]func() any{
				"typed": func() any { return new(corev1.Pod) }, "projection": func() any { return new(projection) },
				"unstructured": func() any { return new(map[string]any) },
			} {
				b.Run(fmt.Sprintf("%s/%s/%dB", decoder.name, into, len(raw)), func(b *testing.B) {
					b.ReportAllocs()
					b.SetBytes(int64(len(raw)))
					for b.Loop() {
						if err := decoder.unmarshal(raw, fresh()); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
