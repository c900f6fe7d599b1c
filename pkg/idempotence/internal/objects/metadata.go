// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"

	"github.com/admitkit/admitkit/internal/k8svalidation"
)

// SystemFields lists the members of metadata that the API server sets. It drops or rejects a client's values for a new
// object before a webhook sees it (rest.WipeObjectMetaSystemFields).
var SystemFields = []string{"uid", "creationTimestamp", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}

// ofStored has the system fields of every stored object. Their values never change, so they cause no difference between
// calls.
var ofStored = map[string]any{
	"uid": "7d3f0a52-95c1-4a0e-8f0b-2c1d5e6a9b10", "creationTimestamp": "2026-01-02T03:04:05Z", "resourceVersion": "1000",
}

// AsSent returns a document as the API server sends it to a webhook: with its namespace, and with the system fields
// only if it is stored.
func (k *Kind) AsSent(doc any, isStored bool) any {
	object, ok := doc.(map[string]any)
	if !ok {
		return doc
	}
	old, ok := object["metadata"].(map[string]any)
	if !ok && object["metadata"] != nil {
		return doc
	}
	object = maps.Clone(object)
	object["metadata"] = k.metadata(old, isStored)
	return object
}

func (k *Kind) metadata(old map[string]any, isStored bool) map[string]any {
	meta := maps.Clone(old)
	if meta == nil {
		meta = map[string]any{}
	}
	if !k.Namespaced {
		delete(meta, "namespace")
	} else if textIn(meta, "namespace") == "" {
		meta["namespace"] = k.Namespace
	}
	if !isStored {
		for _, name := range SystemFields {
			delete(meta, name)
		}
		return meta
	}
	for name, value := range ofStored {
		if meta[name] == nil {
			meta[name] = value
		}
	}
	if k.hasGeneration() && meta["generation"] == nil {
		meta["generation"] = int64(1)
	}
	if prefix := textIn(meta, "generateName"); prefix != "" && textIn(meta, "name") == "" {
		meta["name"] = generatedName(prefix)
	}
	return meta
}

func textIn(fields map[string]any, name string) string { text, _ := fields[name].(string); return text }

// generatedName returns a name like those of names.SimpleNameGenerator, always with the same letters.
func generatedName(prefix string) string {
	const letters, most = "x7k2p", 63
	return prefix[:min(len(prefix), most-len(letters))] + letters
}

func (k *Kind) hasGeneration() bool {
	return k.GoType == nil || k8svalidation.CountsChanges(k.GroupKind())
}
