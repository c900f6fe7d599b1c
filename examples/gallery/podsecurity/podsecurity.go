// SPDX-License-Identifier: Apache-2.0

// Package podsecurity reimplements Kubernetes' admission controller PodSecurity as hooks: labels on a Namespace choose
// one of the Pod Security Standards, privileged, baseline or restricted, and a version of it. The label enforce denies
// Pods that violate the standard, the label warn adds warnings, and the label audit adds annotations to the audit log.
// The hooks also warn about workloads whose Pods would violate it, and about existing Pods when a namespace gets a
// stricter label.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity. It leaves the decisions to the library
// k8s.io/pod-security-admission, and so do the hooks. The hooks differ from it as follows:
//
//   - The version "latest" is that of the library in the program. In the original, it is that of the API server.
//   - The keys of the audit annotations begin with the name of the hook, such as podsecurity.example.com/exempt. The
//     API server adds this prefix. The keys of the original begin with pod-security.kubernetes.io/.
//   - A warning that is longer than 120 characters is sent as several warnings, as the API server recommends.
//   - If a namespace cannot be read, the hook for Pods fails and the failurePolicy decides. With the default, Fail, the
//     API server answers with the code 500, as for the original. The message differs, and there is no audit annotation.
//   - If the hook for workloads fails, the request is admitted, because this hook never denies.
//   - Until the cache of Namespaces has synced, the program is not ready, so the failurePolicy decides. The original
//     waits up to ten seconds and then denies.
//   - The hooks are called for the subresources ephemeralcontainers and resize of a Pod. The original would also check
//     subresources that a later version of Kubernetes adds.
//   - The hooks are not called for objects in kube-system or in the namespace of the webhook, nor for these two
//     Namespaces themselves. Otherwise a cluster could not repair itself while the webhook is down. To leave out other
//     namespaces, use the exemptions of the configuration.
//   - The hooks have no metrics like pod_security_evaluations_total.
package podsecurity

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/pod-security-admission/admission"
	"k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hooks returns the hook for Pods and Namespaces, and the hook for workloads, which only warns. The configuration is
// that of [Load]. When a Namespace gets a stricter label, the hook lists its Pods, for at most a second.
func Hooks(namespaces *reads.Reader[*corev1.Namespace], pods admission.PodLister, config *Config) ([]*webhook.Hook, error) {
	policy, err := newPolicy(namespaces, pods, config)
	if err != nil {
		return nil, err
	}
	return []*webhook.Hook{
		webhook.ValidatingKinds(admissionregistrationv1.ValidatingWebhook{
			Name: "podsecurity.example.com",
			Rules: webhook.Rules(
				webhook.OnWrite("", "v1", "namespaces"),
				webhook.OnCreate("", "v1", "pods"),
				webhook.OnUpdate("", "v1", "pods", "pods/ephemeralcontainers", "pods/resize"),
			),
		}, check[corev1.Namespace](policy), check[corev1.Pod](policy)),
		webhook.ValidatingKinds(admissionregistrationv1.ValidatingWebhook{
			Name:          "workloads.podsecurity.example.com",
			FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
			Rules: webhook.Rules(
				webhook.OnWrite("", "v1", "podtemplates", "replicationcontrollers"),
				webhook.OnWrite("apps", "v1", "replicasets", "deployments", "statefulsets", "daemonsets"),
				webhook.OnWrite("batch", "v1", "jobs", "cronjobs"),
			),
		},
			check[corev1.PodTemplate](policy), check[corev1.ReplicationController](policy),
			check[appsv1.ReplicaSet](policy), check[appsv1.Deployment](policy), check[appsv1.StatefulSet](policy), check[appsv1.DaemonSet](policy),
			check[batchv1.Job](policy), check[batchv1.CronJob](policy)),
	}, nil
}

// check returns the handler for objects of type T.
func check[T any, P interface {
	*T
	runtime.Object
}](policy *admission.Admission) webhook.KindHandler {
	return webhook.On(func(ctx context.Context, req *webhook.Request[T]) error {
		return answer(req, policy.Validate(ctx, attributesOf[T, P](req)))
	})
}

// answer converts the library's response to the result of the hook. A response that is neither an admission nor a
// denial becomes an error without a status, so that the call fails.
func answer[T any](req *webhook.Request[T], response *admissionv1.AdmissionResponse) error {
	for _, warning := range response.Warnings {
		req.Warn(warning)
	}
	for key, value := range response.AuditAnnotations {
		if err := req.Audit(key, value); err != nil {
			return err
		}
	}
	if response.Allowed {
		return nil
	}
	denial := &apierrors.StatusError{ErrStatus: *response.Result}
	if !apierrors.IsForbidden(denial) && !apierrors.IsInvalid(denial) {
		return errors.New(response.AuditAnnotations["error"])
	}
	return denial
}

// attributes describes a request to the library. It decodes the old object only when the library asks for it.
type attributes[T any, P interface {
	*T
	runtime.Object
}] struct {
	*api.AttributesRecord
	req *webhook.Request[T]
}

func attributesOf[T any, P interface {
	*T
	runtime.Object
}](req *webhook.Request[T]) attributes[T, P] {
	return attributes[T, P]{&api.AttributesRecord{
		Name: req.Name, Namespace: req.Namespace, Operation: req.Operation, Username: req.UserInfo.Username,
		Kind: schema.GroupVersionKind(req.Kind), Resource: schema.GroupVersionResource(req.Resource), Subresource: req.SubResource,
		Object: P(req.Object),
	}, req}
}

func (a attributes[T, P]) GetOldObject() (runtime.Object, error) {
	old, err := a.req.OldObject()
	if err != nil {
		return nil, err
	}
	return P(old), nil
}

// namespaceGetter reads Namespaces for the library.
type namespaceGetter struct {
	namespaces *reads.Reader[*corev1.Namespace]
}

// GetNamespace returns a Namespace. If it does not exist, the error has the API server's message, as in the audit
// annotations of the original.
func (g namespaceGetter) GetNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace, err := g.namespaces.Get(ctx, "", name)
	if errors.Is(err, reads.ErrNotFound) {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	return namespace, err
}
