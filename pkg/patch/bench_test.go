// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/received"
	"github.com/admitkit/admitkit/pkg/patch"
)

// benchPod returns a Pod like those of real clusters: each container takes about 540 bytes.
func benchPod(containers int) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-7d4b9c6f5-x2x9z", Namespace: "production", UID: "2f6a3c1e-3f1b-4a53-9a55-7f4a3b1f0c11",
			Labels:      map[string]string{"app.kubernetes.io/name": "web", "pod-template-hash": "7d4b9c6f5"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "web", NodeName: "node-17", RestartPolicy: corev1.RestartPolicyAlways,
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"},
			},
		},
	}
	for i := range containers {
		c := corev1.Container{
			Name: fmt.Sprintf("app-%d", i), Image: "registry.example.com/team/web:v1.42.0", ImagePullPolicy: corev1.PullIfNotPresent,
			Args:         []string{"--listen=:8080", "--log-level=info"},
			Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/web", ReadOnly: true}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("256Mi")},
				Limits:   corev1.ResourceList{"memory": resource.MustParse("512Mi")},
			},
		}
		for e := range 4 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", e), Value: "some value"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

var sidecar = corev1.Container{Name: "proxy", Image: "registry.example.com/proxy:v2", Args: []string{"proxy"}}

var benchEdits = []struct {
	name string
	edit func(*corev1.Pod)
}{
	{"nothing", func(*corev1.Pod) {}},
	{"append", func(p *corev1.Pod) {
		p.Annotations["example.com/injected"] = "true"
		p.Spec.Containers = append(p.Spec.Containers, sidecar)
	}},
	{"prepend", func(p *corev1.Pod) { p.Spec.Containers = slices.Insert(p.Spec.Containers, 0, sidecar) }},
	{"everywhere", func(p *corev1.Pod) {
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
		}
	}},
}

// BenchmarkDiff measures the work after the handler. In this package, that is Diff and encoding the patch. In
// controller-runtime, it is json.Marshal and a diff of two documents.
func BenchmarkDiff(b *testing.B) {
	for _, size := range []struct {
		name       string
		containers int
	}{{"2KB", 3}, {"9KB", 16}, {"200KB", 368}} {
		before := benchPod(size.containers)
		raw := mustEncode(before)
		for _, e := range benchEdits {
			after := before.DeepCopy()
			e.edit(after)
			b.Run(size.name+"/"+e.name+"/admitkit", func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(raw)))
				for b.Loop() {
					p, err := patch.Diff(raw, after)
					if err != nil {
						b.Fatal(err)
					}
					_ = p.AppendJSON(nil)
				}
			})
			b.Run(size.name+"/"+e.name+"/gomodules", func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(raw)))
				for b.Loop() {
					current, err := json.Marshal(after)
					if err != nil {
						b.Fatal(err)
					}
					ops, err := jsonpatch.CreatePatch(raw, current)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := json.Marshal(ops); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// benchLabels is a Go type that has only the labels of an object.
type benchLabels struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
}

// BenchmarkOriginal compares Diff with the Diff method of a received.Document. Diff reads the document again to find
// its values. A received.Document recorded them when it decoded the document, but only for the fields of the Go type.
func BenchmarkOriginal(b *testing.B) {
	for _, size := range []struct {
		name       string
		containers int
	}{{"2KB", 3}, {"9KB", 16}, {"200KB", 368}} {
		pod := benchPod(size.containers)
		raw := mustEncode(pod)
		var labels benchLabels
		labels.Metadata.Labels = pod.Labels
		benchmarkOriginal(b, size.name+"/Pod", raw, pod, new(corev1.Pod))
		benchmarkOriginal(b, size.name+"/projection", raw, &labels, new(benchLabels))
	}
}

func benchmarkOriginal(b *testing.B, name string, raw []byte, after, into any) {
	var base received.Document
	if _, err := base.Decode(raw, 0, 0, into); err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name string
		diff func() (patch.Patch, error)
	}{
		{"Diff", func() (patch.Patch, error) { return patch.Diff(raw, after) }},
		{"Base.Diff", func() (patch.Patch, error) { return base.Diff(after) }},
	} {
		b.Run(name+"/"+row.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := row.diff(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
