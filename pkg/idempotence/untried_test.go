// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// TestUntried tests webhooks that set a variable in all containers, or only in some of them, or not in an UPDATE. The
// report must say what it has not seen.
func TestUntried(t *testing.T) {
	setting := func(updates bool, lists ...string) change {
		return func(r *admissionv1.AdmissionRequest, doc document) {
			if r.Operation == admissionv1.Update && !updates {
				return
			}
			at(doc, "metadata", "annotations")["example.com/seen"] = "yes"
			for _, name := range lists {
				list, _ := at(doc, "spec")[name].([]any)
				for _, c := range list {
					if r.Operation == admissionv1.Create {
						c.(document)["imagePullPolicy"] = "Always"
					}
				}
			}
		}
	}
	const list, update = "v1 Pod: no init container was ever changed", "v1 Pod: no UPDATE was ever changed"
	for name, tt := range map[string]struct {
		edit change
		want []string
	}{
		"all":                {setting(true, "containers", "initContainers"), nil},
		"no init containers": {setting(true, "containers"), []string{list}},
		"no container":       {setting(true), nil},
		"no update":          {setting(false, "containers", "initContainers"), []string{update}},
		"neither":            {setting(false, "containers"), []string{list, update}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), editing("", "v1", "pods", onBoth, tt.edit), Options{Objects: 4, Without: []Law{L3, L4a, L5, L11, L12}})
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Join(tt.want, "; ")
			if got := report.Texts(report.Untried); got != want {
				t.Errorf("untried %q, want %q", got, want)
			}
			words := strings.Join(strings.Fields(text(report)), " ")
			if report.OK() && strings.Contains(words, "not seen: "+want) != (want != "") {
				t.Errorf("the text does not say %q:\n%s", want, words)
			}
		})
	}
}
