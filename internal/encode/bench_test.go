// SPDX-License-Identifier: Apache-2.0

package encode_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/admitkit/admitkit/internal/encode"
	"github.com/admitkit/admitkit/internal/shape"
)

var smallSidecar = corev1.Container{Name: "proxy", Image: "registry.example.com/proxy:v2", Args: []string{"proxy"}}

func benchSidecar() corev1.Container {
	return corev1.Container{
		Name: "proxy", Image: "registry.example.com/mesh/proxy:v2.4.1", Args: []string{"proxy", "--log-level=info"},
		Env: []corev1.EnvVar{
			{Name: "MODE", Value: "sidecar"},
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		},
		Ports: []corev1.ContainerPort{{Name: "admin", ContainerPort: 15000, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		VolumeMounts:   []corev1.VolumeMount{{Name: "certs", MountPath: "/etc/certs", ReadOnly: true}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(15021)}}},
	}
}

func benchPod(n int) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-7d4b9c5f6-x2x9z", Namespace: "shop", UID: "6a9c3a5e-6f1b-4d52-9c29-3c1f6b9f1b0e",
			Labels: map[string]string{"app": "web", "pod-template-hash": "7d4b9c5f6"}, CreationTimestamp: metav1.Unix(1_700_000_000, 0)},
		Spec: corev1.PodSpec{ServiceAccountName: "web", RestartPolicy: corev1.RestartPolicyAlways, Volumes: []corev1.Volume{{Name: "config",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}}}},
	}
	for i := range n {
		c := benchSidecar()
		c.Name = fmt.Sprint("app-", i)
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

// BenchmarkAppend compares Append with encoding/json. The measurement includes the allocation of the output.
func BenchmarkAppend(b *testing.B) {
	sidecar := benchSidecar()
	loose := map[string]any{}
	if err := json.Unmarshal(oracleText(b, benchPod(2)), &loose); err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		value any
	}{
		{"small sidecar", &smallSidecar}, {"sidecar", &sidecar}, {"pod of 2", benchPod(2)}, {"pod of 12", benchPod(12)},
		{"untyped pod of 2", &loose}, {"env", &sidecar.Env[0]},
	} {
		v := reflect.ValueOf(row.value).Elem()
		s := shape.Of(v.Type())
		b.Run("admitkit/"+row.name, func(b *testing.B) {
			b.ReportAllocs()
			var buffer []byte
			for b.Loop() {
				var err error
				if buffer, err = encode.Append(buffer[:0], v, s); err != nil {
					b.Fatal(err)
				}
				kept = append([]byte(nil), buffer...)
			}
			b.SetBytes(int64(len(kept)))
		})
		b.Run("encoding/json/"+row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if kept, err = json.Marshal(row.value); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(kept)))
		})
	}
}

var kept []byte

func oracleText(tb testing.TB, x any) []byte {
	tb.Helper()
	text, err := oracle(reflect.ValueOf(x).Elem())
	if err != nil {
		tb.Fatal(err)
	}
	return text
}
