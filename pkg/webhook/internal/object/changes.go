// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/internal/received"
	"github.com/admitkit/admitkit/pkg/patch"
)

// fixedFields are the fields that no webhook may change. If a webhook changes one, the API server resets it, or answers
// with an error that does not name the webhook.
var fixedFields = []patch.Pointer{"/apiVersion", "/kind", "/metadata/namespace", "/metadata/managedFields"}

// Changes returns the patch that turns the value as received (before) into the value that the handler left (after). at
// is the path of the value in the object, and empty for the whole object. Changes returns an error if the handler
// changed a field that no webhook may change.
func Changes[T any](before *received.Document, after *T, at patch.Pointer) (patch.Patch, error) {
	if after == nil {
		return nil, errors.New("the handler set Object to nil; to refuse the object, return webhook.Deny")
	}
	p, err := before.Diff(Content(after))
	if err != nil {
		return nil, fmt.Errorf("cannot compute the patch: %w", err)
	}
	if at != "" {
		return below(at, p), nil
	}
	return withoutTypeMeta(p)
}

// below turns a patch for one value into a patch for the whole object. at is the path of the value.
func below(at patch.Pointer, p patch.Patch) patch.Patch {
	for i := range p {
		p[i].Path = at + p[i].Path
		if p[i].Op == patch.Move {
			p[i].From = at + p[i].From
		}
	}
	return p
}

// withoutTypeMeta drops operations that remove apiVersion or kind. Such an operation only means that the handler
// replaced the object with a new Go value. It returns an error for all other changes of fixed fields.
func withoutTypeMeta(p patch.Patch) (patch.Patch, error) {
	p = slices.DeleteFunc(p, func(op patch.Operation) bool {
		return op.Op == patch.Remove && (op.Path == "/apiVersion" || op.Path == "/kind")
	})
	for _, op := range p {
		for _, field := range fixedFields {
			switch {
			case op.Op == patch.Remove && op.Path.Contains(field): // also as a part of a removed parent
				return nil, fmt.Errorf("the handler removed %s, which a webhook must not remove", op.Path.FieldPath())
			case op.Op != patch.Remove && op.Path == "/metadata" && setsIdentity(op.Value):
				return nil, errors.New("the handler set metadata.namespace or metadata.managedFields, which a webhook must not set")
			case field.Contains(op.Path):
				return nil, fmt.Errorf("the handler changed %s, which a webhook must not change", field.FieldPath())
			}
		}
	}
	return p, nil
}

// setsIdentity reports whether metadata has a namespace or managedFields.
func setsIdentity(metadata json.RawMessage) bool {
	var m struct {
		Namespace     string            `json:"namespace"`
		ManagedFields []json.RawMessage `json:"managedFields"`
	}
	return json.Unmarshal(metadata, &m) != nil || m.Namespace != "" || len(m.ManagedFields) > 0
}
