// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A wanted is one of the two configurations, as the hooks define it.
type wanted struct {
	sort    sort
	name    string
	object  *unstructured.Unstructured // nil if there is no hook of this kind
	version string                     // hash of the webhooks
}

// newWanted returns both configurations of the hooks.
func newWanted(o Options, hooks []*webhook.Hook) ([]wanted, error) {
	m, v, err := webhook.Configurations(o.Configuration, hooks...)
	if err != nil {
		return nil, err
	}
	all := []wanted{{sort: mutating, name: o.Configuration.Name}, {sort: validating, name: o.Configuration.Name}}
	if m != nil { // an interface that holds a nil pointer is not nil
		err = all[0].fill(m, o)
	}
	if err == nil && v != nil {
		err = all[1].fill(v, o)
	}
	return all, err
}

func (w *wanted) fill(configuration any, o Options) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return err
	}
	w.object = &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	text, err := json.Marshal(content["webhooks"])
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	w.version = hex.EncodeToString(sum[:])
	annotations := w.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ownerAnnotation] = o.owner()
	if o.Revision > 0 {
		annotations[revisionAnnotation] = strconv.FormatInt(o.Revision, 10)
	}
	w.object.SetAnnotations(annotations)
	return nil
}

// besideMarker returns the names of the marker and of the webhooks that have the same server and
// CABundle as the marker.
func (w wanted) besideMarker() []string {
	entries := webhooks(w.object)
	marker := entries[0] // it comes first
	var names []string
	for _, entry := range entries {
		if serverOf(entry) == serverOf(marker) && bundleOf(entry) == bundleOf(marker) {
			names = append(names, nameOf(entry))
		}
	}
	return names
}

// A phase says which failurePolicy an apply gives to new and to unwanted webhooks: Ignore, or their own. Unwanted
// webhooks are stored ones that this package applied and that the hooks no longer define. An apply never removes an
// unwanted webhook. Otherwise requests could pass without review until the new webhooks fail closed, or for good if the
// program ends before that.
type phase int

const (
	opening  phase = iota // new and unwanted webhooks get Ignore, because no replica serves all of them
	clearing              // own policies; the version counts as applied once the unwanted webhooks are removed
	keeping               // own policies; the version counts as applied, and clearing follows later
	closing               // own policies; the version counts as promoted
)

// opens reports whether the phase opening would set Ignore on a webhook whose registration says
// Fail.
func (w wanted) opens(found live) bool {
	marker := markerName(w.name)
	return slices.ContainsFunc(webhooks(w.object), func(entry map[string]any) bool {
		return nameOf(entry) != marker && failsClosed(entry) && !found.keepsFail(entry)
	})
}

// at returns the configuration to apply in a phase. Its marker denies the requests for the stages that the
// phase reaches.
func (w wanted) at(found live, p phase) *unstructured.Unstructured {
	object := w.object.DeepCopy()
	stages := []stage{installed, applied, promoted}
	marker := markerName(w.name)
	for _, entry := range webhooks(object) {
		if name := nameOf(entry); p == opening && name != marker && failsClosed(entry) && !found.keepsFail(entry) {
			entry["failurePolicy"] = string(admissionregistrationv1.Ignore)
			stages = []stage{installed, applied}
		}
	}
	if unwanted := found.obsolete(w); len(unwanted) > 0 {
		list, _ := object.Object["webhooks"].([]any)
		for _, index := range unwanted {
			entry := runtime.DeepCopyJSON(found.entries[index])
			if p == opening {
				entry["failurePolicy"] = string(admissionregistrationv1.Ignore)
			}
			list = append(list, entry)
		}
		object.Object["webhooks"] = list
		switch p {
		case clearing:
			stages = []stage{installed}
		case keeping:
			stages = []stage{installed, applied}
		}
	}
	values := make([]any, 0, len(stages))
	for _, at := range stages {
		values = append(values, labelValue(w.sort, w.name, at, w.version))
	}
	for _, entry := range webhooks(object) {
		if nameOf(entry) == marker {
			entry["objectSelector"] = markerSelector(values)
		}
	}
	if found.resourceVersion != "" { // the apply is based on the configuration that was read
		object.SetResourceVersion(found.resourceVersion)
		object.SetUID(found.uid) // so it is not created again
	}
	return object
}

// obsolete returns the indexes of the stored webhooks that this package applied and that w does not have. With the zero
// wanted, these are all webhooks that this package applied.
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

// untrusted returns the names of the webhooks whose calls would fail. Their caBundle differs from the marker's,
// although the server is the same, because the injector has not updated them yet.
func (l live) untrusted(w wanted) []string {
	marker := markerName(w.name)
	trusted := bundleOf(l.entry(marker))
	if trusted == "" { // no caBundle is needed to trust the server
		return nil
	}
	var server string
	var names []string
	for _, entry := range webhooks(w.object) { // the marker is the first entry
		switch name := nameOf(entry); {
		case name == marker:
			server = serverOf(entry)
		case failsClosed(entry) && bundleOf(entry) == "" && bundleOf(l.entry(name)) != trusted && serverOf(entry) == server:
			names = append(names, name)
		}
	}
	return names
}

// nothing returns a configuration without any of our fields. Applying it gives up the ownership of the fields.
func nothing(w wanted, found live) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(configurations[w.sort].GroupVersion().String())
	object.SetKind(kindOf[w.sort])
	object.SetName(w.name)
	object.SetResourceVersion(found.resourceVersion)
	object.SetUID(found.uid)
	return object
}

// isVersionOf reports whether the stored configuration is of this version. It reads that from the label
// values that the marker denies.
func (w wanted) isVersionOf(object *unstructured.Unstructured) bool {
	for _, entry := range webhooks(object) {
		if nameOf(entry) != markerName(w.name) {
			continue
		}
		expressions, _, _ := unstructured.NestedSlice(entry, "objectSelector", "matchExpressions")
		return slices.ContainsFunc(expressions, func(expression any) bool {
			fields, _ := expression.(map[string]any)
			values, _, _ := unstructured.NestedStringSlice(fields, "values")
			return slices.Contains(values, labelValue(w.sort, w.name, applied, w.version))
		})
	}
	return false
}

// opened returns a configuration with our stored webhooks. All except the marker have Ignore. The marker confirms no
// version, because the webhooks may be of an older version.
func (w wanted) opened(found live, o Options) *unstructured.Unstructured {
	object := nothing(w, found)
	annotations := map[string]string{}
	maps.Copy(annotations, o.Configuration.Annotations)
	annotations[ownerAnnotation] = o.owner()
	if o.Revision > 0 {
		annotations[revisionAnnotation] = strconv.FormatInt(o.Revision, 10)
	}
	object.SetAnnotations(annotations)
	object.SetLabels(o.Configuration.Labels)
	var list []any
	for _, index := range found.obsolete(w) {
		entry := runtime.DeepCopyJSON(found.entries[index])
		if nameOf(entry) == markerName(w.name) {
			entry["objectSelector"] = markerSelector([]any{labelValue(w.sort, w.name, installed, "")})
		} else {
			entry["failurePolicy"] = string(admissionregistrationv1.Ignore)
		}
		list = append(list, entry)
	}
	object.Object["webhooks"] = list
	return object
}
