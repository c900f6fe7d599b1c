// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// stagesOf returns the stages of w's version that the marker of the configuration confirms, because its selector
// matches their marker requests.
func stagesOf(t *testing.T, object *unstructured.Unstructured, w wanted) []stage {
	t.Helper()
	var selector metav1.LabelSelector
	fields := webhooks(object)[0]["objectSelector"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		t.Fatal(err)
	}
	s, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		t.Fatal(err)
	}
	var at []stage
	for _, stage := range []stage{installed, applied, promoted} {
		if s.Matches(labels.Set{markerLabel: labelValue(w.sort, w.name, stage, w.version)}) {
			at = append(at, stage)
		}
	}
	if s.Matches(labels.Set{}) || s.Matches(labels.Set{markerLabel: ""}) {
		t.Error("the marker denies requests that are no checks")
	}
	return at
}

// storedEntry returns a webhook of a stored configuration at a Service in the namespace ns.
func storedEntry(name, failurePolicy, service string) map[string]any {
	return map[string]any{
		"name": name, "failurePolicy": failurePolicy,
		"clientConfig": map[string]any{"service": map[string]any{"namespace": "ns", "name": service, "port": int64(443)}},
	}
}

func TestStages(t *testing.T) {
	i, _ := newFake(t, options(), denying("one.example.com"), labelling("two.example.com"))
	other, _ := newFake(t, options(), denying("one.example.com"), denying("more.example.com"), labelling("two.example.com"))
	w, next := i.wanted[1], other.wanted[1]
	closed := live{entries: []map[string]any{storedEntry("one.example.com", "Fail", "hooks")}}
	moved := live{entries: []map[string]any{storedEntry("one.example.com", "Fail", "others")}}
	rows := []struct {
		why    string
		object *unstructured.Unstructured
		asked  wanted
		want   []stage
	}{
		{"open", w.at(live{}, opening), w, []stage{installed, applied}},
		{"closed", w.at(live{}, closing), w, []stage{installed, applied, promoted}},
		{"nothing was opened", w.at(closed, opening), w, []stage{installed, applied, promoted}},
		{"closed, at another server", w.at(moved, opening), w, []stage{installed, applied}},
		{"another version", next.at(live{}, closing), w, []stage{installed}},
		{"the other sort", i.wanted[0].at(live{}, closing), w, nil},
	}
	for _, row := range rows {
		if got := stagesOf(t, row.object, row.asked); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.why, got, row.want)
		}
	}
}

func TestLabelValuesAreDistinctAndValid(t *testing.T) {
	seen := map[string]string{}
	for _, s := range sorts {
		for _, configuration := range []string{"a", "b", strings.Repeat("a.", 100) + "a"} {
			for _, at := range []stage{applied, promoted} {
				for _, version := range []string{"1", "2"} {
					value, what := labelValue(s, configuration, at, version), fmt.Sprint(s, configuration, at, version)
					if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
						t.Errorf("%s: %v", value, problems)
					}
					if seen[value] != "" {
						t.Errorf("%s and %s share %s", seen[value], what, value)
					}
					seen[value] = what
				}
			}
		}
	}
	if labelValue(mutating, "a", installed, "1") != labelValue(mutating, "a", installed, "2") {
		t.Error("installed is not one thing for all versions")
	}
}

// TestOpeningProperties uses hooks with Fail and random stored webhooks. The phase opening must keep Fail for webhooks
// that already have it at the same server, and set Ignore on all others. The phase closing must set Fail on all, and
// opening must keep it then.
func TestOpeningProperties(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var hooks []*webhook.Hook
		found, held := live{}, map[string]bool{}
		for n := range 1 + random.IntN(5) {
			name := fmt.Sprintf("n%d.example.com", n)
			hooks = append(hooks, denying(name))
			if random.IntN(2) == 0 {
				entry := storedEntry(name, []string{"Fail", "Ignore"}[random.IntN(2)], "hooks")
				if random.IntN(2) == 0 {
					entry["clientConfig"] = map[string]any{"url": "https://laptop.example.com:9443"}
				}
				found.entries = append(found.entries, entry)
				held[name] = failsClosed(entry) && serverOf(entry) == "ns/hooks:443"
			}
		}
		i, _ := newFake(t, options(), hooks...)
		w := i.wanted[1]
		open, closed := readLive(w.at(found, opening)), readLive(w.at(found, closing))
		for _, entry := range open.entries {
			if name := nameOf(entry); name != markerName("hooks") && failsClosed(entry) != held[name] {
				t.Fatalf("seed %d: opened, %s fails closed: %v, before: %v", seed, name, failsClosed(entry), found.entries)
			}
		}
		again := readLive(w.at(closed, opening))
		if names := namesOf(closed); len(names) != len(hooks)+1 || !slices.Equal(namesOf(open), names) || !slices.Equal(namesOf(again), names) {
			t.Fatalf("seed %d: opened %q, closed %q, applied again %q", seed, namesOf(open), names, namesOf(again))
		}
		for _, entry := range slices.Concat(closed.entries, again.entries) {
			if !failsClosed(entry) {
				t.Fatalf("seed %d: closed or applied again, %s is open", seed, nameOf(entry))
			}
		}
	}
}

func namesOf(l live) (names []string) {
	for _, entry := range l.entries {
		names = append(names, nameOf(entry))
	}
	return names
}

func TestNoBundleIsEverAppliedUnlessItIsGiven(t *testing.T) {
	i, _ := newFake(t, options(), denying("one.example.com"))
	text, err := i.wanted[1].at(live{}, closing).MarshalJSON()
	if err != nil || strings.Contains(string(text), "caBundle") || strings.Contains(string(text), "creationTimestamp") {
		t.Errorf("%v: %s", err, text)
	}
	o := options()
	o.Configuration.CABundle = authority(t)
	i, _ = newFake(t, o, denying("one.example.com"))
	if got := clientConfig(webhooks(i.wanted[1].object)[1])["caBundle"]; got != base64.StdEncoding.EncodeToString(o.Configuration.CABundle) {
		t.Errorf("got %v", got)
	}
}

func TestReadLive(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"resourceVersion": "5", "annotations": map[string]any{revisionAnnotation: "12"}},
		"webhooks": []any{
			map[string]any{"name": "a.example.com", "failurePolicy": "Fail", "clientConfig": map[string]any{"caBundle": "eA=="}},
			map[string]any{"name": "b.example.com", "failurePolicy": "Ignore"},
			map[string]any{"name": "c.example.com"},
		},
	}}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: fieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: fields(`{"f:webhooks":{"k:{\"name\":\"c.example.com\"}":{}}}`)},
		{Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields(`{"f:webhooks":{".":{},"k:{\"name\":\"a.example.com\"}":{".":{}},"k:{\"name\":\"b.example.com\"}":{}}}`)},
		{Manager: "helm", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields(`{"f:webhooks":{"k:{\"name\":\"c.example.com\"}":{}}}`)},
	})
	l := readLive(object)
	if l.revision != 12 || l.resourceVersion != "5" || !failsClosed(l.entry("a.example.com")) || failsClosed(l.entry("b.example.com")) || bundleOf(l.entry("a.example.com")) != "eA==" {
		t.Errorf("got %+v", l)
	}
	i, _ := newFake(t, options(), denying("b.example.com"))
	if got := l.obsolete(i.wanted[1]); !slices.Equal(got, []int{0}) {
		t.Errorf("obsolete %v", got)
	}
	if got := l.obsolete(wanted{}); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("ours %v", got)
	}
}

func fields(text string) *metav1.FieldsV1 {
	f := &metav1.FieldsV1{}
	f.SetRawBytes([]byte(text))
	return f
}

func TestUntrusted(t *testing.T) {
	// A webhook at another server does not need the marker's caBundle.
	elsewhere := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "elsewhere.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://elsewhere.example.com/x")},
	}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
	i, _ := newFake(t, options(), denying("old.example.com"), denying("new.example.com"), elsewhere)
	w := i.wanted[1]
	marker := markerName("hooks")
	rows := []struct {
		why     string
		bundles map[string]string
		want    []string
	}{
		{"no injector", nil, nil},
		{"no caBundle was injected into the marker, so others do not matter", map[string]string{"old.example.com": "eA=="}, nil},
		{"a new one", map[string]string{"old.example.com": "eA==", marker: "eA=="}, []string{"new.example.com"}},
		{"an outdated caBundle", map[string]string{"old.example.com": "eA==", "new.example.com": "eQ==", marker: "eA=="}, []string{"new.example.com"}},
		{"all", map[string]string{"old.example.com": "eA==", "new.example.com": "eA==", marker: "eA=="}, nil},
	}
	for _, row := range rows {
		var stored live
		for name, bundle := range row.bundles {
			stored.entries = append(stored.entries, map[string]any{"name": name, "clientConfig": map[string]any{"caBundle": bundle}})
		}
		if got := stored.untrusted(w); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.why, got, row.want)
		}
	}
}

// FuzzWebhooksIn passes arbitrary managed fields to webhooksIn, because any client that may write the configuration can
// set them.
func FuzzWebhooksIn(f *testing.F) {
	f.Add([]byte(`{"f:webhooks":{".":{},"k:{\"name\":\"a.example.com\"}":{"f:rules":{}}}}`))
	f.Add([]byte(`{"f:webhooks":{"k:{\"name\":1}":{},"k:":null,"v:3":{},"i:0":[]}}`))
	f.Add([]byte(`{"f:webhooks":[]}`))
	f.Fuzz(func(t *testing.T, set []byte) {
		for name := range webhooksIn(set) {
			if len(set) < len(name) && !strings.Contains(name, "\ufffd") {
				t.Errorf("%q is not in %q", name, set)
			}
		}
	})
}
