// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// The hooks for workloads decode into projections: structs with only the fields that the rules read. They
// skip the other fields, which make up most of a Pod.

type pod struct {
	Metadata metadata `json:"metadata"`
	Spec     podSpec  `json:"spec"`
}

type deployment struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Replicas *int32 `json:"replicas"`
		Template pod    `json:"template"`
	} `json:"spec"`
}

type metadata struct {
	Labels map[string]string `json:"labels"`
}

type podSpec struct {
	Resources      resources   `json:"resources"`
	InitContainers []container `json:"initContainers"`
	Containers     []container `json:"containers"`
}

type container struct {
	Image     string    `json:"image"`
	Resources resources `json:"resources"`
}

type resources struct {
	Limits corev1.ResourceList `json:"limits"`
}

func (r resources) limitMemory() bool { return !r.Limits.Memory().IsZero() }

func validatePod(_ context.Context, req *webhook.Request[pod]) error {
	warnOwner(req, req.Object.Metadata, "metadata.labels")
	return decide(req, func(p *pod) field.ErrorList { return p.problems(nil) })
}

func validateDeployment(_ context.Context, req *webhook.Request[deployment]) error {
	warnOwner(req, req.Object.Metadata, "metadata.labels")
	warnOwner(req, req.Object.Spec.Template.Metadata, "spec.template.metadata.labels")
	if n := req.Object.Spec.Replicas; n != nil && *n == 1 {
		req.Warn("spec.replicas is 1: the workload stops whenever its node is drained")
	}
	return decide(req, (*deployment).problems)
}

// warnOwner warns about the deprecated label. The label does not lead to a denial.
func warnOwner[T any](req *webhook.Request[T], m metadata, at string) {
	if _, ok := m.Labels[OwnerLabel]; ok {
		req.Warn(fmt.Sprintf("%s[%s] is deprecated: use %s", at, OwnerLabel, TeamLabel))
	}
}

// decide denies an object with problems. It denies an UPDATE only for problems that the old object did not
// have. So an object older than a rule can still be labelled and scaled, and can lose its finalizers. An
// audit annotation lists the invalid fields.
func decide[T any](req *webhook.Request[T], problems func(*T) field.ErrorList) error {
	errs := problems(req.Object)
	old, err := req.OldObject()
	if err != nil {
		return err
	}
	if old != nil {
		before := problems(old)
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
			return slices.ContainsFunc(before, func(b *field.Error) bool { return b.Error() == e.Error() })
		})
	}
	if len(errs) == 0 {
		return nil
	}
	var fields []string
	for _, e := range errs {
		fields = append(fields, e.Field)
	}
	if err := req.Audit("violations", strings.Join(fields, " ")); err != nil {
		return err
	}
	return webhook.DenyInvalid(errs)
}

func (d *deployment) problems() field.ErrorList {
	return append(requireName(nil, d.Metadata), d.Spec.Template.problems(field.NewPath("spec", "template"))...)
}

func (p *pod) problems(at *field.Path) field.ErrorList {
	errs := requireName(at, p.Metadata)
	errs = append(errs, p.Spec.validate(at.Child("spec", "initContainers"), p.Spec.InitContainers)...)
	return append(errs, p.Spec.validate(at.Child("spec", "containers"), p.Spec.Containers)...)
}

func requireName(at *field.Path, m metadata) field.ErrorList {
	if m.Labels[NameLabel] != "" {
		return nil
	}
	return field.ErrorList{field.Required(at.Child("metadata", "labels").Key(NameLabel), "set it to the name of the application")}
}

func (s podSpec) validate(at *field.Path, containers []container) field.ErrorList {
	var errs field.ErrorList
	for i, c := range containers {
		at := at.Index(i)
		if !fixedVersion(c.Image) {
			errs = append(errs, field.Invalid(at.Child("image"), c.Image, "must have a digest, or a tag other than latest"))
		}
		if !c.Resources.limitMemory() && !s.Resources.limitMemory() {
			errs = append(errs, field.Required(at.Child("resources", "limits").Key("memory"), "without it one container can take the node's memory"))
		}
	}
	return errs
}

// fixedVersion reports whether an image reference has a digest or a tag other than latest. A colon before
// the last slash belongs to the port of the registry.
func fixedVersion(image string) bool {
	if strings.Contains(image, "@") {
		return true
	}
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag != "" && tag != "latest"
}
