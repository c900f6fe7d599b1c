// SPDX-License-Identifier: Apache-2.0

// Package document generates the objects and AdmissionReviews that the benchmarks send. They are
// encoded as an API server encodes them, have a given size, and are the same in every run.
package document

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var created = metav1.NewTime(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))

// Pod returns a Pod as a ReplicaSet creates it. Each of its containers has env plain environment variables.
func Pod(containers, env int) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "web-7d4b9c6f5-", Namespace: "shop",
			UID: "8b0c6d3e-4a57-4d0c-9d0e-2f1f7c1b9a55", CreationTimestamp: created,
			Labels: map[string]string{"app.kubernetes.io/name": "web", "pod-template-hash": "7d4b9c6f5"},
			Annotations: map[string]string{
				"example.com/note": `owner <shop@example.com> & "friends"`,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d4b9c6f5",
				UID: "0c4e7b0e-5f5f-11e8-bc74-36e6bb280816", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "web"}, DefaultMode: new(int32(420)),
			}}}},
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)),
			DNSPolicy: corev1.DNSClusterFirst, ServiceAccountName: "web",
			SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: "default-scheduler", EnableServiceLinks: new(true),
		},
	}
	for i := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, container(i, env))
	}
	if containers > 1 {
		furnish(pod)
	}
	return pod
}

// furnish adds the fields that the smallest Pod lacks.
func furnish(pod *corev1.Pod) {
	pod.Annotations["prometheus.io/scrape"] = "true"
	pod.Annotations["prometheus.io/port"] = "9090"
	pod.Labels["app.kubernetes.io/part-of"] = "shop"
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Gi"))}}},
		corev1.Volume{Name: "kube-api-access-x2x9z", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(420)),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
			},
		}}})
	pod.Spec.Tolerations = []corev1.Toleration{
		{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(300))},
		{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(300))},
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		Time: &created, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(managed(pod)),
	}}
}

func container(i, env int) corev1.Container {
	c := corev1.Container{
		Name: fmt.Sprintf("app-%d", i), Image: fmt.Sprintf("registry.example.com/team/web:v1.42.%d", i),
		Command: []string{"/bin/sh", "-c", "exec /web --listen=:8080 >/proc/1/fd/1 2>&1"},
		Ports:   []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Env: []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"},
		}}},
		Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{"memory": resource.MustParse("512Mi")},
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("256Mi")},
		},
		VolumeMounts:           []corev1.VolumeMount{{Name: "config", ReadOnly: true, MountPath: "/etc/web"}},
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ImagePullPolicy: corev1.PullIfNotPresent,
	}
	for e := range env {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", e), Value: fmt.Sprintf("the value of setting %d", e)})
	}
	if env > 0 {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cache", MountPath: "/var/cache/web"},
			corev1.VolumeMount{Name: "kube-api-access-x2x9z", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"})
		c.ReadinessProbe = probe("/readyz", 10)
		c.LivenessProbe = probe("/healthz", 20)
		c.SecurityContext = &corev1.SecurityContext{
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true),
		}
	}
	return c
}

func probe(path string, period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP,
		}},
		TimeoutSeconds: 1, PeriodSeconds: period, SuccessThreshold: 1, FailureThreshold: 3,
	}
}

// managed returns the FieldsV1 with the fields that the creator of the Pod owns.
func managed(pod *corev1.Pod) string {
	var raw any
	mustDecode(MustEncode(pod), &raw)
	fields := owned(raw, "")
	for _, unowned := range []string{"f:apiVersion", "f:kind", "f:status"} {
		delete(fields, unowned)
	}
	return string(MustEncode(fields))
}

// owned converts a document to FieldsV1: f: before members, k: before elements with a key.
func owned(v any, dot string) map[string]any {
	fields := map[string]any{}
	if dot != "" {
		fields[dot] = map[string]any{}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			inner := ""
			if _, isObject := value.(map[string]any); isObject {
				inner = "."
			}
			fields["f:"+name] = owned(value, inner)
		}
	case []any:
		for _, element := range v {
			for _, key := range []string{"name", "mountPath", "containerPort", "uid"} {
				if object, isObject := element.(map[string]any); isObject && object[key] != nil {
					fields["k:"+string(MustEncode(map[string]any{key: object[key]}))] = owned(element, ".")
					break
				}
			}
		}
	}
	return fields
}

// MustEncode encodes v as the API server does, with HTML characters escaped. It panics if v cannot be encoded.
func MustEncode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

func mustDecode(doc []byte, into any) {
	if err := json.Unmarshal(doc, into); err != nil {
		panic(err)
	}
}

// WithUnknown adds an unknown field to the spec, and to the first element of a list in the spec. An API server
// that is newer than the webhook sends such fields.
func WithUnknown(object []byte, list string) []byte {
	const unknown = `"zzNewField":{"mode":"Auto","weight":7},`
	text := strings.Replace(string(object), `"spec":{`, `"spec":{`+unknown, 1)
	return []byte(strings.Replace(text, `"`+list+`":[{`, `"`+list+`":[{`+unknown, 1))
}

const uid = types.UID("705ab4f5-6393-11e8-b7cc-42010a800002")
