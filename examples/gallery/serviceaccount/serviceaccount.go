// SPDX-License-Identifier: Apache-2.0

// Package serviceaccount reimplements Kubernetes' admission controller ServiceAccount as hooks: a Pod gets a
// ServiceAccount, and with it a token for the API server and the pull secrets for its images. An annotation on the
// ServiceAccount limits the Secrets of its Pods.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/serviceaccount. The hooks differ from it as follows:
//
//   - The token volume has a fixed name, [VolumeName]. In the original, the name ends with five random characters. The
//     hook must return the same result whenever it gets the same Pod. The name cannot occur twice: as in the original,
//     an existing volume with the prefix of the name is used as the token volume.
//   - If an ephemeral container refers to a Secret that is not allowed, the code is 403 and the reason Forbidden. The
//     original also intends a denial, but returns a plain error, for which the API server answers 500 Internal Server
//     Error.
//   - If the ServiceAccount cannot be read, the hook fails and the failurePolicy decides. The original denies the request.
//   - Both wait for a ServiceAccount with the name default, which a controller creates in each new namespace. The
//     original waits between 0.9 and 1.8 seconds, and the hooks up to 1.35 seconds, or until the deadline of the call.
//   - Until the cache of ServiceAccounts has synced, the program is not ready, so the failurePolicy decides. The original
//     waits up to ten seconds and then denies.
//   - Pods in kube-system, and in the namespace of the webhook, are not changed. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server. If you
//     disable the original, these Pods get no token: their manifests must set the ServiceAccount and the volume.
package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// DefaultName is the name of the ServiceAccount that Pods use if they name none.
const DefaultName = "default"

// EnforceAnnotation on a ServiceAccount limits its Pods to the Secrets that it lists, if the value is "true" or another
// true value of strconv.ParseBool.
const EnforceAnnotation = "kubernetes.io/enforce-mountable-secrets"

// Hooks returns the hook that completes new Pods, and the hook that checks Pods and ephemeral containers after all
// mutating webhooks.
func Hooks(accounts *reads.Reader[*corev1.ServiceAccount]) []*webhook.Hook {
	p := &policy{accounts}
	create := webhook.OnCreate("", "v1", "pods")
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:               "set.serviceaccount.example.com",
			Rules:              webhook.Rules(create),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, p.mutate),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:  "check.serviceaccount.example.com",
			Rules: webhook.Rules(create, webhook.OnUpdate("", "v1", "pods/ephemeralcontainers")),
		}, p.validate),
	}
}

type policy struct {
	accounts *reads.Reader[*corev1.ServiceAccount]
}

// mutate sets the ServiceAccount of a Pod, its pull secrets and the token volume. The kubelet deletes a mirror Pod that
// differs from the manifest of its static Pod, so mirror Pods are only checked.
func (p *policy) mutate(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	spec := &req.Object.Spec
	if isMirror(req.Object) {
		return p.validate(ctx, req)
	}
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName, spec.DeprecatedServiceAccount = DefaultName, DefaultName
	}
	account, err := p.account(ctx, req)
	if err != nil {
		return err
	}
	if ptr.Deref(either(spec.AutomountServiceAccountToken, account.AutomountServiceAccountToken), true) {
		mountToken(spec)
	}
	if len(spec.ImagePullSecrets) == 0 {
		spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	}
	return check(req, account)
}

// either returns first, or second if first is nil.
func either[T any](first, second *T) *T {
	if first != nil {
		return first
	}
	return second
}

// validate denies a Pod without a ServiceAccount, and a Pod with a Secret that its ServiceAccount does not allow. A mirror
// Pod must have neither a ServiceAccount nor Secrets.
func (p *policy) validate(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
	if req.Operation == admissionv1.Create && isMirror(req.Object) {
		if reason := notForMirrors(&req.Object.Spec); reason != "" {
			return deny(req, reason)
		}
		return nil
	}
	if req.Object.Spec.ServiceAccountName == "" {
		return deny(req, fmt.Sprintf("no service account specified for pod %s/%s", req.Namespace, req.Object.Name))
	}
	account, err := p.account(ctx, req)
	if err != nil {
		return err
	}
	return check(req, account)
}

// check denies a Pod that refers to a Secret that its ServiceAccount does not list. Updates are checked only for their
// ephemeral containers.
func check(req *webhook.Request[corev1.Pod], account *corev1.ServiceAccount) error {
	if enforced, err := strconv.ParseBool(account.Annotations[EnforceAnnotation]); err != nil || !enforced {
		return nil
	}
	if req.Operation == admissionv1.Create {
		if reason := notListed(account, &req.Object.Spec); reason != "" {
			return deny(req, reason)
		}
		return nil
	}
	if reason := notListedEphemeral(account, &req.Object.Spec); reason != "" {
		return webhook.Deny(reason)
	}
	return nil
}

// account returns the ServiceAccount of the Pod.
func (p *policy) account(ctx context.Context, req *webhook.Request[corev1.Pod]) (*corev1.ServiceAccount, error) {
	name := req.Object.Spec.ServiceAccountName
	account, err := p.find(ctx, req.Namespace, name)
	if errors.Is(err, reads.ErrNotFound) {
		return nil, deny(req, fmt.Sprintf("error looking up service account %s/%s: serviceaccount %q not found", req.Namespace, name, name))
	}
	return account, err
}

// How often find looks for a ServiceAccount with the name default, and how long it waits in between.
const (
	attempts = 10
	delay    = 150 * time.Millisecond
)

// find returns a ServiceAccount. If the default one does not exist yet, find waits for it.
func (p *policy) find(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	for attempt := 1; ; attempt++ {
		account, err := p.accounts.Get(ctx, namespace, name)
		if name != DefaultName || attempt == attempts || !errors.Is(err, reads.ErrNotFound) {
			return account, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(delay):
		}
	}
}

func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

func deny(req *webhook.Request[corev1.Pod], reason string) error {
	return forbidden.Error(req.AdmissionRequest(), req.Object, reason)
}
