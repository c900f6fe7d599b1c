// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// A subject is the object about which webhooks are asked during a run.
type subject struct {
	*decodedRequest
	objects *objects
	ctx     context.Context
	// attributes are those of the current admission. current is the object after the last patch, or nil before it.
	attributes admission.Attributes
	current    runtime.Object
}

// newAttributes returns the attributes of the request with these objects. Both can be nil.
func (s *subject) newAttributes(object, old runtime.Object) admission.Attributes {
	return admission.NewAttributesRecord(object, old, s.Kind, s.Namespace, s.Name, s.Resource, s.SubResource,
		s.Operation, s.Options, s.DryRun, s.User)
}

// begin sets the attributes of the next admission.
func (s *subject) begin(a admission.Attributes) { s.attributes, s.current = a, nil }

// now returns the attributes with the object as the last patch left it.
func (s *subject) now() admission.Attributes {
	if s.current == nil {
		return s.attributes
	}
	return patchedAttributes{s.attributes, s.current}
}

// interfaces returns the interfaces that the admission code needs. They update current.
func (s *subject) interfaces() interfaces {
	return interfaces{objects: s.objects, kind: s.Kind, current: &s.current}
}

// patchedAttributes are attributes with another object.
type patchedAttributes struct {
	admission.Attributes
	object runtime.Object
}

// GetObject returns the object after the patches.
func (a patchedAttributes) GetObject() runtime.Object { return a.object }
