// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// TestLongLists tests webhooks that add an item to a list in an annotation. One of them keeps only three items.
func TestLongLists(t *testing.T) {
	for keep, want := range map[int]string{3: "L5 removes", 100: ""} {
		add := func(_ *admissionv1.AdmissionRequest, doc document) {
			metadata := at(doc, "metadata")
			annotations, _ := metadata["annotations"].(document)
			if annotations == nil {
				annotations = document{}
				metadata["annotations"] = annotations
			}
			text, _ := annotations["example.com/devices"].(string)
			items := []string{"gpu"}
			for item := range strings.SplitSeq(text, ",") {
				if item = strings.TrimSpace(item); item == "gpu" {
					return
				} else if item != "" {
					items = append(items, item)
				}
			}
			annotations["example.com/devices"] = strings.Join(items[:min(len(items), keep)], ",")
		}
		report, err := Run(t.Context(), editing("", "v1", "pods", onBoth[:1], add), Options{Objects: 3})
		if err != nil {
			t.Fatal(err)
		}
		if got := violations(report); got != want {
			t.Errorf("%d items: violations %q, want %q:\n%s", keep, got, want, text(report))
		}
	}
}
