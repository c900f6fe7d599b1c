// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// The minimum numbers of webhooks that cover the families.
const (
	minBuggy, minCorrect             = 44, 66
	minBuggyPython, minCorrectPython = 12, 18
	minBuggyPerFamily                = 4
)

// memoryFamily is the only family with webhooks in Python that have a memory. Each instance of them is a process of its
// own.
const memoryFamily = 4

func TestCounts(t *testing.T) {
	names, families := map[string]bool{}, map[int]int{}
	var buggy, correct, buggyPython, correctPython int
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
		if c.Summary == "" || c.Why == "" || (c.New == nil) == (c.Path == "") {
			t.Errorf("%s: the summary, the reason, or one of New and Path is missing", c.Name)
		}
		switch {
		case c.Buggy && c.Path != "":
			buggyPython++
			fallthrough
		case c.Buggy:
			buggy++
			families[c.Family]++
		case c.Path != "":
			correctPython++
			fallthrough
		default:
			correct++
		}
	}
	if buggy < minBuggy || correct < minCorrect || buggyPython < minBuggyPython || correctPython < minCorrectPython {
		t.Errorf("%d broken webhooks, %d of them in Python; %d correct ones, %d of them in Python",
			buggy, buggyPython, correct, correctPython)
	}
	for f := 1; f <= 10; f++ {
		if families[f] < minBuggyPerFamily {
			t.Errorf("family %d has %d broken webhooks", f, families[f])
		}
	}
}

// TestCases checks the sample, the registration and the proof of each case.
func TestCases(t *testing.T) {
	shared := httputil.NewSingleHostReverseProxy(StartPython(t, PythonProgram))
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			trial := &Trial{TB: t, Case: &c, Start: c.New}
			if c.Path != "" {
				trial.Start = func() http.Handler { return shared }
			}
			if c.Path != "" && c.Family == memoryFamily {
				trial.Start = func() http.Handler { return httputil.NewSingleHostReverseProxy(StartPython(t, PythonProgram)) }
			}
			checkSample(t, trial)
			checkRegistration(t, trial)
			if c.Buggy {
				checkBuggy(trial)
			} else {
				checkCorrect(trial)
			}
		})
	}
}

func checkSample(t *testing.T, trial *Trial) {
	sample := trial.Sample()
	if kind := text(sample, "kind"); kind != trial.Case.Kind {
		t.Errorf("the sample is a %s", kind)
	}
	answer := trial.Instance().Try(sample)
	if answer.Problem != "" || differ("", sample, answer.Object) == "" {
		t.Errorf("one call does not change the sample: %s %s", answer.Patch, answer.Problem)
	}
	for _, doc := range trial.Case.CRDs {
		for _, obj := range []object{sample, answer.Object} {
			if problem := violates(doc, obj); problem != "" {
				t.Error(problem)
			}
		}
	}
}

// violates returns how obj violates the schema of a CustomResourceDefinition, or "" if it is valid.
func violates(doc string, obj object) string {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict([]byte(doc), &crd); err != nil {
		return err.Error()
	}
	if gvk := kindOf(obj); crd.Spec.Names.Kind != gvk.Kind || crd.Spec.Group != gvk.Group {
		return "the definition is not for " + gvk.String()
	}
	var schema apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil)
	if err != nil {
		return err.Error()
	}
	validator, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		return err.Error()
	}
	if errs := validation.ValidateCustomResource(nil, obj, validator); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// checkRegistration checks that the API server would accept the registration, and that it selects the sample.
func checkRegistration(t *testing.T, trial *Trial) {
	reg, obj := trial.Case.Webhook, trial.Sample()
	hook := webhook.MutatingRaw(reg, nil)
	if err := hook.Check(); err != nil && !strings.Contains(err.Error(), "handler") {
		t.Errorf("registration: %v", err)
	}
	for _, s := range []struct {
		selector *metav1.LabelSelector
		labels   map[string]string
	}{{reg.NamespaceSelector, trial.Case.NamespaceLabels}, {reg.ObjectSelector, labelsOf(obj)}} {
		if s.selector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(s.selector)
		if err != nil || !selector.Matches(labels.Set(s.labels)) {
			t.Errorf("the registration does not select the labels %v: %v", s.labels, err)
		}
	}
	gvk, rule := kindOf(obj), reg.Rules[0]
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	for _, doc := range trial.Case.CRDs {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(doc), &crd); err != nil {
			t.Fatal(err)
		}
		plural.Resource = crd.Spec.Names.Plural
	}
	if rule.Resources[0] != plural.Resource || rule.APIGroups[0] != plural.Group || rule.APIVersions[0] != plural.Version {
		t.Errorf("the rule %v is not for %v", rule, plural)
	}
}

func labelsOf(obj object) map[string]string {
	out := map[string]string{}
	for k, v := range dict(obj, "metadata", "labels") {
		out[k] = fmt.Sprint(v)
	}
	return out
}

func checkBuggy(trial *Trial) {
	if trial.Case.Proof == nil || trial.Case.Proof(trial) == "" {
		trial.TB.Error("the proof of a broken webhook shows no fault")
	}
}

// checkCorrect runs the proof and further checks that every correct webhook must pass.
func checkCorrect(trial *Trial) {
	checks := []func(*Trial) string{twice, replayed, sameFromUsed}
	if trial.Case.Proof != nil {
		checks = append(checks, trial.Case.Proof)
	}
	if len(trial.Case.Webhook.Rules[0].Operations) > 1 {
		checks = append(checks, replacedWith(func(object) {}, func(stored, result object) string {
			return differ("the original manifest does not lead to the stored object", stored, result)
		}), updatesOlder(func(object) {}, func(_, result object) string {
			w := trial.Instance()
			return differ("a further UPDATE changes the object", result, w.Update(result, result))
		}))
	}
	for _, check := range checks {
		if problem := check(trial); problem != "" {
			trial.TB.Error(problem)
		}
	}
}

// sameFromUsed returns how an instance that has handled another object answers differently from a new one.
func sameFromUsed(t *Trial) string {
	return remembers(func(o object) { put(o, "other", "metadata", "name") })(t)
}
