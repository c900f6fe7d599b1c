// SPDX-License-Identifier: Apache-2.0

package denyescalatingexec

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// in returns the hook for a cluster that has only this Pod. If pod is nil, Pods cannot be read.
func in(t *testing.T, pod *corev1.Pod) *webhook.Hook {
	t.Helper()
	pods, err := reads.New(reads.Options[*corev1.Pod]{
		Resource: "pods",
		Cached: func(_, name string) (*corev1.Pod, error) {
			return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
		},
		Live: func(_ context.Context, namespace, name string) (*corev1.Pod, error) {
			switch {
			case pod == nil:
				return nil, errors.New("timed out")
			case namespace != pod.Namespace || name != pod.Name:
				return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
			}
			return pod, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Hook(pods)
}

func connect(t *testing.T, subresource, namespace, name string) *admissionv1.AdmissionRequest {
	t.Helper()
	kind, options := "PodExecOptions", any(&corev1.PodExecOptions{Command: []string{"sh"}})
	if subresource == "attach" {
		kind, options = "PodAttachOptions", &corev1.PodAttachOptions{Stdin: true}
	}
	req := webhooktest.Request(t, admissionv1.Connect, corev1.SchemeGroupVersion.WithKind(kind), "pods/"+subresource, options, nil)
	req.Namespace, req.Name = namespace, name
	return req
}

func TestHook(t *testing.T) {
	const (
		network    = `pods "shop" is forbidden: cannot exec into or attach to a container using host network`
		pid        = `pods "shop" is forbidden: cannot exec into or attach to a container using host pid`
		ipc        = `pods "shop" is forbidden: cannot exec into or attach to a container using host ipc`
		privileged = `pods "shop" is forbidden: cannot exec into or attach to a privileged container`
	)
	context := func(privileged *bool) *corev1.SecurityContext { return &corev1.SecurityContext{Privileged: privileged} }
	with := func(c *corev1.SecurityContext) corev1.Container { return corev1.Container{SecurityContext: c} }
	rows := []struct {
		name   string
		change func(*corev1.PodSpec)
		denial string
	}{
		{"a plain Pod", func(*corev1.PodSpec) {}, ""},
		{"the network of the node", func(s *corev1.PodSpec) { s.HostNetwork = true }, network},
		{"the processes of the node", func(s *corev1.PodSpec) { s.HostPID = true }, pid},
		{"the IPC of the node", func(s *corev1.PodSpec) { s.HostIPC = true }, ipc},
		{"all of these", func(s *corev1.PodSpec) { s.HostIPC, s.HostPID, s.HostNetwork = true, true, true }, network},
		{"a user namespace", func(s *corev1.PodSpec) { s.HostUsers = ptr.To(false) }, ""},
		{"a security context without the field", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext = context(nil) }, ""},
		{"not privileged", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext = context(ptr.To(false)) }, ""},
		{"a privileged container", func(s *corev1.PodSpec) { s.Containers = append(s.Containers, with(context(ptr.To(true)))) }, privileged},
		{"a privileged init container", func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{with(context(ptr.To(true)))} }, privileged},
		{"a privileged ephemeral container", func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(with(context(ptr.To(true))))}}
		}, privileged},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			hook := in(t, gallerytest.Pod(func(p *corev1.Pod) { row.change(&p.Spec) }))
			for _, subresource := range []string{"exec", "attach"} {
				gallerytest.Denied(t, webhooktest.Decision(t, hook, connect(t, subresource, "team-a", "shop")), row.denial)
			}
		})
	}
}

func TestMissingAndUnreadablePods(t *testing.T) {
	decision := webhooktest.Decision(t, in(t, gallerytest.Pod()), connect(t, "exec", "team-b", "shop"))
	gallerytest.Denied(t, decision, `pods "shop" is forbidden: pods "shop" not found`)
	failure := webhooktest.Failure(t, in(t, nil), connect(t, "attach", "team-a", "shop"))
	if !strings.Contains(failure.Message, "reading pods team-a/shop: timed out") {
		t.Errorf("got %q", failure.Message)
	}
}

func TestEveryNamespace(t *testing.T) {
	_, configuration, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "test", URL: "https://127.0.0.1"}, in(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if s := configuration.Webhooks[0].NamespaceSelector; s == nil || len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		t.Errorf("the selector must match every namespace, kube-system too: got %v", s)
	}
}
