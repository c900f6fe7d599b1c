// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// A Subject is a request and the state of its object while the request is processed.
type Subject struct {
	*DecodedRequest
	Objects *Objects
	Context context.Context
	// Attributes are those of the current admission. current is the object after the last patch, or nil before the
	// first.
	Attributes admission.Attributes
	current    runtime.Object
}

// NewAttributes returns the attributes of the request with these objects. Both can be nil.
func (s *Subject) NewAttributes(object, old runtime.Object) admission.Attributes {
	return admission.NewAttributesRecord(object, old, s.Kind, s.Namespace, s.Name, s.Resource, s.SubResource,
		s.Operation, s.Options, s.DryRun, s.User)
}

// Begin sets the attributes for the next stage of admission, mutating or validating. It forgets the object of the
// previous stage.
func (s *Subject) Begin(a admission.Attributes) { s.Attributes, s.current = a, nil }

// Now returns the attributes with the object as the last patch left it.
func (s *Subject) Now() admission.Attributes {
	if s.current == nil {
		return s.Attributes
	}
	return patchedAttributes{s.Attributes, s.current}
}

// Interfaces returns the admission.ObjectInterfaces of the request. They set s.current after each patch.
func (s *Subject) Interfaces() Interfaces {
	return Interfaces{Objects: s.Objects, kind: s.Kind, current: &s.current}
}

// patchedAttributes are attributes with another object.
type patchedAttributes struct {
	admission.Attributes
	object runtime.Object
}

// GetObject returns the object after the patches.
func (a patchedAttributes) GetObject() runtime.Object { return a.object }
