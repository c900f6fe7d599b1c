// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	ifNeeded = admissionregistrationv1.IfNeededReinvocationPolicy
	ignore   = admissionregistrationv1.Ignore
)

// mutatingHook returns a mutating webhook for a namespace, and makes answer its answerer.
func (w *auditedCluster) mutatingHook(namespace, name string, answer answerer) admissionregistrationv1.MutatingWebhook {
	w.hooks.handle(name+"."+namespace+".example.com", answer)
	return admissionregistrationv1.MutatingWebhook{Name: name}
}

func (w *auditedCluster) again(namespace, name string, answer answerer) admissionregistrationv1.MutatingWebhook {
	h := w.mutatingHook(namespace, name, answer)
	h.ReinvocationPolicy = &ifNeeded
	return h
}

func (w *auditedCluster) validatingHook(namespace, name string, answer answerer) admissionregistrationv1.ValidatingWebhook {
	w.hooks.handle(name+"."+namespace+".example.com", answer)
	return admissionregistrationv1.ValidatingWebhook{Name: name}
}

// label returns an answerer that sets the label team.
func label(value string) answerer {
	return patches(fmt.Sprintf(`[{"op":"replace","path":"/metadata/labels/team","value":%q}]`, value))
}

// TestRealServer runs a real API server with webhooks that cause a finding of every rule. Each scenario has its own
// namespace. The test compares the report on the audit log with the calls that the webhooks counted.
func TestRealServer(t *testing.T) {
	w := newAuditedCluster(t)
	for _, name := range []string{"wait", "good", "twice", "fight", "brief", "rivals", "denied", "open", "closed", "noop", "idle", "slow", "full", "stamp", "refused", "notes", "secret", "certificate", "crash", "gone"} {
		w.namespace(name)
	}
	w.register()
	w.settle()
	w.play()
	w.stop()
	if *keepLog != "" {
		log, err := os.ReadFile(w.log)
		if err == nil {
			err = os.WriteFile(*keepLog, log, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	sources, err := Sources([]string{w.log, w.log}, nil) // the log is read twice
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), sources, Options{Top: 50, Slow: 300 * time.Millisecond, Again: 5}, func(int64, int64, int) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("counts", func(t *testing.T) { w.compare(t, r) })
	t.Run("findings", func(t *testing.T) { compareRules(t, r) })
	if r.WithWebhooks != r.Duplicates {
		t.Errorf("%d requests with webhooks, %d of them read twice; the log was read twice", r.WithWebhooks, r.Duplicates)
	}
	if r.Files[0].Corrupt+r.Files[0].TooLong != 0 || r.Files[0].HalfWritten {
		t.Errorf("lines were skipped: %+v", r.Files[0])
	}
}

// register registers the webhooks of all scenarios.
func (w *auditedCluster) register() {
	w.mutating("good", w.again("good", "a", patches(`[{"op":"add","path":"/metadata/labels/good","value":"yes"}]`)))
	w.mutating("twice",
		w.again("twice", "a", patches(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/twice"}]`)),
		w.mutatingHook("twice", "b", label("b")))
	w.mutating("fight", w.again("fight", "a", label("a")), w.again("fight", "b", label("b")))
	w.mutating("brief", w.again("brief", "a", label("a")), w.again("brief", "b", label("b")))
	w.mutating("rivals", w.mutatingHook("rivals", "a", label("a")), w.mutatingHook("rivals", "b", label("b")))
	w.mutating("denied", w.mutatingHook("denied", "m", func(n int, req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int) {
		if req.Name == "mutating" {
			return denies(403)(n, req)
		}
		return allow(n, req)
	}))
	w.validating("denied", w.validatingHook("denied", "v", denies(0)))
	open, closed := w.mutatingHook("open", "m", breaks), w.mutatingHook("closed", "m", func(n int, req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int) {
		if req.Name == "mutating" {
			return breaks(n, req)
		}
		return allow(n, req)
	})
	open.FailurePolicy = &ignore
	w.mutating("open", open)
	vopen := w.validatingHook("open", "v", breaks)
	vopen.FailurePolicy = &ignore
	w.validating("open", vopen)
	w.mutating("closed", closed)
	w.validating("closed", w.validatingHook("closed", "v", breaks))
	w.mutating("noop", w.again("noop", "a", allow), w.mutatingHook("noop", "b", label("none")))
	w.mutating("idle", w.mutatingHook("idle", "a", patches(`[{"op":"replace","path":"/metadata/labels/team","value":"a"}]`)), w.mutatingHook("idle", "b", label("a")))
	w.mutating("slow", w.mutatingHook("slow", "m", slowly(patches(`[{"op":"add","path":"/metadata/labels/slow","value":"yes"}]`))))
	w.validating("slow", w.validatingHook("slow", "v", slowly(allow)))
	w.mutating("full", w.mutatingHook("full", "a", patches(`[{"op":"add","path":"/data/touched","value":"yes"}]`)))
	w.mutating("stamp", w.mutatingHook("stamp", "a", func(n int, _ *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int) {
		return patchWith(fmt.Sprintf(`[{"op":"add","path":"/data/revision","value":"%d"}]`, n)), 200
	}))
	w.mutating("refused", w.mutatingHook("refused", "m", patches(`[{"op":"remove","path":"/metadata/annotations/none"}]`)))
	w.validating("notes", w.validatingHook("notes", "v", func(int, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int) {
		return &admissionv1.AdmissionResponse{Allowed: true, AuditAnnotations: map[string]string{"rule": "friday"}}, 200
	}))
	w.mutating("secret", w.mutatingHook("secret", "m", patches(`[{"op":"add","path":"/spec/containers/0/env","value":[{"name":"DB_PASSWORD","value":"correct horse"}]}]`)))
	bad := admissionregistrationv1.MutatingWebhook{Name: "m", ClientConfig: noNames(w.t), FailurePolicy: &ignore}
	w.mutating("certificate", bad)
	w.mutating("gone", w.mutatingHook("gone", "m", allow))
	w.mutating("crash", w.mutatingHook("crash", "m", denies(1000)))
}

// slowly delays an answer for more than 500 ms, so that the API server records the latency in the audit log.
func slowly(answer answerer) answerer {
	return func(n int, req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int) {
		<-time.After(600 * time.Millisecond)
		return answer(n, req)
	}
}

// play sends the requests of all scenarios.
func (w *auditedCluster) play() {
	t, ctx := w.t, w.t.Context()
	maps := w.client.CoreV1()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, ns := range []string{"good", "fight", "brief", "rivals", "open", "noop", "idle", "slow", "full", "stamp", "notes", "certificate"} {
		if w.create(ns, "one") == nil {
			t.Fatalf("the ConfigMap in %s was refused", ns)
		}
	}
	twice := config("one")
	twice.Finalizers = []string{"example.com/mine"}
	must(maps.ConfigMaps("twice").Create(ctx, twice, metav1.CreateOptions{}))
	for _, name := range []string{"mutating", "validating"} {
		w.create("denied", name)
		w.create("closed", name)
	}
	w.create("refused", "one")
	w.create("crash", "one")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}}}
	must(maps.Pods("secret").Create(ctx, pod, metav1.CreateOptions{}))

	for _, name := range []string{"one", "two", "three"} {
		must(maps.ConfigMaps("gone").Create(ctx, config(name), metav1.CreateOptions{}))
	}
	must(nil, maps.ConfigMaps("gone").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "team=none"}))

	// Update stored objects: with a whole object that lacks the webhooks' changes, and with patches.
	for i := range 6 {
		for _, ns := range []string{"full", "stamp"} {
			again := config("one")
			again.Data["round"] = fmt.Sprint(i)
			must(maps.ConfigMaps(ns).Update(ctx, again, metav1.UpdateOptions{}))
		}
		// A dry run stores nothing, so the webhook must repeat its change.
		must(maps.ConfigMaps("good").Update(ctx, config("one"), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	for i := range 3 {
		must(maps.ConfigMaps("rivals").Patch(ctx, "one", types.MergePatchType, fmt.Appendf(nil, `{"data":{"round":"%d"}}`, i), metav1.PatchOptions{}))
	}
}

// compare compares the counts of the report with those of the webhooks.
func (w *auditedCluster) compare(t *testing.T, r *Report) {
	calls := map[string]Mutating{}
	for _, m := range r.Mutating {
		calls[m.Webhook] = m
		if m.Webhook == "m.gone.example.com" { // the log has only one call for each request that deletes a collection
			if own := w.hooks.of(m.Webhook); m.Calls != 1 || own.calls < 3 || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "deleted collections") }) {
				t.Errorf("%s: %d calls in the report, %d came; notes: %q", m.Webhook, m.Calls, own.calls, r.Notes)
			}
		} else if own := w.hooks.of(m.Webhook); m.Configuration == "rivals" && own.calls > m.Calls {
			// The API server applies a PATCH again, with new calls, if its watch cache had an older object. It logs the
			// last attempt only.
			continue
		} else if own.calls != m.Calls && m.Webhook != "m.certificate.example.com" {
			t.Errorf("%s: %d calls in the report, %d came", m.Webhook, m.Calls, own.calls)
		} else if own.denied != m.Denied && m.Webhook != "m.crash.example.com" {
			t.Errorf("%s: denied %d in the report, %d times in fact", m.Webhook, m.Denied, own.denied)
		} else if own.failed != m.Failed+m.FailedOpen && m.Webhook != "m.certificate.example.com" {
			t.Errorf("%s: failed %d+%d in the report, %d times in fact", m.Webhook, m.Failed, m.FailedOpen, own.failed)
		} else if own.patched != m.Patches && m.Configuration != "brief" && m.Webhook != "m.refused.example.com" {
			t.Errorf("%s: %d patches in the report, %d in fact", m.Webhook, m.Patches, own.patched)
		}
	}
	for name, answers := range w.hooks.counts {
		if _, ok := calls[name]; !ok && answers.calls > 0 && name[0] != 'v' {
			t.Errorf("%s is missing, which was called %d times", name, answers.calls)
		}
	}
	for _, v := range r.Validating {
		if own := w.hooks.of(v.Webhook); own.denied != v.Denied || own.failed != v.Failed+v.FailedOpen {
			t.Errorf("%+v in the report, %+v in fact", v, own)
		}
	}
	for name, want := range map[string]Mutating{
		"a.twice.example.com": {Calls: 2, Reinvoked: 1, Mutated: 2, MutatedInRound1: 1},
		"a.fight.example.com": {Calls: 2, Reinvoked: 1, Mutated: 2, MutatedInRound1: 1},
		"b.fight.example.com": {Calls: 2, Reinvoked: 1, Mutated: 2, MutatedInRound1: 1},
		"a.noop.example.com":  {Calls: 2, Reinvoked: 1},
		"b.idle.example.com":  {Calls: 1},
	} {
		got := calls[name]
		if got.Calls != want.Calls || got.Reinvoked != want.Reinvoked || got.Mutated != want.Mutated || got.MutatedInRound1 != want.MutatedInRound1 {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if got := calls["m.slow.example.com"].SlowestMilliseconds; got < 500 {
		t.Errorf("m.slow.example.com took %d ms", got)
	}
	if len(r.AuditAnnotations) != 1 || r.AuditAnnotations[0] != (Annotation{"v.notes.example.com", "rule", w.hooks.of("v.notes.example.com").calls}) {
		t.Errorf("audit annotations: %+v", r.AuditAnnotations)
	}
}

// compareRules checks that each rule has the expected findings and no others.
func compareRules(t *testing.T, r *Report) {
	var got []string
	for _, f := range r.Findings {
		line := f.Rule
		for _, w := range f.Webhooks {
			line += " " + w.Webhook
		}
		switch {
		case f.Rule == slowValidating, line == slowMutating+" m.slow.example.com":
			f.Requests = 1 // on a busy machine, requests of other scenarios are slow as well
		case f.Rule == slowMutating:
			continue
		}
		got = append(got, fmt.Sprintf("%s: %d", line, f.Requests))
		if len(f.Examples) == 0 || f.Examples[0].AuditID == "" || f.Examples[0].Time.IsZero() || f.Examples[0].User == "" {
			t.Errorf("%s has no example that says which request it was: %+v", f.Rule, f.Examples)
		}
	}
	want := []string{
		"failed-closed m.closed.example.com: 1",
		"failed-closed v.closed.example.com: 1",
		"not-idempotent a.twice.example.com: 1",
		"ping-pong a.fight.example.com b.fight.example.com: 1",
		"ping-pong a.rivals.example.com b.rivals.example.com: 3",
		"panic: 1",
		"patch-refused m.refused.example.com: 1",
		"failed-open m.certificate.example.com: 1",
		"failed-open m.open.example.com: 1",
		"failed-open v.open.example.com: 1",
		"mutates-again a.full.example.com: 6",
		"no-op-reinvokes b.noop.example.com: 1",
		"slow-mutating m.slow.example.com: 1",
		"slow-validating: 1",
		"certificate: 1",
		"mutates-each-time a.stamp.example.com: 6",
		"no-op-patch b.idle.example.com: 1",
		"both-rounds a.brief.example.com b.brief.example.com: 1",
		"secret-in-log m.secret.example.com: 1",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("found, and should not be: %s", line)
			}
		}
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("not found: %s", line)
			}
		}
	}
}
