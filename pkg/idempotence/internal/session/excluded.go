// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// ExcludedBy names the selectors and matchConditions that exclude an object for which no webhook is called.
func (s *Session) ExcludedBy(x *objects.Object) []string {
	q := Query{Operation: s.Operation, Object: x}
	var reasons []string
	for _, w := range s.Webhooks {
		switch {
		case !w.Handles(s.Kind, q.Operation):
		case !w.selects(x):
			reasons = appendNew(reasons, "objectSelector "+metav1.FormatLabelSelector(w.ObjectSelector))
		case !s.Namespaces.selects(w, s.Kind, &q):
			reasons = appendNew(reasons, "namespaceSelector "+metav1.FormatLabelSelector(w.NamespaceSelector))
		default:
			var names []string
			for _, c := range w.MatchConditions {
				names = append(names, c.Name)
			}
			reasons = appendNew(reasons, "matchConditions "+strings.Join(names, ", "))
		}
	}
	return reasons
}

// appendNew appends a text unless the list has it.
func appendNew(texts []string, text string) []string {
	if slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}
