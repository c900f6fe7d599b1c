// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// ChangedNotes returns edits that give the annotations and labels of doc, and of the Pod templates in it, other values.
func ChangedNotes(doc any) (list []Edit) {
	tree.Leaves(doc, func(p tree.Path, value any) {
		text, ok := value.(string)
		if ok && text != "" && IsNote(p) && len(list) < mostTexts {
			list = append(list, Edit{What: Put, Path: slices.Clone(p), Value: text + "2"})
		}
	})
	return list
}

// ChangedFields returns edits that give other values to the fields of a manifest that a webhook replaces. changes are
// those of the webhook.
func ChangedFields(manifest any, changes []tree.Change) (list []Edit) {
	for _, c := range changes {
		if c.Kind != tree.Replaced || c.Path[0].Name == "metadata" || c.Path[0].Name == "status" || len(list) == mostTexts {
			continue
		}
		own, _ := tree.Get(manifest, c.Path)
		if other := largerValue(own); other != nil {
			list = append(list, Edit{What: Put, Path: slices.Clone(c.Path), Value: other})
		}
	}
	return list
}

// largerValue returns a larger number or quantity, or a longer text. It returns nil for other types.
func largerValue(value any) any {
	switch v := value.(type) {
	case int64:
		return 2*v + 1
	case float64:
		return 2*v + 1
	case string:
		q, err := resource.ParseQuantity(v)
		if err != nil {
			return v + "2"
		}
		q.Add(q)
		q.Add(q)
		return q.String()
	}
	return nil
}

// prefixingCache is the registry of another party that puts it before each image.
const prefixingCache = "cache.example.net/"

// PrefixedImages returns edits of another party that puts the name of its registry before each image before which the
// webhook has put its own.
func PrefixedImages(changes []tree.Change) (list []Edit) {
	for _, c := range changes {
		if image, ok := c.New.(string); ok && OwnRegistry(c.Old, c.New) != "" && c.Path.Last() == "image" && len(list) < mostTexts {
			list = append(list, Edit{What: Put, Path: slices.Clone(c.Path), Value: prefixingCache + image})
		}
	}
	return list
}

// IsPrefixedImage reports whether an edit can be one of PrefixedImages.
func IsPrefixedImage(e Edit) bool {
	image, _ := e.Value.(string)
	return e.What == Put && strings.HasPrefix(image, prefixingCache)
}

// OwnRegistry returns what a webhook has put before an image, such as "mirror.example.com/". It returns "" if the webhook
// has changed the image in another way.
func OwnRegistry(before, after any) string {
	old, _ := before.(string)
	image, _ := after.(string)
	registry, ok := strings.CutSuffix(image, old)
	if !ok || old == "" || !strings.HasSuffix(registry, "/") {
		return ""
	}
	return registry
}
