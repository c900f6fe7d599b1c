// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// excludedBy names the selectors and conditions that exclude an object.
func (r *run) excludedBy(x *objects.Object) []string {
	q := query{operation: r.operation, object: x}
	var reasons []string
	for _, w := range r.subject.webhooks {
		switch {
		case !w.handles(r.kind, q.operation):
		case !w.selects(x):
			reasons = addOnce(reasons, "objectSelector "+metav1.FormatLabelSelector(w.ObjectSelector))
		case !r.opts.places.selects(w, r.kind, &q):
			reasons = addOnce(reasons, "namespaceSelector "+metav1.FormatLabelSelector(w.NamespaceSelector))
		default:
			var names []string
			for _, c := range w.MatchConditions {
				names = append(names, c.Name)
			}
			reasons = addOnce(reasons, "matchConditions "+strings.Join(names, ", "))
		}
	}
	return reasons
}

// noteExclusion records why the webhook was not called for the first object without a call.
func (r *run) noteExclusion(x *objects.Object) {
	if r.tally.left == nil {
		r.tally.left = r.excludedBy(x)
	}
}
