// SPDX-License-Identifier: Apache-2.0

// Package policy has the hooks for the console transcripts in the guides. They decide about ConfigMaps by the name of
// the ConfigMap. In some namespaces they also handle Pods.
package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Namespaces are the namespaces of the transcripts. The namespaceSelector of each hook matches exactly one of them.
var Namespaces = []string{"closed", "open", "condition", "badpatch", "raw"}

// Hooks returns the hooks for the transcripts, one for each of Namespaces.
func Hooks() []*webhook.Hook {
	open := validating("policy-open.example.com", "open")
	open.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	condition := validating("condition.example.com", "condition")
	condition.MatchConditions = []admissionregistrationv1.MatchCondition{{
		Name: "red-team", Expression: `object.metadata.labels["team"] == "red"`,
	}}
	return []*webhook.Hook{
		webhook.Validating(validating("policy.example.com", "closed"), decide),
		webhook.Validating(open, decide),
		webhook.Validating(condition, decide),
		webhook.Mutating(mutating("badpatch.example.com", "badpatch"), mountNothing),
		webhook.MutatingRaw(mutating("raw.example.com", "raw"), removeNothing),
	}
}

func validating(name, namespace string) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:              name,
		Rules:             webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		TimeoutSeconds:    ptr.To[int32](2),
	}
}

func mutating(name, namespace string) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:              name,
		Rules:             webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
	}
}

// decide returns the decision that the name of the ConfigMap selects.
func decide(ctx context.Context, req *webhook.Request[corev1.ConfigMap]) error {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "teams"}, "red")
	switch req.Object.Name {
	case "deny":
		return webhook.Deny("not on a Friday")
	case "warned-denied":
		req.Warn("data.old is deprecated, use data.new")
		return webhook.Deny("not on a Friday")
	case "invalid":
		return webhook.DenyInvalid(field.ErrorList{
			field.Required(field.NewPath("data", "owner"), "say who owns it"),
			field.Invalid(field.NewPath("data", "replicas"), "three", "must be a number"),
		})
	case "plain":
		return errors.New("the registry cannot be reached")
	case "lookup-w":
		return fmt.Errorf("looking for the owner: %w", missing)
	case "lookup-v":
		return fmt.Errorf("looking for the owner: %v", missing) //nolint:errorlint // the transcript shows the difference
	case "slow":
		<-ctx.Done()
		return ctx.Err()
	case "effect":
		return req.SideEffect(func() error { return nil })
	}
	return nil
}

// mountNothing adds a mount without a volume, which the API server's validation refuses.
func mountNothing(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	c := &req.Object.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "nowhere", MountPath: "/nowhere"})
	return nil
}

// removeNothing returns a patch that the API server cannot apply.
func removeNothing(context.Context, *review.Request) (*review.Decision, patch.Patch, error) {
	return review.Allow(), patch.Patch{
		{Op: patch.Add, Path: patch.Pointer("").Append("metadata").Append("annotations"), Value: json.RawMessage(`{"a":"b"}`)},
		{Op: patch.Remove, Path: patch.Pointer("").Append("spec").Append("nothing")},
	}, nil
}
