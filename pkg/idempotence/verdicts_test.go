// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/test/corpus"
)

// The function returns a change that annotates those ConfigMaps whose data has the key.
func only(key string) func(*admissionv1.AdmissionRequest, document) {
	return func(r *admissionv1.AdmissionRequest, doc document) {
		if data, _ := doc["data"].(document); data[key] != nil {
			marked(r, doc)
		}
	}
}

func configMap(key string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "settings"},
		Data: map[string]string{key: "on"},
	}
}

func verdictOf(t *testing.T, r *Report, law Law) LawResult {
	t.Helper()
	for _, l := range r.Laws {
		if l.Law == law {
			return l
		}
	}
	t.Fatalf("the report has no %s", law)
	return LawResult{}
}

// TestCheckFailsIfNothingIsChanged tests a webhook that changes no generated object. Check must fail, because the run
// proves nothing, unless there is a sample or an Allowance.
func TestCheckFailsIfNothingIsChanged(t *testing.T) {
	asleep := editing("", "v1", "configmaps", onCreate, only("switched-on"))
	for _, tt := range []struct {
		name   string
		opts   Options
		passes bool
		says   string
	}{
		{"as it is", Options{}, false, "a sample needs the labels, annotations, fields or namespace for which its code acts: add objects that it changes to Options.Samples"},
		{"with a sample", Options{Samples: []runtime.Object{configMap("switched-on")}}, true, ""},
		{"declared", Options{AllowInconclusive: []Allowance{{Reason: "the switch is in another cluster"}}}, true, "which is allowed: the switch is in another cluster"},
		{"declared for one law only", Options{AllowInconclusive: []Allowance{{Reason: "no matter", Laws: []Law{L9}}}}, false, "changed none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			outer := &recorded{TB: t}
			tt.opts.Objects, tt.opts.Store = 6, NoStore
			report := Check(outer, asleep, tt.opts)
			if (len(outer.errors) == 0) != tt.passes || (len(report.Incomplete) == 0) != tt.passes {
				t.Errorf("passes is %t, want %t; incomplete: %v", len(outer.errors) == 0, tt.passes, report.Incomplete)
			}
			words := strings.Join(strings.Fields(text(report)), " ")
			if !strings.Contains(words, tt.says) {
				t.Errorf("no %q in\n%s", tt.says, words)
			}
		})
	}
}

func TestAllowInconclusiveIsChecked(t *testing.T) {
	for _, a := range []Allowance{{}, {Reason: "a reason", Laws: []Law{"L99"}}} {
		if _, err := Run(t.Context(), editing("", "v1", "configmaps", onCreate, marked), Options{Objects: 1, AllowInconclusive: []Allowance{a}}); err == nil {
			t.Error("no error")
		}
	}
}

// TestEachKindMustBeChanged tests a webhook that changes only one of its two kinds. The run must be incomplete because
// of the other kind.
func TestEachKindMustBeChanged(t *testing.T) {
	subject := editing("", "v1", "*", onCreate, func(r *admissionv1.AdmissionRequest, doc document) {
		if r.Kind.Kind == "ConfigMap" {
			marked(r, doc)
		}
	})
	report, err := Run(t.Context(), subject, Options{Objects: 6, Samples: []runtime.Object{configMap("a"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b"}}}})
	if err != nil || !report.OK() || !strings.HasPrefix(report.Texts(report.Incomplete), "v1 Secret: the webhook changed none of ") || strings.Contains(report.Texts(report.Incomplete), "ConfigMap") {
		t.Errorf("%v, incomplete: %v", err, report.Incomplete)
	}
}

func TestLawsThatDoNotApply(t *testing.T) {
	subject := func(effects *admissionregistrationv1.SideEffectClass) Subject {
		s := editing("", "v1", "configmaps", onCreate, marked)
		s.webhooks[0].SideEffects = effects
		return s
	}
	for _, tt := range []struct {
		name    string
		effects admissionregistrationv1.SideEffectClass
		opts    Options
		law     Law
		want    LawResult
	}{
		{"a dry run of one with side effects", admissionregistrationv1.SideEffectClassSome, Options{}, L7,
			LawResult{Verdict: NotApplicable, Reason: &Reason{Code: ReasonNoDryRun}}},
		{"a dry run of who knows", admissionregistrationv1.SideEffectClassUnknown, Options{}, L7,
			LawResult{Verdict: NotApplicable, Reason: &Reason{Code: ReasonNoDryRun}}},
		{"a dry run without an observer of side effects", admissionregistrationv1.SideEffectClassNone, Options{}, L7, LawResult{Verdict: Passes, Reason: &Reason{Code: ReasonEffectsUnwatched}}},
		{"a dry run that is watched", admissionregistrationv1.SideEffectClassNoneOnDryRun, Options{Observe: func() any { return 1 }}, L7, LawResult{Verdict: Passes}},
		{"updates without UPDATE", admissionregistrationv1.SideEffectClassNone, Options{}, L6, LawResult{Verdict: NotApplicable, Reason: &Reason{Code: ReasonNoUpdateRule}}},
		{"a law that is left out", admissionregistrationv1.SideEffectClassNone, Options{Without: []Law{L9}}, L9, LawResult{Verdict: NotApplicable, Reason: &Reason{Code: ReasonLawExcluded}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Objects = 4
			report, err := Run(t.Context(), subject(ptr.To(tt.effects)), tt.opts)
			if err != nil || len(report.Incomplete) > 0 {
				t.Fatal(err, report.Incomplete)
			}
			got := verdictOf(t, report, tt.law)
			if got.Verdict != tt.want.Verdict || !reflect.DeepEqual(got.Reason, tt.want.Reason) || got.Verdict == NotApplicable && got.Cases > 0 {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestOnlyDecidedCasesCount computes the verdict on a law with 40 cases. If two of them are decided, the law must be
// inconclusive. If three are, it must pass.
func TestOnlyDecidedCasesCount(t *testing.T) {
	decide := verdicts{opts: &options{objects: 10}, tally: &explore.Tally{Objects: 10, Changed: 10, Called: 10,
		Tried: map[laws.Law]int{laws.L4a: 40}, Decided: map[laws.Law]int{laws.L4a: 2}}}
	if verdict, reason := decide.verdict(L4a); verdict != Inconclusive || reason.Code != ReasonFewCases || reason.Count != 2 || reason.Of != 40 {
		t.Errorf("%s: %s", verdict, reason)
	}
	decide.tally.Decided[laws.L4a] = 3
	if verdict, reason := decide.verdict(L4a); verdict != Passes {
		t.Errorf("%s: %s", verdict, reason)
	}
}

// TestDeniedCasesAreUndecided tests a webhook that denies all requests. Laws about the result must have no decided
// cases. For L3, equal denials must count.
func TestDeniedCasesAreUndecided(t *testing.T) {
	denies := func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review admissionv1.AdmissionReview
			_ = json.NewDecoder(r.Body).Decode(&review)
			fmt.Fprintf(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%q,"allowed":false}}`, review.Request.UID)
		})
	}
	subject := Handler(editing("", "v1", "configmaps", onCreate, marked).webhooks[0].MutatingWebhook, denies)
	report, err := Run(t.Context(), subject, Options{Objects: 6})
	if err != nil || report.Allowed != 0 {
		t.Fatal(err, report.Allowed)
	}
	for _, law := range []Law{L1, L4a, L4b, L5, L10} {
		if got := verdictOf(t, report, law); got.Cases != 0 || got.Verdict != Inconclusive {
			t.Errorf("%+v, want no case and no verdict", got)
		}
	}
	if got := verdictOf(t, report, L3); got.Cases == 0 {
		t.Errorf("equal denials are not counted: %+v", got)
	}
}

// TestRunEndsDuringACall cancels a run during a call. The run must make no more calls.
func TestRunEndsDuringACall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls atomic.Int64
	inner := editing("", "v1", "configmaps", onCreate, marked).webhooks[0]
	report, err := Run(ctx, Handler(inner.MutatingWebhook, func() http.Handler {
		next := inner.NewHandler()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 7 {
				cancel()
			}
			next.ServeHTTP(w, r)
		})
	}), Options{Store: t.TempDir()})
	if err != nil || calls.Load() != 7 || report.Calls != 7 || len(report.Findings) > 0 || report.Incomplete[0].Code != ReasonInterrupted {
		t.Errorf("%v: %d calls, %d reported, findings %v, incomplete: %v", err, calls.Load(), report.Calls, report.Findings, report.Incomplete)
	}
}

func TestRunsEndAfterTheirBudget(t *testing.T) {
	report, err := Run(t.Context(), editing("", "v1", "configmaps", onCreate, marked), Options{Budget: 1})
	if err != nil || report.Calls != 0 || !strings.Contains(report.Texts(report.Incomplete), "after its budget of 1ns: raise Options.Budget") {
		t.Errorf("%v: %d calls, incomplete: %v", err, report.Calls, report.Incomplete)
	}
}

// TestInstancesAreCreatedOnlyIfNeeded checks only laws that need no fresh instance, and disables the search for a
// trigger, which needs many. The harness must create a single instance.
func TestInstancesAreCreatedOnlyIfNeeded(t *testing.T) {
	inner := editing("", "v1", "configmaps", onCreate, marked).webhooks[0]
	made := 0
	subject := Handler(inner.MutatingWebhook, func() http.Handler { made++; return inner.NewHandler() })
	others := []Law{L1, L3, L4a, L4b, L5, L6, L7, L11, L12}
	report, err := runWith(t.Context(), subject, Options{Without: others}, internals{unused: map[explore.Family]bool{explore.Triggers: true}})
	if err != nil || made != 1 || report.Calls < 100 {
		t.Errorf("%v: %d instances for %d calls, want 1", err, made, report.Calls)
	}
}

// TestFindingsAppearOnFreshInstances tests a webhook that fails after 200 calls of one instance. The harness must not
// report this failure, because it does not appear on a fresh instance.
func TestFindingsAppearOnFreshInstances(t *testing.T) {
	inner := editing("", "v1", "configmaps", onCreate, marked).webhooks[0]
	report, err := Run(t.Context(), Handler(inner.MutatingWebhook, func() http.Handler {
		calls, next := 0, inner.NewHandler()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls++; calls > 200 {
				http.Error(w, "worn out", http.StatusInternalServerError)
				return
			}
			next.ServeHTTP(w, r)
		})
	}), Options{Without: []Law{L3}})
	if err != nil || !report.OK() {
		t.Errorf("%v: findings that cannot be replayed:\n%s", err, text(report))
	}
}

// TestUncheckedStoredCaseIsIncomplete stores a case for a rival that the run does not have. The run must be incomplete,
// unless the law is excluded or an Allowance covers it.
func TestUncheckedStoredCaseIsIncomplete(t *testing.T) {
	c := pattern(t, "P21 keeps moving itself to the front")
	dir := filepath.Join(t.TempDir(), folderOf([]string{c.Webhook.Name}))
	content, err := os.ReadFile("testdata/report/rival.json")
	if err == nil {
		content = []byte(strings.Replace(string(content), `"keeps its parts first"`, `"of-yesterday.example.com"`, 1))
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "L12-rival.json"), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const todo = `this run has no rival webhook "of-yesterday.example.com": add it to Options.Rivals, or delete the file`
	report := runCase(t, c, Options{Objects: 2, Store: filepath.Dir(dir), Without: []Law{L12}})
	if strings.Contains(report.Texts(report.Incomplete), todo) {
		t.Errorf("the law is excluded, but incomplete: %s", report.Incomplete)
	}
	report = runCase(t, quiet(c), Options{Objects: 2, Store: filepath.Dir(dir)})
	if !strings.Contains(report.Texts(report.Incomplete), todo) {
		t.Errorf("incomplete: %q, want one that has %q", report.Incomplete, todo)
	}
	report = runCase(t, quiet(c), Options{Objects: 2, Store: filepath.Dir(dir), AllowInconclusive: []Allowance{{Reason: "we know", Laws: []Law{L12}}}})
	if len(report.Incomplete) > 0 {
		t.Errorf("the law may be inconclusive, but incomplete: %v", report.Incomplete)
	}
}

// quiet returns c with the handler of a correct webhook.
func quiet(c corpus.Case) corpus.Case {
	for _, good := range corpus.Lookalikes() {
		if good.Name == "P01 append if absent" {
			c.New = good.New
		}
	}
	return c
}

// TestOutdatedStoredCaseIsANote stores a case whose object is not valid any more. The run must only note this, and must
// not be incomplete.
func TestOutdatedStoredCaseIsANote(t *testing.T) {
	c := quiet(pattern(t, "P21 keeps moving itself to the front"))
	store := t.TempDir()
	dir := filepath.Join(store, folderOf([]string{c.Webhook.Name}))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const stored = `{"case": {"law": "L1", "operation": "CREATE",
		"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}}}`
	if err := os.WriteFile(filepath.Join(dir, "L1-old.json"), []byte(stored), 0o600); err != nil {
		t.Fatal(err)
	}
	report := runCase(t, c, Options{Objects: 12, Store: store})
	if !report.OK() || !strings.Contains(report.Texts(report.Notes), "L1-old.json no longer applies: the API server no longer accepts its object: delete the file") {
		t.Errorf("notes %q, incomplete %q", report.Texts(report.Notes), report.Texts(report.Incomplete))
	}
}

// TestFailureAfterALateAddition tests a webhook that panics if a container was added after its first call. The webhook
// must fail L4b with the failure mode "server error".
func TestFailureAfterALateAddition(t *testing.T) {
	remembering := func(_ *admissionv1.AdmissionRequest, doc document) {
		containers, _ := at(doc, "spec")["containers"].([]any)
		annotations := at(doc, "metadata", "annotations")
		switch known, seen := annotations["example.com/containers"].(string); {
		case !seen:
			annotations["example.com/containers"] = strconv.Itoa(len(containers))
		case known < strconv.Itoa(len(containers)):
			panic("a container that was not there")
		}
	}
	others := slices.DeleteFunc(slices.Clone(Laws), func(l Law) bool { return l == L4b })
	report, err := Run(t.Context(), editing("", "v1", "pods", onCreate, remembering), Options{Objects: 2, Without: others})
	if err != nil || len(report.Findings) != 1 {
		t.Fatalf("%v:\n%s", err, text(report))
	}
	v := report.Findings[0]
	if v.Law != L4b || v.FailureMode != FailureServerError || !strings.Contains(v.Cause, "only before its first call, or only after it") {
		t.Errorf("%s, %s, cause %q", v.Law, v.FailureMode, v.Cause)
	}
}
