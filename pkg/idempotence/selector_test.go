// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/test/corpus"
)

// broken returns the first broken webhook of package corpus with the given number, such as "P01".
func broken(t *testing.T, number string) corpus.Case {
	t.Helper()
	i := slices.IndexFunc(corpus.Patterns(), func(c corpus.Case) bool { return strings.HasPrefix(c.Name, number) })
	if i < 0 {
		t.Fatalf("no pattern %s", number)
	}
	return corpus.Patterns()[i]
}

func TestCallsOnlyForObjectsSelected(t *testing.T) {
	c := broken(t, "P01")
	c.Webhook.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"inject": "yes"}}
	if report := runCase(t, c, Options{}); report.OK() || len(report.Triggers) == 0 {
		t.Errorf("the objects do not get the label of the selector:\n%s", text(report))
	}
	report := runCase(t, c, Options{}, explore.Triggers) // the objects do not have the label
	if !report.OK() || report.Changed != 0 || len(report.Incomplete) == 0 || report.Incomplete[0].Code != ReasonSamplesNeeded {
		t.Errorf("without a sample that is selected:\n%s", text(report))
	}
	c.Samples = append(c.Samples, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"inject": "yes"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	})
	if report := runCase(t, c, Options{}); report.OK() {
		t.Errorf("with a sample that is selected:\n%s", text(report))
	}
}

func TestSelectorThatExcludesAllObjectsIsReported(t *testing.T) {
	in := &metav1.LabelSelector{MatchLabels: map[string]string{"inject": "yes"}}
	for want, set := range map[string]func(*admissionregistrationv1.MutatingWebhook){
		"objectSelector inject=yes": func(w *admissionregistrationv1.MutatingWebhook) { w.ObjectSelector = in },
		"namespaceSelector inject=yes,inject,!inject": func(w *admissionregistrationv1.MutatingWebhook) {
			w.NamespaceSelector = in.DeepCopy()
			w.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
				{Key: "inject", Operator: metav1.LabelSelectorOpExists}, {Key: "inject", Operator: metav1.LabelSelectorOpDoesNotExist}}
		},
		"matchConditions first, never": func(w *admissionregistrationv1.MutatingWebhook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "first", Expression: "true"}, {Name: "never", Expression: "false"}}
		},
	} {
		c := broken(t, "P01")
		set(&c.Webhook)
		report := runCase(t, c, Options{Objects: 3}, explore.Triggers)
		if want := "the webhook was called for none of 3 objects: " + want + ": add objects"; !strings.Contains(report.Texts(report.Incomplete), want) {
			t.Errorf("want %q:\n%s", want, text(report))
		}
	}
}

func TestCallsOnlyWhereConditionsMatch(t *testing.T) {
	c := broken(t, "P01")
	c.Webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "not-injected", Expression: `!(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, c.name == "agent")`},
		{Name: "may", Expression: `authorizer.group("").resource("pods").check("create").allowed()`},
	}
	if report := runCase(t, c, Options{}); !report.OK() || report.Changed == 0 {
		t.Errorf("a condition keeps the webhook from a second call:\n%s", text(report))
	}
	c.Webhook.MatchConditions[0].Expression = "object.spec.containers.size() > 0"
	if report := runCase(t, c, Options{}); report.OK() {
		t.Errorf("a condition that is always true:\n%s", text(report))
	}
	c.Webhook.MatchConditions[0].Expression = "object.spec.nothing"
	if report := runCase(t, c, Options{}); !report.OK() || report.Allowed != 0 || len(report.Incomplete) == 0 {
		t.Errorf("a condition that cannot be evaluated rejects all objects:\n%s", text(report))
	}
}
