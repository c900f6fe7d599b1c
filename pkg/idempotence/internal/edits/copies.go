// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// copyOffset is added to the ports of a copied container, so that they differ from those of the original.
const copyOffset = 1000

// CopiedElements returns edits that each add a copy of the largest element of a list under another name, as users do
// when they write an object. The lists are the containers, init containers and volumes. If custom is set, doc is a
// custom resource, and all its lists count.
func CopiedElements(doc any, custom bool) (edits []Edit) {
	tree.Lists(doc, func(p tree.Path, list []any) {
		if len(list) == 0 || p[0].Name == "metadata" || p[0].Name == "status" {
			return
		}
		inPod := slices.Contains([]string{"containers", "initContainers", "volumes"}, p.Last())
		if !inPod && !custom {
			return
		}
		richest := Fields(nil)
		for _, element := range list {
			if e, ok := element.(Fields); ok && tree.Size(e) > tree.Size(richest) {
				richest = e
			}
		}
		if copied, ok := CopyOf(richest); ok && (custom || p.Last() != "containers" || len(richest) > 2) {
			edits = append(edits, Edit{What: Insert, Path: slices.Clone(p), Value: copied})
		}
	})
	return edits[:min(len(edits), mostCopies)]
}

// mostCopies is the maximum number of edits that CopiedElements returns.
const mostCopies = 6

// CopyOf returns a copy of an element with another key and other ports. It returns false if the element has no key.
func CopyOf(element Fields) (Fields, bool) {
	for _, key := range []string{"name", "key", "id", "host", "path", "hostname"} {
		name, ok := element[key].(string)
		if !ok {
			continue
		}
		out := movedPorts(named(element, "")).(Fields)
		if key != "name" {
			if had, ok := element["name"]; ok {
				out["name"] = had
			} else {
				delete(out, "name")
			}
		}
		if out[key] = name + TwinSuffix; len(name) > longName-len(TwinSuffix) {
			out[key] = "copy-" + name[len("copy-"):]
		}
		return out, true
	}
	return nil, false
}

// movedPorts returns a copy of a value with other port numbers. Probes still use the ports of their container.
func movedPorts(value any) any {
	switch value := value.(type) {
	case Fields:
		out := make(Fields, len(value))
		for name, inner := range value {
			number, isNumber := inner.(int64)
			switch {
			case isNumber && (name == "containerPort" || name == "port") && number+copyOffset <= 65535:
				out[name] = number + copyOffset
			default:
				out[name] = movedPorts(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = movedPorts(inner)
		}
		return out
	}
	return value
}
