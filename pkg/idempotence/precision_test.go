// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/test/corpus"
)

func parsed(t *testing.T, text string) any {
	t.Helper()
	doc, err := tree.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestLosses(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     []string
	}{
		"an element that is changed": {
			`{"tolerations":[{"key":"a","operator":"Exists","tolerationSeconds":5}]}`, `{"tolerations":[{"key":"a","operator":"Exists","tolerationSeconds":9}]}`, nil},
		"an element that is another": {
			`{"tolerations":[{"key":"a","operator":"Exists","effect":"NoSchedule"}]}`, `{"tolerations":[{"key":"b","operator":"Exists","effect":"NoSchedule"}]}`,
			[]string{`tolerations[{"effect":"NoSchedule","key":"a","operator":"Exists"}]`}},
		"two of one key, and one is left": {
			`{"tolerations":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]}`, `{"tolerations":[{"key":"a","effect":"NoExecute"}]}`,
			[]string{`tolerations[{"effect":"NoSchedule","key":"a"}]`}},
		"two of one key, and a third is left": {
			`{"tolerations":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]}`, `{"tolerations":[{"key":"a"}]}`,
			[]string{`tolerations[{"effect":"NoExecute","key":"a"}]`}},
		"a command that is wrapped":       {`{"command":["a"]}`, `{"command":["run","a"]}`, nil},
		"a text that is another":          {`{"searches":["a","b"]}`, `{"searches":["a","c"]}`, []string{`searches["b"]`}},
		"a text that is completed":        {`{"hostnames":["db"]}`, `{"hostnames":["db.example.com"]}`, nil},
		"a flag with another value":       {`{"args":["--port=1"]}`, `{"args":["--port=2"]}`, nil},
		"texts of which one is left":      {`{"searches":["a","b"]}`, `{"searches":["c"]}`, []string{`searches["a"]`, `searches["b"]`}},
		"a finalizer that is another":     {`{"finalizers":["a"]}`, `{"finalizers":["b"]}`, []string{`finalizers["a"]`}},
		"all capabilities":                {`{"drop":["A","B"]}`, `{"drop":["ALL"]}`, nil},
		"a value in place of a reference": {`{"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x"}}}]}`, `{"env":[{"name":"A","value":"b"}]}`, nil},
		"a probe of another kind":         {`{"readinessProbe":{"tcpSocket":{"port":1}}}`, `{"readinessProbe":{"httpGet":{"port":1}}}`, nil},
		"a probe of no kind":              {`{"readinessProbe":{"tcpSocket":{"port":1}}}`, `{"readinessProbe":{}}`, []string{`readinessProbe.tcpSocket`}},
		"a port that moves":               {`{"ports":[{"name":"http","containerPort":80}]}`, `{"ports":[{"name":"http","containerPort":81}]}`, nil},
		"a port that goes":                {`{"ports":[{"containerPort":80},{"containerPort":81}]}`, `{"ports":[{"containerPort":82}]}`, []string{`ports[containerPort=80,protocol=TCP]`, `ports[containerPort=81,protocol=TCP]`}},
		"a source that is changed": {
			`{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":600}}]}`, `{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":900}}]}`, nil},
		"a source that is another": {
			`{"envFrom":[{"configMapRef":{"name":"a"}}]}`, `{"envFrom":[{"configMapRef":{"name":"b"}}]}`, []string{`envFrom[{"configMapRef":{"name":"a"}}]`}},
		"a map":       {`{"labels":{"a":"1"}}`, `{"labels":{"b":"1"}}`, []string{"labels.a"}},
		"a container": {`{"containers":[{"name":"a","image":"x"}]}`, `{"containers":[{"name":"b","image":"x"}]}`, []string{"containers[name=a]"}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := parsed(t, tc.from), parsed(t, tc.to)
			var got []string
			for _, c := range losses(tree.Changes(from, to), to, (&inputs{}).same) {
				got = append(got, c.Path.String())
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if !slices.Equal(got, tc.want) {
				t.Errorf("lost %q, want %q", got, tc.want)
			}
		})
	}
}

func TestExceptionsCoverParents(t *testing.T) {
	const base = `{"metadata":{"name":"a"},"spec":{}}`
	for name, tc := range map[string]struct {
		pattern, from, to string
		intended          bool
	}{
		"the map that the key makes":    {"metadata.annotations[at]", base, `{"metadata":{"name":"a","annotations":{"at":"1"}},"spec":{}}`, true},
		"the map with another key":      {"metadata.annotations[at]", base, `{"metadata":{"name":"a","annotations":{"at":"1","b":"2"}},"spec":{}}`, false},
		"the map that empties":          {"metadata.annotations[at]", `{"metadata":{"name":"a","annotations":{"at":"1"}},"spec":{}}`, base, true},
		"a map of nothing":              {"metadata.annotations[at]", `{"metadata":{"name":"a","annotations":{}},"spec":{}}`, base, true},
		"another map of nothing":        {"metadata.labels[at]", `{"metadata":{"name":"a","annotations":{}},"spec":{}}`, base, false},
		"the list that empties":         {"spec.volumes[name=old]", `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"old"}]}}`, base, true},
		"the list with another element": {"spec.volumes[name=old]", `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"old"},{"name":"new"}]}}`, base, false},
		"a value in a new element":      {"spec.volumes[*].size", base, `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"old","size":1}]}}`, false},
		"a new element of a family":     {"spec.volumes[name=creds-*]", base, `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"creds-x7k2p"}]}}`, true},
		"an element of another family":  {"spec.volumes[name=creds-*]", base, `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"token-x7k2p"}]}}`, false},
		"an element that moves":         {"spec.volumes[name=old]", `{"spec":{"volumes":[{"name":"old"},{"name":"a"},{"name":"b"}]}}`, `{"spec":{"volumes":[{"name":"a"},{"name":"b"},{"name":"old"}]}}`, true},
		"others that move":              {"spec.volumes[name=old]", `{"spec":{"volumes":[{"name":"old"},{"name":"a"},{"name":"b"}]}}`, `{"spec":{"volumes":[{"name":"b"},{"name":"a"},{"name":"old"}]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{opts: newOptions(Options{Exceptions: []Exception{{Path: tc.pattern, Reason: "a test"}}}, internals{}), report: newReport(Subject{}, options{})}
			changes := tree.Changes(parsed(t, tc.from), parsed(t, tc.to))
			if len(changes) != 1 {
				t.Fatalf("%d changes: %v", len(changes), changes)
			}
			if got := r.intended(L1, changes[0]); got != tc.intended {
				t.Errorf("%s %s: intended %v", changes[0].Kind, changes[0].Path, got)
			}
			if needed := r.report.needed[0]; needed != tc.intended {
				t.Errorf("the exception was needed: %v", needed)
			}
		})
	}
}

// An exception for what could be missing is needed where it is missing.
func TestExceptionsForWhatIsLeftOut(t *testing.T) {
	const plain, whole = `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","annotations":{"at":"1"}}}`
	for result, missing := range map[string]bool{whole: false, plain: true} {
		r := &run{opts: newOptions(Options{Exceptions: []Exception{{Path: "metadata.annotations[at]", Reason: "a test"}}}, internals{}), report: newReport(Subject{}, options{})}
		outcomeOf := func(text string) *outcome {
			return &outcome{answer: &answer{after: &objects.Object{Doc: parsed(t, text)}}}
		}
		if c, found := r.leftOut(L5, outcomeOf(plain).after, outcomeOf(whole), outcomeOf(result)); found || r.report.needed[0] != missing {
			t.Errorf("%s: found %v %s, needed %v", result, found, c.Path, r.report.needed[0])
		}
	}
}

// An exception that was not needed is told of where its law was looked at, and nowhere else.
func TestExceptionsThatWereNotNeeded(t *testing.T) {
	const elsewhere = "metadata.annotations[example.com/other]"
	for _, tt := range []struct {
		reason    string
		exception Exception
		told      bool
	}{
		{"nothing happens there", Exception{Path: elsewhere}, true},
		{"nor in the way of the law", Exception{Path: elsewhere, Law: L5}, true},
		{"the rules have no UPDATE", Exception{Path: elsewhere, Law: L6}, false},
		{"the law was left out", Exception{Path: elsewhere, Law: L1}, false},
		{"there is nothing to match", Exception{Path: "rival:other", Law: L11}, false},
	} {
		tt.exception.Reason = tt.reason
		report, err := Run(t.Context(), editing("", "v1", "configmaps", onCreate, marked), Options{Objects: 3, Without: []Law{L1}, Exceptions: []Exception{tt.exception}})
		if err != nil || !report.OK() || len(report.Incomplete) > 0 {
			t.Fatalf("%s: %v\n%s", tt.reason, err, text(report))
		}
		if told := strings.Contains(report.Texts(report.Notes), "was not needed"); told != tt.told {
			t.Errorf("%s: told %v:\n%s", tt.reason, told, text(report))
		}
	}
}

// A webhook that is impure is said to be that, and nothing that follows from it.
func TestImpureIsAllThatIsSaid(t *testing.T) {
	for _, name := range []string{"P17 map iteration decides list order", "M22 the clock, to the second", "P23 wall clock"} {
		for _, c := range corpus.Patterns() {
			if c.Name != name {
				continue
			}
			report := runCase(t, c, Options{Objects: mutationObjects})
			for _, v := range report.Findings {
				if v.Law != L3 && v.Verdict != Advice {
					t.Errorf("%s: %s, too:\n%s", name, v.Law, text(report))
				}
			}
		}
	}
}

// What all others add at once must leave an object that the API server accepts.
func TestAdditionsAreLegalTogether(t *testing.T) {
	for _, gvk := range usualKinds {
		k := objects.KindOf(gvk)
		r := &run{kind: k, inputs: newInputs(k, nil), opts: newOptions(Options{}, internals{}), operation: "CREATE"}
		random := rand.New(rand.NewPCG(1, 0))
		x, ok := r.valid(r.inputs.object(random, 1))
		if !ok {
			t.Fatalf("%s: the object is not valid", gvk.Kind)
		}
		additions := r.additions(random, x.Doc)
		legal := r.legal(x, additions)
		if _, ok := r.edited(x, legal); !ok || len(legal) < len(additions)-len(edits.ContainerLists(x.Doc)) {
			t.Errorf("%s: %d of %d additions are legal together", gvk.Kind, len(legal), len(additions))
		}
	}
}
