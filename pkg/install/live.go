// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"slices"
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
	failClosed      map[string]bool  // names of the webhooks with failurePolicy Fail
	servers         map[string]string
	bundles         map[string]string
	own             map[string]bool // names of the webhooks that this package applied
}

// readLive parses a stored configuration. nil means that there is none.
func readLive(object *unstructured.Unstructured) live {
	l := live{failClosed: map[string]bool{}, servers: map[string]string{}, bundles: map[string]string{}, own: map[string]bool{}}
	if object == nil {
		return l
	}
	l.uid, l.resourceVersion = object.GetUID(), object.GetResourceVersion()
	// A revision that is not a number was written by another program and is ignored.
	l.owner = object.GetAnnotations()[ownerAnnotation]
	l.revision, _ = strconv.ParseInt(object.GetAnnotations()[revisionAnnotation], 10, 64)
	l.deleting, l.finalizers = object.GetDeletionTimestamp() != nil, object.GetFinalizers()
	l.entries = webhooks(object)
	for _, entry := range l.entries {
		name := nameOf(entry)
		l.failClosed[name], l.servers[name], l.bundles[name] = failsClosed(entry), serverOf(entry), bundleOf(entry)
	}
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

// has reports whether there is a webhook of this name.
func (l live) has(name string) bool {
	return slices.ContainsFunc(l.entries, func(entry map[string]any) bool { return nameOf(entry) == name })
}

// holds reports whether a webhook has Fail already, at the same server. At another server it counts as new.
func (l live) holds(entry map[string]any) bool {
	name := nameOf(entry)
	return l.failClosed[name] && l.servers[name] == serverOf(entry)
}

// kept names the finalizers that keep a deleted configuration.
func (l live) kept() string {
	if !l.deleting {
		return ""
	}
	return fmt.Sprintf(", deleted, but kept for its finalizers %s", strings.Join(l.finalizers, ", "))
}
