// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"fmt"
	"testing"

	kjson "sigs.k8s.io/json"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/patch"
)

// benchmarkReview returns an AdmissionReview for the creation of a Pod with this many containers.
func benchmarkReview(tb testing.TB, containers int) []byte {
	tb.Helper()
	pod := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-7d4b9c6f5-", Namespace: "shop", Labels: map[string]string{"app": "web", "pod-template-hash": "7d4b9c6f5"}},
	}
	for i := range containers {
		name := fmt.Sprint("container-", i)
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: name, Image: "registry.example.com/shop/" + name + ":1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
			Args:                     []string{"--listen=:8080", "--match=<html> && more"},
			Env:                      []corev1.EnvVar{{Name: "REGION", Value: "eu-west-1"}, {Name: "LEVEL", Value: "info"}},
			Ports:                    []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			VolumeMounts:             []corev1.VolumeMount{{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
			TerminationMessagePath:   corev1.TerminationMessagePathDefault,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		})
	}
	object, err := json.Marshal(pod)
	if err != nil {
		tb.Fatal(err)
	}
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	resource := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"},
		Request: &admissionv1.AdmissionRequest{
			UID: "0df28fbd-5f5f-11e8-bc74-36e6bb280816", Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
			Namespace: "shop", Operation: admissionv1.Create, DryRun: new(bool),
			UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:kube-system:replicaset-controller", UID: "d7d9d8d4",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}},
			Object:  runtime.RawExtension{Raw: object},
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return append(body, '\n')
}

// BenchmarkDecode compares Decode with what other webhooks do: decode into the API type.
func BenchmarkDecode(b *testing.B) {
	for _, row := range []struct {
		size       string
		containers int
	}{{"2KB", 2}, {"9KB", 15}, {"200KB", 375}} {
		body := benchmarkReview(b, row.containers)
		b.Run("size="+row.size+"/with=review", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("size="+row.size+"/with=sigs.k8s.io-json", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var review admissionv1.AdmissionReview
				if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &review); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	req := want(func(r *Request) { r.UID = "0df28fbd-5f5f-11e8-bc74-36e6bb280816" })
	denied := Deny(metav1.Status{Code: 422, Message: "spec.replicas: must be odd"})
	change := patch.Patch{
		{Op: patch.Add, Path: "/metadata/labels/team", Value: json.RawMessage(`"shop"`)},
		{Op: patch.Add, Path: "/spec/containers/-", Value: json.RawMessage(`{"name":"proxy","image":"registry.example.com/proxy:1"}`)},
	}
	for _, row := range []struct {
		name     string
		decision *Decision
		patch    patch.Patch
	}{{"allowed", Allow(), nil}, {"mutated", Allow(), change}, {"denied", denied, nil}} {
		b.Run("answer="+row.name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = AppendMutating(dst[:0], &req, row.decision, row.patch)
			}
		})
	}
}
