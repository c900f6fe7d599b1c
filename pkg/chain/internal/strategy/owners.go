// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/warning"
)

// These texts are copies, because the originals are in a package that imports the API server's storage code.
const (
	ownersTwice      = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"
	ownersTwiceAfter = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"
)

// DedupOwners drops duplicate owner references of an object and adds a warning for the client. afterMutating selects
// the text of the warning.
func DedupOwners(ctx context.Context, m metav1.Object, afterMutating bool) {
	var unique []metav1.OwnerReference
	var twice []string
	for _, ref := range m.GetOwnerReferences() {
		same := func(other metav1.OwnerReference) bool { return apiequality.Semantic.DeepEqual(other, ref) }
		if slices.ContainsFunc(unique, same) {
			twice = append(twice, string(ref.UID))
		} else {
			unique = append(unique, ref)
		}
	}
	if len(twice) == 0 {
		return
	}
	format := ownersTwice
	if afterMutating {
		format = ownersTwiceAfter
	}
	warning.AddWarning(ctx, "", fmt.Sprintf(format, strings.Join(twice, ", ")))
	m.SetOwnerReferences(unique)
}
