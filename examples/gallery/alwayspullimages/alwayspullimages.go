// SPDX-License-Identifier: Apache-2.0

// Package alwayspullimages reimplements Kubernetes' admission controller AlwaysPullImages as hooks: every image of a
// Pod is pulled again before a container starts. So a user needs credentials for an image even if the node already has
// the image.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/alwayspullimages. The hooks differ from it as follows:
//
//   - A denial has the code 403 and the reason Forbidden, and names every field once. The original also intends a
//     denial, but returns a list of errors, for which the API server answers 500 Internal Server Error.
//   - Pods in kube-system, and in the namespace of the webhook, are not changed. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
//   - The API server may call the mutating hook again for a Pod, for example after another webhook has added a
//     container. The API server calls the original a second time only if a mutating webhook or policy has changed the
//     Pod.
package alwayspullimages

import (
	"context"
	"iter"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hooks returns the hook that sets the pull policy of every image to Always, and the hook that checks it after all
// mutating webhooks.
func Hooks() []*webhook.Hook {
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name:               "set.alwayspullimages.example.com",
			Rules:              webhook.Rules(webhook.OnWrite("", "v1", "pods")),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		}, mutate),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:  "check.alwayspullimages.example.com",
			Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods")),
		}, validate),
	}
}

// mutate sets the pull policy of all images to Always. It skips updates that add no image.
func mutate(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	if skip, err := hasNoNewImage(req); skip || err != nil {
		return err
	}
	for _, image := range images(&req.Object.Spec) {
		*image.policy = corev1.PullAlways
	}
	return nil
}

// validate denies a Pod that has an image with a pull policy other than Always. It skips updates that add no image.
func validate(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	if skip, err := hasNoNewImage(req); skip || err != nil {
		return err
	}
	var errs field.ErrorList
	for path, image := range images(&req.Object.Spec) {
		if *image.policy != corev1.PullAlways {
			errs = append(errs, field.NotSupported(path, *image.policy, []string{string(corev1.PullAlways)}))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return forbidden.Error(req.AdmissionRequest(), req.Object, errs.ToAggregate().Error())
}

// hasNoNewImage reports whether every container image of an updated Pod was already in the old Pod. Like the original,
// it ignores the images of volumes, which cannot change later.
func hasNoNewImage(req *webhook.Request[corev1.Pod]) (bool, error) {
	old, err := req.OldObject()
	if old == nil || err != nil {
		return false, err // CREATE
	}
	known := sets.New[string]()
	for _, image := range containers(&old.Spec) {
		known.Insert(image.name)
	}
	for _, image := range containers(&req.Object.Spec) {
		if !known.Has(image.name) {
			return false, nil
		}
	}
	return true, nil
}

// An image is the image reference of a container or volume, with a pointer to its pull policy.
type image struct {
	name   string
	policy *corev1.PullPolicy
}

// images yields the image of each container and of each image volume, with the path of its pull policy.
func images(spec *corev1.PodSpec) iter.Seq2[*field.Path, image] {
	return func(yield func(*field.Path, image) bool) {
		for path, image := range containers(spec) {
			if !yield(path, image) {
				return
			}
		}
		for i, v := range spec.Volumes {
			if v.Image != nil && !yield(field.NewPath("spec", "volumes").Index(i).Child("image", "pullPolicy"), image{v.Image.Reference, &v.Image.PullPolicy}) {
				return
			}
		}
	}
}

// containers yields the image of each init container, container and ephemeral container, in this order.
func containers(spec *corev1.PodSpec) iter.Seq2[*field.Path, image] {
	return func(yield func(*field.Path, image) bool) {
		visit := func(list string, i int, name string, policy *corev1.PullPolicy) bool {
			return yield(field.NewPath("spec", list).Index(i).Child("imagePullPolicy"), image{name, policy})
		}
		for i := range spec.InitContainers {
			if c := &spec.InitContainers[i]; !visit("initContainers", i, c.Image, &c.ImagePullPolicy) {
				return
			}
		}
		for i := range spec.Containers {
			if c := &spec.Containers[i]; !visit("containers", i, c.Image, &c.ImagePullPolicy) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			if c := &spec.EphemeralContainers[i]; !visit("ephemeralContainers", i, c.Image, &c.ImagePullPolicy) {
				return
			}
		}
	}
}
