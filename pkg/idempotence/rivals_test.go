// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"net/http"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/test/corpus"
)

// pair returns a broken webhook of package corpus and its first rival.
func pair(t *testing.T, name string) (c corpus.Case, rival func() http.Handler) {
	t.Helper()
	c = pattern(t, name)
	return c, c.Rivals[0]
}

// TestRivalsWithEqualNames declares two rivals with the same name. The harness must check both, because only one of
// them reveals the fault.
func TestRivalsWithEqualNames(t *testing.T) {
	c, rival := pair(t, "M29 records the registry of the first call")
	harmless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { rival().ServeHTTP(w, r) })
	quiet := c.Webhook
	quiet.Name, quiet.Rules = "rival.example.com", slices.Clone(c.Webhook.Rules)
	quiet.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	loud := c.Webhook
	loud.Name = "rival.example.com"
	newHarmless := func() http.Handler { return harmless }
	for _, order := range [][]Subject{
		{Handler(quiet, newHarmless), Handler(loud, rival)},
		{Handler(loud, rival), Handler(quiet, newHarmless)},
	} {
		report, err := Run(t.Context(), Handler(c.Webhook, c.New), Options{Rivals: order, Objects: mutationObjects})
		if err != nil {
			t.Fatal(err)
		}
		if !finds(report, c) {
			t.Errorf("no finding names the rival:\n%s", text(report))
		}
	}
}

// TestWebhooksOfASubjectAreRivals tests two webhooks as one subject. The harness must report that their order matters
// (L11), unless an exception names the pair.
func TestWebhooksOfASubjectAreRivals(t *testing.T) {
	c, rival := pair(t, "M29 records the registry of the first call")
	other := c.Webhook
	other.Name = "mirror.example.com"
	together := Together(Handler(c.Webhook, c.New), Handler(other, rival))
	report, err := Run(t.Context(), together, Options{Objects: mutationObjects})
	if err != nil {
		t.Fatal(err)
	}
	name := c.Webhook.Name + " and " + other.Name
	if !slices.ContainsFunc(report.Findings, func(v *Violation) bool { return v.Law == L11 && v.Case.Rival == name }) {
		t.Errorf("no violation of L11 by the members:\n%s", text(report))
	}
	report, err = Run(t.Context(), together, Options{Objects: mutationObjects, Exceptions: []Exception{{Path: "rival:" + name, Reason: "known"}}})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(report.Findings, func(v *Violation) bool { return v.Case.Rival == name }) {
		t.Errorf("the exception for the pair has no effect:\n%s", text(report))
	}
}

// TestRivalEdits declares a rival with the function Rival. The harness must report a webhook that copies a label only
// once, although the rival changes the label later.
func TestRivalEdits(t *testing.T) {
	rival := Rival("team.example.com", func(object map[string]any) {
		data, _ := object["data"].(map[string]any)
		if data == nil {
			data = map[string]any{}
			object["data"] = data
		}
		data["team"] = "shop"
	})
	subject := editing("", "v1", "configmaps", onCreate, func(_ *admissionv1.AdmissionRequest, doc document) {
		data, _ := doc["data"].(document)
		if data == nil {
			data = document{}
			doc["data"] = data
		}
		if _, ok := data["copied"]; !ok {
			team, _ := data["team"].(string)
			data["copied"] = "of " + team
		}
	})
	subject.webhooks[0].ReinvocationPolicy = ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy)
	report, err := Run(t.Context(), subject, Options{Objects: 4, Rivals: []Subject{rival}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(report.Findings, func(v *Violation) bool {
		return v.Law == L11 && v.Case.Rival == "team.example.com" && v.Verdict == Fails
	}) {
		t.Errorf("no violation of L11 with the rival:\n%s", text(report))
	}
}
