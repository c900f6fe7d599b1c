// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaves says what of the registrations has the webhook not be called for an object.
func (r *run) leaves(x *object) string {
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
	return strings.Join(reasons, "; ")
}
