// SPDX-License-Identifier: Apache-2.0

// Package imagepolicywebhook reimplements Kubernetes' admission controller ImagePolicyWebhook as a hook: it asks a
// service whether a Pod may run its images. Both the question and the answer are ImageReviews of the group
// imagepolicy.k8s.io.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/imagepolicy. The hook differs from it as follows:
//
//   - Pods in kube-system, and in the namespace of the webhook, are not reviewed. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
//   - A review fails if it takes longer than the API server waits for the webhook, less a margin. The original waits up to
//     30 s for each of five attempts.
//   - After ten different questions in a row got no answer, the hook does not ask the service for 10 s, and denies Pods
//     without delay. If defaultAllow is set, it keeps asking. Equal questions share a request.
//   - The API server adds the name of the webhook to the keys of audit annotations, so they begin with
//     imagepolicywebhook.example.com instead of imagepolicywebhook.image-policy.k8s.io.
//   - If the service fails and defaultAllow is set, the original also annotates the Pod. The API server does not store
//     this annotation, because it calls the original with a copy of the Pod.
//   - Unknown fields of the configuration file are errors, and kubeConfigFile is required. Without it, the original
//     asks the service that its environment configures.
//
// Like the original, the hook does not review the images of volumes, and reviews each update of a Pod. So a Pod whose
// image is no longer allowed cannot be changed.
package imagepolicywebhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/api/imagepolicy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/external"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hook returns the hook that asks the service. It reads the kubeconfig, but sends no request. It registers the metrics
// of the questions with metrics, which may be nil.
func Hook(config Config, metrics prometheus.Registerer) (*webhook.Hook, error) {
	send, err := client(config.KubeConfigFile)
	if err != nil {
		return nil, fmt.Errorf("imagePolicy.kubeConfigFile: %w", err)
	}
	service, err := external.New(external.Options[v1alpha1.ImageReviewSpec, v1alpha1.ImageReviewStatus]{
		Name: "image-policy", Send: send, OnFailure: config.onFailure, KeepFor: config.keepFor, Size: 1024, Metrics: metrics,
		Attempts: 5, Backoff: orNone(config.Backoff), Retry: passes, Outage: isOutage, OpenAfter: config.openAfter(), MaxQuestions: config.maxQuestions(),
	})
	if err != nil {
		return nil, err
	}
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:           "imagepolicywebhook.example.com",
		Rules:          webhook.Rules(webhook.OnWrite("", "v1", "pods", "pods/ephemeralcontainers")),
		TimeoutSeconds: ptr.To[int32](10),
	}, func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		status, err := service.Ask(ctx, question(req))
		switch {
		case apierrors.IsForbidden(err):
			return err // the service rejected the question itself: as in the original, its answer is the denial
		case err != nil:
			return forbidden.Error(req.AdmissionRequest(), req.Object, err.Error())
		}
		return decide(req, status)
	}), nil
}

// question returns the images that the request can add, with the annotations that are meant for the service.
func question(req *webhook.Request[corev1.Pod]) v1alpha1.ImageReviewSpec {
	spec := v1alpha1.ImageReviewSpec{Namespace: req.Namespace, Annotations: map[string]string{}}
	add := func(image string) {
		spec.Containers = append(spec.Containers, v1alpha1.ImageReviewContainerSpec{Image: image})
	}
	if req.SubResource == "ephemeralcontainers" {
		for _, c := range req.Object.Spec.EphemeralContainers {
			add(c.Image)
		}
	} else {
		for _, c := range req.Object.Spec.Containers {
			add(c.Image)
		}
		for _, c := range req.Object.Spec.InitContainers {
			add(c.Image)
		}
	}
	for key, value := range req.Object.Annotations {
		if strings.Contains(key, ".image-policy.k8s.io/") {
			spec.Annotations[key] = value
		}
	}
	return spec
}

// decide returns the denial of the service, or nil.
func decide(req *webhook.Request[corev1.Pod], status v1alpha1.ImageReviewStatus) error {
	for key, value := range status.AuditAnnotations {
		_ = req.Audit(key, value) // like the original, ignore an invalid key
	}
	switch {
	case status.Allowed:
		return nil
	case status.Reason == "":
		return forbidden.Error(req.AdmissionRequest(), req.Object, "one or more images rejected by webhook backend")
	}
	return forbidden.Error(req.AdmissionRequest(), req.Object, "image policy webhook backend denied one or more images: "+status.Reason)
}

// onFailure admits the Pod if the configuration says so. Otherwise it returns the error, which denies the Pod.
func (c Config) onFailure(_ v1alpha1.ImageReviewSpec, failure *external.Failure) (v1alpha1.ImageReviewStatus, error) {
	if c.DefaultAllow {
		return v1alpha1.ImageReviewStatus{Allowed: true, AuditAnnotations: map[string]string{"failed-open": "true"}}, nil
	}
	return v1alpha1.ImageReviewStatus{}, failure.Err
}

func (c Config) keepFor(status v1alpha1.ImageReviewStatus) time.Duration {
	if status.Allowed {
		return c.AllowFor
	}
	return c.DenyFor
}

// passes reports whether the error may be temporary, so that another attempt may help.
func passes(err error) bool {
	_, delay := apierrors.SuggestsClientDelay(err)
	return delay || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err)
}

// openAfter returns Options.OpenAfter. If the failure of a question admits its Pod, the failures of other questions must
// not: otherwise a user who provokes failures could have all images admitted unchecked.
func (c Config) openAfter() int {
	if c.DefaultAllow {
		return -1
	}
	return c.OpenAfter
}

// maxQuestions returns Options.MaxQuestions. For the same reason as in openAfter, a question must not wait for those of
// other users if a failure admits its Pod.
func (c Config) maxQuestions() int {
	if c.DefaultAllow {
		return -1
	}
	return 0
}

// isOutage reports whether the error means that the service does not work. Any answer with a status is about one
// question only, because a user can provoke one with an image that the service cannot handle.
func isOutage(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status)
}

// orNone returns the pause for external.Options, in which zero is the default and a negative value is no pause.
func orNone(pause time.Duration) time.Duration {
	if pause == 0 {
		return -1
	}
	return pause
}
