// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// A view says which part of an object the type of a handler holds. A nil view is the whole object.
type view struct {
	path    []string                       // names of the fields from the object to the part; empty for the whole object
	unknown func(document []byte) []string // if set, finds the unknown fields of the object
}

// isPart reports whether the view is less than the whole object.
func (v *view) isPart() bool { return v != nil && len(v.path) > 0 }

// pointer returns the JSON Pointer from the object to the part. It is empty for the whole object.
func (v *view) pointer() (p patch.Pointer) {
	if v == nil {
		return ""
	}
	for _, name := range v.path {
		p = p.Append(name)
	}
	return p
}

// missing returns the failure of a call for a document, "object" or "oldObject", that lacks the part.
func (v *view) missing(document string) error {
	return reply.BadRequest("%s has no %s, which the hook reads", document, strings.Join(v.path, "."))
}

// FieldPath returns the path of Object in the API object, to be the root of the paths in a
// field.ErrorList. It is nil, the path of the API object itself, unless the hook sees only a part of the
// object: in a hook of [MutatingPodTemplates] it is spec.template for a Deployment, and nil for a Pod.
func (r *Request[T]) FieldPath() *field.Path {
	var path *field.Path
	if r.view != nil {
		for _, name := range r.view.path {
			path = path.Child(name)
		}
	}
	return path
}
