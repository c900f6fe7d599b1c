// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// fieldManager is the field manager of every apply in this package.
const fieldManager = "admitkit-install"

// A live describes a stored configuration. The zero value means that there is none.
type live struct {
	uid             types.UID
	resourceVersion string
	revision        int64
	owner           string
	deleting        bool // deleted, but still has finalizers
	finalizers      []string
	entries         []map[string]any // its webhooks, in order
	own             map[string]bool  // names of the webhooks that this package applied
}

// readLive parses a stored configuration. nil means that there is none.
func readLive(object *unstructured.Unstructured) live {
	if object == nil {
		return live{}
	}
	l := live{uid: object.GetUID(), resourceVersion: object.GetResourceVersion(), entries: webhooks(object)}
	// A revision that is not a number was written by another program and is ignored.
	l.owner = object.GetAnnotations()[ownerAnnotation]
	l.revision, _ = strconv.ParseInt(object.GetAnnotations()[revisionAnnotation], 10, 64)
	l.deleting, l.finalizers = object.GetDeletionTimestamp() != nil, object.GetFinalizers()
	for _, managed := range object.GetManagedFields() {
		if managed.Manager == fieldManager && managed.Operation == metav1.ManagedFieldsOperationApply && managed.FieldsV1 != nil {
			l.own = webhooksIn(managed.FieldsV1.GetRawBytes())
		}
	}
	return l
}

// webhooksIn returns the names of the webhooks in a set of managed fields.
func webhooksIn(fields []byte) map[string]bool {
	var set struct {
		Webhooks map[string]json.RawMessage `json:"f:webhooks"`
	}
	names := map[string]bool{}
	if json.Unmarshal(fields, &set) != nil {
		return names
	}
	for key := range set.Webhooks {
		var by struct {
			Name string `json:"name"`
		}
		if text, ok := strings.CutPrefix(key, "k:"); ok && json.Unmarshal([]byte(text), &by) == nil {
			names[by.Name] = true
		}
	}
	return names
}

// entry returns the webhook of this name, or nil.
func (l live) entry(name string) map[string]any {
	for _, entry := range l.entries {
		if nameOf(entry) == name {
			return entry
		}
	}
	return nil
}

// has reports whether there is a webhook of this name.
func (l live) has(name string) bool { return l.entry(name) != nil }

// keepsFail reports whether the phase opening must keep Fail for a webhook: the stored webhook of the same
// name has Fail and is called at the same server. A webhook that moves to another server counts as new.
func (l live) keepsFail(entry map[string]any) bool {
	stored := l.entry(nameOf(entry))
	return failsClosed(stored) && serverOf(stored) == serverOf(entry)
}

// kept returns the end of the message that a configuration still exists: the finalizers that delay
// its deletion, or nothing.
func (l live) kept() string {
	if !l.deleting {
		return ""
	}
	return fmt.Sprintf(", because its deletion waits for the finalizers %s", strings.Join(l.finalizers, ", "))
}
