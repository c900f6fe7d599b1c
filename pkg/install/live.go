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

// fieldManager owns what is applied here, and nothing else.
const fieldManager = "admitkit-install"

// A live configuration is one as the cluster has it. The zero value is one that is not there.
type live struct {
	uid             types.UID
	resourceVersion string
	revision        int64
	owner           string
	deleting        bool // once its finalizers are gone
	finalizers      []string
	entries         []map[string]any // its webhooks, in their order
	failClosed      map[string]bool  // those with failurePolicy Fail
	servers         map[string]string
	bundles         map[string]string
	own             map[string]bool // those that were applied by us
}

// readLive reads a configuration; nil is one that is not there.
func readLive(object *unstructured.Unstructured) live {
	l := live{failClosed: map[string]bool{}, servers: map[string]string{}, bundles: map[string]string{}, own: map[string]bool{}}
	if object == nil {
		return l
	}
	l.uid, l.resourceVersion = object.GetUID(), object.GetResourceVersion()
	// What is no number was not written here, and orders nothing.
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

// webhooksIn returns the names of the webhooks in a set of fields.
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

// has returns whether there is a webhook of this name.
func (l live) has(name string) bool {
	return slices.ContainsFunc(l.entries, func(entry map[string]any) bool { return nameOf(entry) == name })
}

// holds tells whether a webhook has Fail already, and has proved itself: at another server it is
// as good as new.
func (l live) holds(entry map[string]any) bool {
	name := nameOf(entry)
	return l.failClosed[name] && l.servers[name] == serverOf(entry)
}

// kept says what keeps a configuration that was deleted.
func (l live) kept() string {
	if !l.deleting {
		return ""
	}
	return fmt.Sprintf(", deleted, but kept for its finalizers %s", strings.Join(l.finalizers, ", "))
}

// obsolete returns the indexes of our webhooks that are not wanted any more.
func (l live) obsolete(w wanted) []int {
	keep := map[string]bool{}
	if w.object != nil {
		for _, entry := range webhooks(w.object) {
			keep[nameOf(entry)] = true
		}
	}
	var indexes []int
	for i, entry := range l.entries {
		if name := nameOf(entry); l.own[name] && !keep[name] {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// untrusted names the webhooks that would fail if they failed closed: whoever injects caBundles
// has seen to the marker of the same server, but not to these, which are new, or were given the
// caBundle of another time.
func (l live) untrusted(w wanted) []string {
	marker := markerName(w.name)
	if l.bundles[marker] == "" { // trusted without
		return nil
	}
	var server string
	var names []string
	for _, entry := range webhooks(w.object) { // the marker comes first
		switch name := nameOf(entry); {
		case name == marker:
			server = serverOf(entry)
		case failsClosed(entry) && bundleOf(entry) == "" && l.bundles[name] != l.bundles[marker] && serverOf(entry) == server:
			names = append(names, name)
		}
	}
	return names
}
