// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/test/corpus/unseen"
)

// misjudged lists the webhooks of the unseen corpus that the harness misjudges, with the reasons. "Flagged" means that
// a correct webhook has a violation, and "missed" that a broken one has none.
var misjudged = map[string]string{}

// shareOfUnseen is n if the test uses every n-th webhook. With ADMITKIT_CASES=all, shareOfHeldOut is 1, so it uses all
// of them.
var shareOfUnseen = 1 + 2*(shareOfHeldOut-1)

// guards are the numbers of webhooks that each show one rule of the harness which no other test covers. They always run.
var guards = []string{"U03c2", "U04b4", "U05c2", "U06c5", "U08b1", "U09b5"}

// unseenCases returns the share of the corpus that a test uses, and the guards.
func unseenCases() []unseen.Case {
	cases := shareOf(unseen.Cases(), shareOfUnseen)
	for _, c := range unseen.Cases() {
		number, _, _ := strings.Cut(c.Name, "-")
		if slices.Contains(guards, number) && !slices.ContainsFunc(cases, func(other unseen.Case) bool { return other.Name == c.Name }) {
			cases = append(cases, c)
		}
	}
	return cases
}

// TestUnseen runs the harness on webhooks that were written without knowledge of it. It must misjudge only those in the
// list.
func TestUnseen(t *testing.T) {
	python := unseen.StartPython(t, "../../test/corpus/unseen/"+unseen.PythonProgram)
	for _, c := range unseenCases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), subjectOf(c, python), optionsOf(t, c))
			if err != nil {
				t.Fatal(err)
			}
			wrong := misjudgement(c, report)
			t.Logf("family %d, buggy %v: %s%s", c.Family, c.Buggy, wrong, fingerprint(report))
			switch reason, listed := misjudged[c.Name]; {
			case wrong != "" && !listed:
				t.Errorf("%s: %s\n%s\n%s", wrong, c.Summary, c.Why, text(report))
			case wrong == "" && listed:
				t.Errorf("the harness judges it correctly now: remove it from misjudged: %s", reason)
			}
		})
	}
}

// misjudgement describes how a report misjudges a webhook. It returns an empty string if the report is right.
func misjudgement(c unseen.Case, report *Report) string {
	found := slices.ContainsFunc(report.Findings, func(v *Violation) bool { return v.Verdict != Advice })
	switch {
	case found && !c.Buggy:
		return "a correct webhook is flagged"
	case !found && c.Buggy && len(report.Incomplete) > 0:
		return "the run is inconclusive"
	case !found && c.Buggy:
		return "the bug is missed"
	case !c.Buggy && len(report.Incomplete) > 0:
		return "the run is inconclusive"
	}
	return ""
}

func fingerprint(report *Report) (laws string) {
	for _, v := range report.Findings {
		laws += " " + string(v.Law)
		if v.Verdict == Advice {
			laws += "(advice)"
		}
	}
	return laws
}

func subjectOf(c unseen.Case, python *url.URL) Subject {
	if c.New != nil {
		return Handler(c.Webhook, c.New)
	}
	return URL(c.Webhook, nil, python.JoinPath(c.Path).String())
}

func optionsOf(t *testing.T, c unseen.Case) (o Options) {
	t.Helper()
	sample := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(c.Sample), &sample.Object); err != nil {
		t.Fatal(err)
	}
	o.Samples = []runtime.Object{sample}
	for _, text := range c.CRDs {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(text), crd); err != nil {
			t.Fatal(err)
		}
		o.CRDs = append(o.CRDs, crd)
	}
	if len(c.NamespaceLabels) > 0 {
		name := sample.GetNamespace()
		if name == "" {
			name = metav1.NamespaceDefault
		}
		o.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.NamespaceLabels}}}
	}
	return o
}
