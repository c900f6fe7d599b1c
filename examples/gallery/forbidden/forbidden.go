// SPDX-License-Identifier: Apache-2.0

// Package forbidden creates the errors with which the hooks of the gallery deny requests.
package forbidden

import (
	"cmp"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Error returns a denial with the code 403. Its text is that of admission.NewForbidden in k8s.io/apiserver, which the
// admission controllers of Kubernetes use.
func Error(req *admissionv1.AdmissionRequest, object metav1.Object, reason string) error {
	resource := schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}
	name := cmp.Or(req.Name, object.GetName(), object.GetGenerateName(), "Unknown")
	return apierrors.NewForbidden(resource, name, errors.New(reason))
}
