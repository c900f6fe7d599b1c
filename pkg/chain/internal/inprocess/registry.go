// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/customresource"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// A registry prepares and validates the object of a request, as the API server's registry and storage of a resource do.
type registry struct {
	*DecodedRequest
	ctx          context.Context
	objects      *Objects
	setsDefaults bool                                          // Options.Default is set
	validate     func(obj, old runtime.Object) field.ErrorList // Options.Validate
}

// beforeCreate prepares and validates a new object. It runs between the mutating and the validating webhooks.
func (r *registry) beforeCreate(m metav1.Object) error {
	if k8svalidation.Virtual(r.Resource.GroupResource()) {
		return nil // such objects are not stored
	}
	if r.SubResource == "" {
		rest.FillObjectMetaSystemFields(m)
		if m.GetGenerateName() != "" && m.GetName() == "" {
			m.SetName(names.SimpleNameGenerator.GenerateName(m.GetGenerateName()))
		}
	}
	if err := r.matchNamespace(m); err != nil {
		return err
	}
	if v := r.customVersion(); v != nil {
		v.PrepareForCreate(r.Object.(*unstructured.Unstructured))
	} else if r.hasStrategy() && r.SubResource == "" {
		strategy.PrepareForCreate(r.Kind, r.Object, m)
	}
	if errs := r.validateObject(); len(errs) > 0 {
		return r.invalidError(m, errs)
	}
	if r.SubResource != "" {
		return nil
	}
	if errs := apivalidation.ValidateObjectMetaAccessor(m, r.namespaced(), pathSegment, field.NewPath("metadata")); len(errs) > 0 {
		return r.invalidError(m, errs)
	}
	r.canonicalize()
	return nil
}

// store replaces the object with the one that the API server would read from the storage after writing it.
func (r *registry) store() error {
	if custom := r.objects.customOf(r.Object); custom != nil {
		stored, err := custom.stored(r.Object.(*unstructured.Unstructured))
		if err != nil {
			return err
		}
		r.Object = stored
		return nil
	}
	if r.hasStrategy() {
		r.objects.Default(r.Object) // the API server sets defaults when it reads the object
	}
	return nil
}

// beforeUpdate prepares and validates an updated object. It runs between the mutating and the validating webhooks.
func (r *registry) beforeUpdate(m, old metav1.Object) error {
	switch version := old.GetResourceVersion(); m.GetResourceVersion() {
	case "":
		m.SetResourceVersion(version)
	case version:
	default:
		return apierrors.NewConflict(r.Resource.GroupResource(), m.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if err := r.matchNamespace(m); err != nil {
		return err
	}
	m.SetGeneration(old.GetGeneration())
	if v := r.customVersion(); v != nil {
		v.PrepareForUpdate(r.Object.(*unstructured.Unstructured), r.Old.(*unstructured.Unstructured), r.SubResource)
	} else if r.hasStrategy() {
		strategy.PrepareForUpdate(r.Kind, r.SubResource, r.Object, r.Old, m, old)
	}
	if m.GetUID() == "" {
		m.SetUID(old.GetUID())
	}
	if t := old.GetCreationTimestamp(); !t.IsZero() {
		m.SetCreationTimestamp(t)
	}
	if !old.GetDeletionTimestamp().IsZero() {
		m.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if old.GetDeletionGracePeriodSeconds() != nil && m.GetDeletionGracePeriodSeconds() == nil {
		m.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	errs := apivalidation.ValidateObjectMetaAccessor(m, r.namespaced(), pathSegment, field.NewPath("metadata"))
	errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(m, old, field.NewPath("metadata"))...)
	errs = append(errs, r.validateObject()...)
	// The old object of a request need not have the resourceVersion that a stored object has.
	errs = slices.DeleteFunc(errs, func(err *field.Error) bool {
		return err.Field == "metadata.resourceVersion" && old.GetResourceVersion() == ""
	})
	if len(errs) > 0 {
		return r.invalidError(m, errs)
	}
	r.canonicalize()
	return nil
}

// invalidError returns the error of an invalid object. It names the current kind, which a patch may have changed.
func (r *registry) invalidError(m metav1.Object, errs field.ErrorList) error {
	kind := r.Kind.GroupKind()
	if u, ok := r.Object.(*unstructured.Unstructured); ok {
		kind = u.GroupVersionKind().GroupKind()
	}
	return apierrors.NewInvalid(kind, m.GetName(), errs)
}

// validateObject returns the errors of the resource's own validation.
func (r *registry) validateObject() field.ErrorList {
	if v := r.customVersion(); v != nil && r.Operation == admission.Create {
		return v.Validate(r.ctx, r.Object.(*unstructured.Unstructured))
	} else if v != nil {
		return v.ValidateUpdate(r.ctx, r.Object.(*unstructured.Unstructured), r.Old.(*unstructured.Unstructured), r.SubResource)
	}
	if u, ok := r.Object.(*unstructured.Unstructured); ok {
		return customresource.ValidateType(u, r.Kind)
	}
	if r.validate == nil {
		return nil
	}
	if r.Operation == admission.Create {
		return r.validate(r.Object, nil)
	}
	return r.validate(r.Object, r.Old)
}

func (r *registry) hasStrategy() bool {
	_, ok := r.Object.(runtime.Unstructured)
	return !ok && strategy.Has(r.Kind)
}

func (r *registry) canonicalize() {
	if r.hasStrategy() {
		strategy.Canonicalize(r.Object)
	}
}

// customVersion returns the definition of the requested version of a custom resource. It returns nil for other objects,
// such as the Scale of a custom resource.
func (r *registry) customVersion() *customresource.Version { return r.objects.CustomVersion(r.Kind) }

func (r *registry) namespaced() bool { return r.Namespace != "" && !isNamespace(r.Resource) }

func (r *registry) matchNamespace(m metav1.Object) error {
	return rest.EnsureObjectNamespaceMatchesRequestNamespace(rest.ExpectedNamespaceForResource(r.Namespace, r.Resource), m)
}

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// setPreconditions sets the precondition that the storage of Namespaces adds to a deletion.
func (r *registry) setPreconditions(old metav1.Object) {
	if uid := old.GetUID(); isNamespace(r.Resource) && uid != "" {
		r.Options.(*metav1.DeleteOptions).Preconditions = &metav1.Preconditions{UID: &uid}
	}
}

// setGracePeriod sets the grace period of a Pod in the delete options. It reports whether the API server deletes the
// object in two steps, and calls the webhooks in each. The API server does so for a Pod that it deletes at once, unless
// the request is a dry run.
func (r *registry) setGracePeriod(old metav1.Object) bool {
	pod, ok := r.Old.(*corev1.Pod)
	if !ok || old.GetDeletionTimestamp() != nil || r.SubResource != "" {
		return false
	}
	period := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0)
	if !r.setsDefaults && pod.Spec.TerminationGracePeriodSeconds == nil {
		period = corev1.DefaultTerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		period = 0
	} else if period < 0 {
		period = 1
	}
	r.Options.(*metav1.DeleteOptions).GracePeriodSeconds = &period
	return period == 0 && len(old.GetFinalizers()) == 0 && !r.DryRun
}
