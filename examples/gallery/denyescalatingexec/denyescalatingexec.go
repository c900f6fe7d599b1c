// SPDX-License-Identifier: Apache-2.0

// Package denyescalatingexec reimplements DenyEscalatingExec, an admission controller that Kubernetes had until v1.20,
// as a hook: kubectl exec and kubectl attach are denied for Pods that are privileged or that share a namespace of their
// node.
//
// The original was k8s.io/kubernetes/plugin/pkg/admission/exec. The hook differs from it in one point: if the Pod cannot
// be read, the hook fails and the failurePolicy decides. The original denies with 403. Both deny if there is no such Pod.
//
// The hook also sees Pods in kube-system, as the original did. While the webhook is down, no user can exec or attach,
// but everything else in the cluster works.
package denyescalatingexec

import (
	"context"
	"errors"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hook returns the hook that denies exec and attach. The object of such a request contains only options, such as the
// command, so the hook reads the Pod.
func Hook(pods *reads.Reader[*corev1.Pod]) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:              "denyescalatingexec.example.com",
		Rules:             webhook.Rules(webhook.OnConnect("", "v1", "pods/exec", "pods/attach")),
		NamespaceSelector: &metav1.LabelSelector{}, // every namespace
	}, func(ctx context.Context, req *webhook.Request[metav1.PartialObjectMetadata]) error {
		pod, err := pods.Get(ctx, req.Namespace, req.Name)
		var problem string
		switch {
		case errors.Is(err, reads.ErrNotFound):
			problem = apierrors.NewNotFound(corev1.Resource("pods"), req.Name).Error()
		case err != nil:
			return err
		default:
			problem = escalation(&pod.Spec)
		}
		if problem == "" {
			return nil
		}
		return apierrors.NewForbidden(corev1.Resource("pods"), req.Name, errors.New(problem))
	})
}

// escalation returns the reason why a command in a container of the Pod could affect the node, or an empty string.
func escalation(spec *corev1.PodSpec) string {
	switch {
	case spec.HostNetwork:
		return "cannot exec into or attach to a container using host network"
	case spec.HostPID:
		return "cannot exec into or attach to a container using host pid"
	case spec.HostIPC:
		return "cannot exec into or attach to a container using host ipc"
	case slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), isPrivileged),
		slices.ContainsFunc(spec.EphemeralContainers, isPrivilegedEphemeral):
		return "cannot exec into or attach to a privileged container"
	}
	return ""
}

func isPrivileged(c corev1.Container) bool {
	return c.SecurityContext != nil && ptr.Deref(c.SecurityContext.Privileged, false)
}

func isPrivilegedEphemeral(c corev1.EphemeralContainer) bool {
	return isPrivileged(corev1.Container(c.EphemeralContainerCommon))
}
