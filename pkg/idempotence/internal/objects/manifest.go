// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// ManifestOf returns doc as a manifest that a user can apply repeatedly. The manifest has a name, and no field that
// only the API server sets.
func (k *Kind) ManifestOf(doc any) (manifest any, ok bool) {
	fields, ok := k.AsSent(doc, false).(map[string]any)
	if !ok {
		return nil, false
	}
	fields = maps.Clone(fields)
	delete(fields, "status") // an update does not change the status
	meta, ok := fields["metadata"].(map[string]any)
	if !ok {
		return nil, false
	}
	if textIn(meta, "name") == "" {
		meta = maps.Clone(meta)
		meta["name"] = generatedName(textIn(meta, "generateName"))
		delete(meta, "generateName")
		fields["metadata"] = meta
	}
	return fields, true
}

// Apply returns the stored object after a client-side apply of a manifest that was applied before. It uses kubectl's
// own code. Lists of built-in kinds are merged by the keys of their Go types, or replaced. Lists of custom resources
// are replaced.
func (k *Kind) Apply(manifest, stored any) (any, bool) {
	said, current := tree.Encode(manifest), tree.Encode(stored)
	var merged []byte
	var err error
	if k.GoType == nil {
		var patch []byte
		if patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(said, said, current); err == nil {
			merged, err = jsonpatch.MergePatch(current, patch)
		}
	} else {
		merged, err = applyStrategic(said, current, reflect.New(k.GoType).Interface())
	}
	if err != nil {
		return nil, false
	}
	doc, err := tree.Decode(merged)
	return doc, err == nil
}

func applyStrategic(manifest, current []byte, goType any) ([]byte, error) {
	keys, err := strategicpatch.NewPatchMetaFromStruct(goType)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(manifest, manifest, current, keys, true)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, keys)
}
