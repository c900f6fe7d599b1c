// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	revisionAnnotation = "install.admitkit.dev/revision" // Options.Revision
	ownerAnnotation    = "install.admitkit.dev/owner"    // Options.owner
)

// A wanted configuration is the one that the hooks define.
type wanted struct {
	sort    sort
	name    string
	object  *unstructured.Unstructured // nil if there is no hook of this kind
	version string                     // hash of the enforced fields
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

// webhooks returns the entries of a configuration, which the caller may change.
func webhooks(configuration *unstructured.Unstructured) []map[string]any {
	list, _ := configuration.Object["webhooks"].([]any)
	entries := make([]map[string]any, 0, len(list))
	for _, entry := range list {
		if fields, ok := entry.(map[string]any); ok {
			entries = append(entries, fields)
		}
	}
	return entries
}

func nameOf(webhook map[string]any) string {
	name, _ := webhook["name"].(string)
	return name
}

func failsClosed(webhook map[string]any) bool {
	return webhook["failurePolicy"] == string(admissionregistrationv1.Fail)
}

func clientConfig(webhook map[string]any) map[string]any {
	c, _ := webhook["clientConfig"].(map[string]any)
	return c
}

func bundleOf(webhook map[string]any) string {
	bundle, _ := clientConfig(webhook)["caBundle"].(string)
	return bundle
}

// besideMarker names the marker and the webhooks at the same server.
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

// serverOf returns the called Service or URL without the path.
func serverOf(webhook map[string]any) string {
	c := clientConfig(webhook)
	if text, ok := c["url"].(string); ok {
		u, err := url.Parse(text)
		if err != nil {
			return text
		}
		return u.Host
	}
	service, _ := c["service"].(map[string]any)
	return fmt.Sprintf("%v/%v:%v", service["namespace"], service["name"], service["port"])
}

// A phase says which failurePolicy an apply gives to new and to unwanted webhooks. An apply removes no unwanted webhook.
// Otherwise requests could pass unseen between two applies, or for good if the program ends there.
type phase int

const (
	opening  phase = iota // both get Ignore, because some replicas serve only one of them
	clearing              // their own policies; the version counts as present after the unwanted ones are cut
	keeping               // their own policies; the version counts as present, clearing follows later
	closing               // as they are
)

// opens reports whether opening would set Ignore on a webhook that is meant to have Fail.
func (w wanted) opens(found live) bool {
	marker := markerName(w.name)
	return slices.ContainsFunc(webhooks(w.object), func(entry map[string]any) bool {
		return nameOf(entry) != marker && failsClosed(entry) && !found.holds(entry)
	})
}

// at returns the configuration to apply in a phase, with the marker for the stages that the phase reaches.
func (w wanted) at(found live, p phase) *unstructured.Unstructured {
	object := w.object.DeepCopy()
	stages := []stage{installed, applied, promoted}
	marker := markerName(w.name)
	for _, entry := range webhooks(object) {
		if name := nameOf(entry); p == opening && name != marker && failsClosed(entry) && !found.holds(entry) {
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
