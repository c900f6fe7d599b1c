// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const debugKey, skipKey = "bus.example.com/debug", "bus.example.com/skip"

// debugs returns a change that labels each object, and calls effect if the value of debugKey is 2. It does nothing if an
// object has skipKey.
func debugs(effect func(doc document)) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		annotations, _ := at(doc, "metadata")["annotations"].(document)
		if annotations[skipKey] != nil {
			return
		}
		at(doc, "metadata", "labels")["seen"] = "yes"
		if annotations[debugKey] == "2" {
			effect(doc)
		}
	}
}

// TestSwitches tests webhooks that do something else for a label or annotation that the sample lacks and that a match
// condition names.
func TestSwitches(t *testing.T) {
	appends := func(doc document) {
		args, _ := containerOf(doc)["args"].([]any)
		containerOf(doc)["args"] = append(args, "-v")
	}
	pods, streams := [3]string{"", "v1", "pods"}, [3]string{"bus.example.com", "v1", "streams"}
	for _, tt := range []struct {
		name   string
		of     [3]string
		sample runtime.Object
		edit   change
		keys   []string
		want   string
	}{
		{"a sample without labels", pods, annotatedPod(nil), debugs(appends), []string{debugKey}, "L1 grows"},
		{"a switch that hides another", pods, annotatedPod(nil), debugs(appends), []string{debugKey, skipKey}, "L1 grows"},
		{"a switch that makes the webhook panic", pods, annotatedPod(nil), debugs(func(document) { panic("no mode") }), []string{debugKey}, "L2 server error"},
		{"a switch with an invalid result", pods, annotatedPod(nil), debugs(func(doc document) { at(doc, "spec")["nodeName"] = "NO NODE" }), []string{debugKey}, "L1 invalid"},
		{"a switch that the webhook removes", pods, annotatedPod(nil), debugs(func(doc document) {
			at(doc, "metadata", "labels")["debug"] = "2"
			delete(at(doc, "metadata", "annotations"), debugKey)
		}), []string{debugKey}, ""},
		{"a later change", streams, stream(map[string]any{"example.com/a": "b"}), moves(debugKey, "id"), []string{debugKey}, "L6 ignores a change"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			crd := new(apiextensionsv1.CustomResourceDefinition)
			if err := yaml.UnmarshalStrict([]byte(streamWithStatus), crd); err != nil {
				t.Fatal(err)
			}
			operations := onBoth
			if tt.of == pods {
				operations = onBoth[:1]
			}
			edit := func(r *admissionv1.AdmissionRequest, doc document) {
				if tt.of == streams {
					at(doc, "metadata", "labels")["seen"] = "yes" // so the webhook changes the sample
				}
				tt.edit(r, doc)
			}
			subject := editing(tt.of[0], tt.of[1], tt.of[2], operations, edit)
			for _, key := range tt.keys {
				subject.webhooks[0].MatchConditions = append(subject.webhooks[0].MatchConditions,
					admissionregistrationv1.MatchCondition{Name: strings.ReplaceAll(key, "/", "."), Expression: "'" + key + "' != ''"})
			}
			report, err := Run(t.Context(), subject, Options{Samples: []runtime.Object{tt.sample}, Objects: 2, CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
			if err != nil {
				t.Fatal(err)
			}
			if got := violations(report); got != tt.want && (tt.want == "" || !strings.Contains(got, tt.want)) {
				t.Errorf("violations %q, want %q:\n%s", got, tt.want, text(report))
			}
		})
	}
}
