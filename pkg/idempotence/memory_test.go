// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
)

func annotatedMap(name string, notes document) runtime.Object {
	return &unstructured.Unstructured{Object: document{"apiVersion": "v1", "kind": "ConfigMap", "metadata": document{"name": name, "annotations": notes}}}
}

// TestFindsMemoryOfLaterObjects tests a webhook that writes the tier of the last object that had one. All its instances
// share the memory, as behind a URL. The first sample has no tier, so only a request after the other objects shows it.
func TestFindsMemoryOfLaterObjects(t *testing.T) {
	const tier = "example.com/tier"
	for _, remembers := range []bool{true, false} {
		var last atomic.Value
		report, err := runWith(t.Context(), editing("", "v1", "configmaps", onCreate, func(_ *admissionv1.AdmissionRequest, doc document) {
			notes := at(doc, "metadata", "annotations")
			if notes[tier] != nil && remembers {
				last.Store(notes[tier])
			}
			notes["example.com/last"] = "none"
			if known := last.Load(); known != nil {
				notes["example.com/last"] = known
			}
		}), Options{Objects: 2, Samples: []runtime.Object{annotatedMap("a", document{"example.com/a": "b"}), annotatedMap("b", document{tier: "gold"})}},
			internals{unused: map[explore.Family]bool{explore.Switches: true}}) // it would find the memory earlier
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(report.Findings, func(v *Violation) bool {
			return v.Law == L3 && v.Verdict != Advice && strings.Contains(v.Summary, "after other objects")
		})
		if found != remembers {
			t.Errorf("remembers %t:\n%s", remembers, text(report))
		}
	}
}

// TestFindsFailureOnControlCharacter tests a webhook that fails if a text has U+007F. The report must show the object.
func TestFindsFailureOnControlCharacter(t *testing.T) {
	report, err := Run(t.Context(), editing("", "v1", "configmaps", onCreate, func(r *admissionv1.AdmissionRequest, doc document) {
		marked(r, doc)
		if strings.ContainsRune(string(r.Object.Raw), 0x7f) {
			panic("a control character")
		}
	}), Options{Objects: 1, Samples: []runtime.Object{annotatedMap("a", document{"example.com/a": "b"})}})
	if err != nil {
		t.Fatal(err)
	}
	if said := text(report); !strings.Contains(violations(report), "L2 server error") || !strings.Contains(said, `\x7F`) || !strings.Contains(said, "kind: ConfigMap") {
		t.Errorf("violations %q:\n%s", violations(report), said)
	}
}

func TestWithoutControls(t *testing.T) {
	const odd = "a\x7f\u0080\u0085é\u2028\ufffe\U0001f600"
	raw, err := json.Marshal(odd)
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(withoutControls(raw), &back); err != nil || back != odd {
		t.Errorf("%q: %v", back, err)
	}
	if yaml := asYAML(document{"a": odd}); !strings.Contains(yaml, "a: ") || strings.ContainsRune(yaml, 0x7f) {
		t.Errorf("YAML %q", yaml)
	}
}

// TestNotesKindsWithoutSample tests a webhook for two kinds with a sample of one of them.
func TestNotesKindsWithoutSample(t *testing.T) {
	subject := editing("", "v1", "configmaps", onCreate, marked)
	subject.webhooks[0].Rules[0].Resources = []string{"configmaps", "secrets", "pods/status"}
	report, err := Run(t.Context(), subject, Options{Objects: 3, Samples: []runtime.Object{annotatedMap("a", document{"example.com/a": "b"})}})
	if err != nil {
		t.Fatal(err)
	}
	if notes := report.Texts(report.Notes); !strings.Contains(notes, "not tested: secrets") || strings.Contains(notes, "status") {
		t.Errorf("notes %q", notes)
	}
}
