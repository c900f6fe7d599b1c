// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Paths in the metadata of an object. The harness sets TouchedAnnotation to make an update.
var (
	Metadata          = tree.Path{{Name: "metadata"}}
	annotations       = Metadata.Member("annotations")
	TouchedAnnotation = annotations.Member("example.com/touched")
	Finalizers        = Metadata.Member("finalizers")
)

// IsNote reports whether a path leads to annotations or labels, or into them.
func IsNote(p tree.Path) bool {
	for i, step := range p[:max(len(p)-1, 0)] {
		if !step.Element && step.Name == "metadata" && (p[i+1].Name == "annotations" || p[i+1].Name == "labels") {
			return true
		}
	}
	return false
}
