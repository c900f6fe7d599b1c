// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/object"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// An UnknownFieldsPolicy decides what a hook does with an object that has fields unknown to its type:
// see [Hook.WithUnknownFields].
type UnknownFieldsPolicy int

// The policies for unknown fields. All except IgnoreUnknownFields check each object.
const (
	// IgnoreUnknownFields is the default. The handler may call [Request.UnknownFields].
	IgnoreUnknownFields UnknownFieldsPolicy = iota
	// CountUnknownFields counts the calls: see [Hook.CallsWithUnknownFields].
	CountUnknownFields
	// WarnUnknownFields counts the calls and sends the user a warning for each field. If there are
	// five or more, it warns about the first three and about the number of others.
	WarnUnknownFields
	// DenyUnknownFields counts the calls and denies them with 422 Invalid and a cause for each
	// field. If there are twelve or more, the causes are the first ten, and the message contains the
	// number of others. The handler is not called.
	DenyUnknownFields
)

var policyNames = [...]string{"IgnoreUnknownFields", "CountUnknownFields", "WarnUnknownFields", "DenyUnknownFields"}

// String returns the name of the policy in this package.
func (p UnknownFieldsPolicy) String() string {
	if p.known() {
		return policyNames[p]
	}
	return fmt.Sprintf("UnknownFieldsPolicy(%d)", int(p))
}

func (p UnknownFieldsPolicy) known() bool { return p >= 0 && int(p) < len(policyNames) }

// WithUnknownFields returns a hook that looks for fields of the object that the handler's type does not have. With a
// built-in type these are fields of a Kubernetes version newer than the hook's. If a new field must not bypass the
// hook, deny unknown fields, and update the hook before the API server. With a projection they are all fields that the
// projection omits. The old object is not checked, so deletes pass.
func (h *Hook) WithUnknownFields(policy UnknownFieldsPolicy) *Hook {
	c := *h
	c.unknown = policy
	return c.checked()
}

// checkUnknown returns an error for a policy that cannot be applied. Without the error, the hook would admit
// objects that its author wants to deny.
func (h *Hook) checkUnknown() error {
	switch {
	case !h.unknown.known():
		return fmt.Errorf("webhook %s: %s is not a policy for unknown fields; use one of %s", h.Name(), h.unknown, strings.Join(policyNames[:], ", "))
	case h.raw && h.unknown != IgnoreUnknownFields:
		return fmt.Errorf("webhook %s takes bytes and has no type, so no field is unknown: remove the policy", h.Name())
	}
	return nil
}

// CallsWithUnknownFields returns the number of calls whose object had unknown fields. A hook and
// the copies that its With… methods return count together.
func (h *Hook) CallsWithUnknownFields() uint64 { return h.unknownCalls.Load() }

// The number of unknown fields that are shown if there are many.
const (
	mostWarned = 3
	mostDenied = 10
)

// abridged returns the fields to show and the number of others. That number is never one, since showing one more field
// takes no more room than a text about it.
func abridged(fields []string, most int) (shown []string, more int) {
	if len(fields) <= most+1 {
		return fields, 0
	}
	return fields[:most], len(fields) - most
}

// applyUnknownFields applies the policy, and reports whether the call is denied.
func (h *Hook) applyUnknownFields(fields []string, m *review.Metadata, d *review.Decision) (denied bool) {
	if len(fields) == 0 {
		return false
	}
	h.unknownCalls.Add(1)
	switch h.unknown {
	case WarnUnknownFields:
		shown, more := abridged(fields, mostWarned)
		for _, path := range shown {
			d.Warn(fmt.Sprintf("webhook %s does not know the field %s", h.Name(), reply.Clip(path)))
		}
		if more > 0 {
			d.Warn(fmt.Sprintf("webhook %s: %s%d more unknown fields", h.Name(), atLeast(fields), more))
		}
	case DenyUnknownFields:
		d.Deny(unknownStatus(fields, m))
		return true
	}
	return false
}

func unknownStatus(fields []string, m *review.Metadata) metav1.Status {
	var list field.ErrorList
	shown, more := abridged(fields, mostDenied)
	for _, path := range shown {
		list = append(list, &field.Error{Type: field.ErrorTypeForbidden, Field: reply.Clip(path), Detail: "the webhook does not know this field"})
	}
	status := apierrors.NewInvalid(schema.GroupKind{Group: m.Kind.Group, Kind: m.Kind.Kind}, m.Name, list).ErrStatus
	if more > 0 {
		status.Message += fmt.Sprintf(" and %s%d more fields", atLeast(fields), more)
	}
	return status
}

// atLeast returns "at least " if the list of fields may be incomplete.
func atLeast(fields []string) string {
	if len(fields) >= object.MaxUnknownFields {
		return "at least "
	}
	return ""
}
