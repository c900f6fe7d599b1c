// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// ChangedNotes returns edits that give annotations and labels of doc, and of the Pod templates in it, other values. If there
// are many, it chooses first those for which preferred is true.
func ChangedNotes(doc any, preferred func(tree.Path) bool) []Edit {
	var first, rest []Edit
	tree.Leaves(doc, func(p tree.Path, value any) {
		text, ok := value.(string)
		if !ok || text == "" || !IsNote(p) {
			return
		}
		e := Edit{What: Put, Path: slices.Clone(p), Value: text + "2"}
		if preferred(p) {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	})
	all := slices.Concat(first, rest)
	return all[:min(len(all), mostTexts)]
}

// ChangedFields returns an edit for each field of the manifest that the webhook replaces, except in the metadata and status.
// The edit sets another value. changes are those of the webhook.
func ChangedFields(manifest any, changes []tree.Change) (list []Edit) {
	for _, c := range changes {
		if c.Kind != tree.Replaced || c.Path[0].Name == "metadata" || c.Path[0].Name == "status" || len(list) == mostTexts {
			continue
		}
		own, _ := tree.Get(manifest, c.Path)
		if other := anotherValue(own); other != nil {
			list = append(list, Edit{What: Put, Path: slices.Clone(c.Path), Value: other})
		}
	}
	return list
}

// anotherValue returns another value of the type: 2v+1 for a number, four times a quantity, or a text with a 2 after it. It
// returns nil for other types.
func anotherValue(value any) any {
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

// otherRegistry is the registry that another party adds to images as a prefix.
const otherRegistry = "cache.example.net/"

// PrefixedImages returns edits of another party that adds otherRegistry to each image to which the webhook has added its own
// registry.
func PrefixedImages(changes []tree.Change) (list []Edit) {
	for _, c := range changes {
		if image, ok := c.New.(string); ok && OwnRegistry(c.Old, c.New) != "" && c.Path.Last() == "image" && len(list) < mostTexts {
			list = append(list, Edit{What: Put, Path: slices.Clone(c.Path), Value: otherRegistry + image})
		}
	}
	return list
}

// IsPrefixedImage reports whether an edit can be one of PrefixedImages.
func IsPrefixedImage(e Edit) bool {
	image, _ := e.Value.(string)
	return e.What == Put && strings.HasPrefix(image, otherRegistry)
}

// OwnRegistry returns the prefix that a webhook has added to an image, such as "mirror.example.com/". It returns "" if the
// webhook has changed the image in another way.
func OwnRegistry(before, after any) string {
	old, _ := before.(string)
	image, _ := after.(string)
	registry, ok := strings.CutSuffix(image, old)
	if !ok || old == "" || !strings.HasSuffix(registry, "/") {
		return ""
	}
	return registry
}
