// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

const (
	setA      = `[{"op":"replace","path":"/metadata/labels/team","value":"a"}]`
	setB      = `[{"op":"replace","path":"/metadata/labels/team","value":"b"}]`
	addX      = `[{"op":"add","path":"/spec/containers/-","value":{"name":"x"}}]`
	teamA     = `{"metadata":{"labels":{"team":"a"}}}`
	teamNone  = `{"metadata":{"labels":{"team":"none"}}}`
	denial    = `admission webhook "a.example.com" denied the request: no`
	failure   = `Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://a.shop.svc:443/?timeout=5s": context deadline exceeded`
	badRemove = `Internal error occurred: remove operation does not apply: doc is missing path: "/x": missing value`
)

// many returns n copies of an event, with different times and IDs.
func many(n int, e event) (all []event) {
	for i := range n {
		e.ID, e.Second = e.ID+"x", i
		all = append(all, e)
	}
	return all
}

// TestRules checks, for each rule, that events with the problem make a finding, and that similar events without the
// problem make none.
func TestRules(t *testing.T) {
	a := func(round int, mutated bool, patch string) recordedCall {
		return recordedCall{Round: round, Hook: "a.example.com", Mutated: mutated, Patch: patch}
	}
	b := func(round int, mutated bool, patch string) recordedCall {
		return recordedCall{Round: round, Hook: "b.example.com", Mutated: mutated, Patch: patch}
	}
	for _, c := range []struct {
		reason string
		events []event
		want   string
	}{
		{"a denial is a webhook at work", []event{{Code: 403, Message: denial, Calls: []recordedCall{a(0, false, "")}}}, ""},
		{"a failure under Fail rejects requests", []event{{Code: 500, Message: failure, Calls: []recordedCall{a(0, false, "")}}}, "failed-closed 1"},
		{"a validating webhook that failed is in no annotation", []event{{Code: 500, Message: failure}}, "failed-closed 1"},
		{"another webhook's denial quotes this message", []event{{Code: 403, Message: "denied: failed calling webhook \"a.example.com\": x"}}, ""},
		{"a denial may quote a failure", []event{{Code: 403, Message: `admission webhook "a.example.com" denied the request: failed calling webhook "b.example.com": x`}}, ""},
		{"the message of a request that was not rejected", []event{{Code: 200, Message: failure}}, ""},
		{"dry run is refused", []event{{Code: 400, Message: `admission webhook "a.example.com" does not support dry run`, Calls: []recordedCall{a(0, false, "")}}}, "no-dry-run 1"},

		{"fails open, mutating", []event{{Calls: []recordedCall{{Hook: "a.example.com", FailedOpen: true}}}}, "failed-open 1"},
		{"fails open, validating", []event{{Annotations: map[string]string{openValidatingPrefix + "round_0_index_0": "v.example.com"}}}, "failed-open 1"},

		{"adds the same in both rounds", []event{{Verb: "create", Calls: []recordedCall{a(0, true, addX), b(0, true, setB), a(1, true, addX)}}}, "not-idempotent 1"},
		{"the other one changes the element", []event{{Verb: "create", Calls: []recordedCall{a(0, true, addX), b(0, true, `[{"op":"replace","path":"/spec/containers/1/image","value":"i"}]`), a(1, true, addX)}}}, "not-idempotent 1"},
		{"adds something else in round 1", []event{{Verb: "create", Calls: []recordedCall{a(0, true, addX), b(0, true, setB), a(1, true, `[{"op":"add","path":"/spec/containers/-","value":{"name":"y"}}]`)}}}, ""},
		{"adds the same to another list", []event{{Verb: "create", Calls: []recordedCall{
			a(0, true, `[{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"x"}}]`), b(0, true, `[{"op":"add","path":"/spec/containers/-","value":{"name":"y"}}]`),
			a(1, true, `[{"op":"add","path":"/spec/containers/1/env/-","value":{"name":"x"}}]`)}}}, ""},
		{"the list has moved: it is another one", []event{{Verb: "create", Calls: []recordedCall{
			a(0, true, `[{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"x"}}]`), b(0, true, `[{"op":"add","path":"/spec/containers/0","value":{"name":"y"}}]`),
			a(1, true, `[{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"x"}}]`)}}}, ""},
		{"the other one took it out", []event{{Verb: "create", Calls: []recordedCall{a(0, true, addX), b(0, true, `[{"op":"remove","path":"/spec/containers/1"}]`), a(1, true, addX)}}}, ""},
		{"the other one replaced the list", []event{{Verb: "create", Calls: []recordedCall{a(0, true, addX), b(0, true, `[{"op":"replace","path":"/spec/containers","value":[]}]`), a(1, true, addX)}}}, ""},
		{"what the other one did is not known", []event{{Verb: "create", Calls: []recordedCall{a(0, true, addX), b(0, true, ""), a(1, true, addX)}}}, ""},
		{"round 1 changed nothing", []event{{Verb: "create", Calls: []recordedCall{a(0, true, addX), b(0, true, setB), a(1, false, "")}}}, ""},

		{"back and forth in a request", []event{{Verb: "create", Calls: []recordedCall{a(0, true, setA), b(0, true, setB), a(1, true, setA)}}}, "ping-pong 1"},
		{"the first one agrees at last", []event{{Verb: "create", Calls: []recordedCall{a(0, true, setA), b(0, true, setB), a(1, true, setB)}}}, ""},
		{"a default, and who knows better", []event{{Verb: "create", Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}}, ""},
		{"two that write different fields", []event{{Verb: "create", Calls: []recordedCall{a(0, true, setA), b(0, true, addX), a(1, true, setA)}}}, ""},
		{"the element has moved", []event{{Verb: "create", Calls: []recordedCall{
			a(0, true, `[{"op":"replace","path":"/spec/containers/0/image","value":"a"}]`), b(0, true, `[{"op":"add","path":"/spec/containers/0","value":{}},{"op":"replace","path":"/spec/containers/0/image","value":"b"}]`),
			a(1, true, `[{"op":"replace","path":"/spec/containers/0/image","value":"a"}]`)}}}, ""},
		{"in updates of the same object", many(2, event{Verb: "patch", Object: `{"data":{"x":"y"}}`, Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}), "ping-pong 2"},
		{"in whole objects that had the other value", many(2, event{Object: `{"metadata":{"labels":{"team":"b"}}}`, Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}), "ping-pong 2"},
		{"one update is no ping-pong", many(1, event{Verb: "patch", Object: `{"data":{"x":"y"}}`, Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}), ""},
		{"the user wrote the value of the first one each time", many(3, event{Object: teamA, Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}), "no-op-patch 3"},
		{"the user patched the field each time", many(3, event{Verb: "patch", Object: teamNone, Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}), ""},
		{"the user removed the whole of it each time", many(3, event{Verb: "patch", Object: `{"metadata":{"labels":null}}`, Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}), ""},
		{"the user left the field out each time", many(3, event{Object: `{"metadata":{}}`, Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}), ""},
		{"the updates were not stored", many(3, event{Verb: "patch", Code: 422, Object: `{"data":{"x":"y"}}`, Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}), ""},
		{"the updates were dry runs", many(3, event{Verb: "patch", URI: "/x?dryRun=All", Object: `{"data":{"x":"y"}}`, Calls: []recordedCall{a(0, true, setA), b(0, true, setB)}}), ""},
		{"both rounds at level Metadata", []event{{Level: "Metadata", Calls: []recordedCall{a(0, true, ""), b(0, true, ""), a(1, true, ""), b(1, true, "")}}}, "both-rounds 1"},
		{"one webhook in both rounds follows the other", []event{{Level: "Metadata", Calls: []recordedCall{a(0, true, ""), b(0, true, ""), a(1, true, "")}}}, ""},

		{"the patch of the last webhook does not apply", []event{{Code: 500, Message: badRemove, Calls: []recordedCall{a(0, false, "")}}}, "patch-refused 1"},
		{"a patch of the user does not apply", []event{{Verb: "patch", Code: 422, Message: "the server rejected our request due to an error in our request", Calls: []recordedCall{a(0, false, "")}}}, ""},
		{"the last webhook's patch applied", []event{{Code: 500, Message: badRemove, Calls: []recordedCall{a(0, true, setA)}}}, ""},
		{"a panic", []event{{Stage: "Panic", Code: 500, Message: "APIServer panic'd: x", Calls: []recordedCall{a(0, false, "")}}}, "panic 1"},
		{"a panic without webhooks", []event{{Stage: "Panic", Code: 500, Message: "APIServer panic'd: x"}}, ""},

		{"the same object again and again", many(5, event{Object: teamNone, Calls: []recordedCall{a(0, true, setA)}}), "mutates-again 5"},
		{"at level Metadata", many(5, event{Level: "Metadata", Calls: []recordedCall{a(0, true, "")}}), "mutates-again 5"},
		{"not that often", many(4, event{Object: teamNone, Calls: []recordedCall{a(0, true, setA)}}), ""},
		{"new objects of the same name", many(9, event{Verb: "create", Code: 201, Calls: []recordedCall{a(0, true, setA)}}), ""},
		{"created by apply", many(9, event{Verb: "patch", Code: 201, Calls: []recordedCall{a(0, true, setA)}}), ""},
		{"dry runs", many(9, event{URI: "/x?fieldManager=y&dryRun=All", Calls: []recordedCall{a(0, true, setA)}}), ""},
		{"a writer that retries", many(9, event{Code: 409, Calls: []recordedCall{a(0, true, setA)}}), ""},
		{"mostly left alone", append(many(5, event{ID: "m", Object: teamNone, Calls: []recordedCall{a(0, true, setA)}}), many(6, event{ID: "n", Calls: []recordedCall{a(0, false, "")}})...), ""},

		{"a no-op had others called again", []event{{Verb: "create", Object: teamA, Calls: []recordedCall{b(0, false, ""), a(0, true, setA), b(1, false, "")}}}, "no-op-reinvokes 1"},
		{"it was called before the one that was called again", []event{{Verb: "create", Object: teamA, Calls: []recordedCall{a(0, true, setA), b(0, false, ""), b(1, false, "")}}}, "no-op-patch 1"},
		{"tests only", []event{{Verb: "create", Calls: []recordedCall{b(0, false, ""), a(0, true, `[{"op":"test","path":"/kind","value":"Pod"}]`), b(1, false, "")}}}, "no-op-reinvokes 1"},
		{"another webhook changed it as well", []event{{Verb: "create", Object: teamA, Calls: []recordedCall{b(0, true, addX), a(0, true, setA), b(1, false, "")}}}, "no-op-patch 1"},
		{"the request had another value", []event{{Verb: "create", Object: teamNone, Calls: []recordedCall{b(0, false, ""), a(0, true, setA), b(1, false, "")}}}, ""},
		{"the request had the value, but a webhook changed it", []event{{Verb: "create", Object: teamA, Calls: []recordedCall{b(0, true, setB), a(0, true, setA), b(1, false, "")}}}, ""},
		{"a list may have grown", []event{{Verb: "create", Object: `{"spec":{"tolerations":[]}}`, Calls: []recordedCall{b(0, false, ""), a(0, true, `[{"op":"replace","path":"/spec/tolerations","value":[]}]`), b(1, false, "")}}}, ""},
		{"the object is not in the log", []event{{Verb: "create", Calls: []recordedCall{b(0, false, ""), a(0, true, setA), b(1, false, "")}}}, ""},
		{"the API server's annotation says that nothing changed", []event{{Verb: "create", Calls: []recordedCall{a(0, false, setA)}}}, "no-op-patch 1"},

		{"slow", []event{{Calls: []recordedCall{a(0, false, "")}, Annotations: map[string]string{latencyPrefix + "mutating-webhook": "1.2s"}}}, "slow-mutating 1"},
		{"slow, validating", []event{{Annotations: map[string]string{latencyPrefix + "validating-webhook": "1.2s"}}}, "slow-validating 1"},
		{"slow, but not for webhooks", []event{{Calls: []recordedCall{a(0, false, "")}, Annotations: map[string]string{latencyPrefix + "mutating-webhook": "20ms", latencyPrefix + "etcd": "3s"}}}, ""},
		{"a certificate", []event{{Calls: []recordedCall{a(0, false, "")}, Annotations: map[string]string{"insecure-sha1.invalid-cert.kubernetes.io/a.shop.svc": "uses an insecure SHA-1 signature"}}}, "certificate 1"},

		{"a password in a variable", []event{{Verb: "create", Resource: "pods", Calls: []recordedCall{a(0, true, `[{"op":"add","path":"/spec/containers/-","value":{"name":"x","env":[{"name":"DB_PASSWORD","value":"hunter2"}]}}]`)}}}, "secret-in-log 1"},
		{"the name of a Secret", []event{{Verb: "create", Resource: "pods", Calls: []recordedCall{a(0, true, `[{"op":"add","path":"/spec/containers/-","value":{"name":"x","env":[{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"db","key":"password"}}}]}}]`)}}}, ""},
		{"the path of a token", []event{{Verb: "create", Resource: "pods", Calls: []recordedCall{a(0, true, `[{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"TOKEN","value":"/var/run/secrets/token"}}]`)}}}, ""},
		{"data of a Secret", []event{{Verb: "create", Resource: "secrets", Calls: []recordedCall{a(0, true, `[{"op":"add","path":"/data/key","value":"eA=="}]`)}}}, "secret-in-log 1"},
		{"a label of a Secret", []event{{Verb: "create", Resource: "secrets", Calls: []recordedCall{a(0, true, `[{"op":"add","path":"/metadata/labels/x","value":"y"}]`)}}}, ""},
		{"a key by its shape", []event{{Verb: "create", Calls: []recordedCall{a(0, true, `[{"op":"add","path":"/data/x","value":"-----BEGIN RSA PRIVATE KEY-----\nMII"}]`)}}}, "secret-in-log 1"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var log strings.Builder
			for i, e := range c.events {
				e.ID += string(rune('a' + i))
				log.WriteString(e.line())
			}
			log.WriteString(event{ID: "other", Verb: "get"}.line())
			r := read(t, defaults(), log.String())
			if got := strings.Join(rulesOf(r), ", "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			var text strings.Builder
			if err := r.WriteJSON(&text); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text.String(), "hunter2") || strings.Contains(text.String(), "eA==") || strings.Contains(text.String(), "MII") {
				t.Errorf("the report has the secret:\n%s", text.String())
			}
		})
	}
}

// TestPassedOver checks how the report describes requests in which a failing webhook was ignored. Each request must
// count once. If another webhook rejected the request, the report must not show the message of that webhook.
func TestPassedOver(t *testing.T) {
	open := recordedCall{Hook: "a.example.com", FailedOpen: true}
	again := open
	again.Round = 1
	on := event{Calls: []recordedCall{open, {Hook: "b.example.com", Mutated: true}, again}}
	denied := event{Code: 403, Message: `admission webhook "c.example.com" denied the request: never`, Calls: []recordedCall{open}}
	for _, c := range []struct {
		reason   string
		events   []event
		want     string
		rejected int
	}{
		{"both of its calls failed", []event{on}, "failed in 1 request, which continued without it.", 0},
		{"none was rejected", []event{on, on}, "failed in 2 requests, which continued without it.", 0},
		{"another webhook denied it", []event{denied}, "failed in 1 request, which was still rejected.", 1},
		{"all were denied", []event{denied, denied}, "failed in 2 requests, all of which were still rejected.", 2},
		{"one was denied", []event{on, denied, on}, "failed in 3 requests: 2 continued without it, 1 was still rejected.", 1},
		{"two were denied", []event{denied, denied, on}, "failed in 3 requests: 1 continued without it, 2 were still rejected.", 2},
		{"validating webhooks of one name", []event{{Annotations: map[string]string{openValidatingPrefix + "round_0_index_0": "a.example.com", openValidatingPrefix + "round_0_index_1": "a.example.com"}}},
			"failed in 1 request, which continued without it.", 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var log strings.Builder
			for i, e := range c.events {
				e.ID = string(rune('a' + i))
				log.WriteString(e.line())
			}
			r := read(t, defaults(), log.String())
			if len(r.Findings) != 1 || !strings.HasSuffix(r.Findings[0].Summary, c.want) || r.Findings[0].Rejected != c.rejected {
				t.Errorf("want %d rejected and %q, got %+v", c.rejected, c.want, r.Findings)
			}
			var text, page strings.Builder
			if err := errors.Join(r.WriteText(&text, screen.Painter{}), r.Page().Write(&page)); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text.String()+page.String(), "never") {
				t.Errorf("the report has the message of another webhook:\n%s", text.String())
			}
			if first := r.Findings[0].Examples[0].Code == 403; first != strings.Contains(text.String(), "rejected with 403 for another reason") {
				t.Errorf("the text says wrongly whether the request was rejected:\n%s", text.String())
			}
		})
	}
}

// TestOutOfTime checks a request that timed out after a failing webhook was ignored. The report must say that this
// webhook may have used up the time.
func TestOutOfTime(t *testing.T) {
	e := event{ID: "a", Code: 504, Message: "Timeout: request did not complete within the allowed duration", Calls: []recordedCall{{Hook: "a.example.com", FailedOpen: true}}}
	var text strings.Builder
	if err := read(t, defaults(), e.line()).WriteText(&text, screen.Painter{}); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(text.String()), " ")
	if !strings.Contains(got, "504: Timeout: request did not complete within the allowed duration, perhaps because this webhook took too long") || strings.Contains(got, "another reason") {
		t.Errorf("got\n%s", text.String())
	}
}

// TestUnknownCalls checks annotations that belong to a call which the log does not record. A note must count them.
func TestUnknownCalls(t *testing.T) {
	for _, key := range []string{openMutationPrefix, patchPrefix} {
		e := event{ID: "a", Annotations: map[string]string{key + "round_0_index_3": "a.example.com"}}
		if r := read(t, defaults(), e.line()); !strings.Contains(strings.Join(r.Notes, "\n"), "1 annotation") {
			t.Errorf("%s: got notes %q", key, r.Notes)
		}
	}
}

// TestWhoRejected checks whether a rejection is counted for a mutating or for a validating webhook. The message of the
// API server has only the name of the webhook.
func TestWhoRejected(t *testing.T) {
	last := recordedCall{Hook: "a.example.com"}
	for _, c := range []struct {
		reason string
		event  event
		want   string // "mutating", "validating" or "nobody"
	}{
		{"it was the last call, and changed nothing", event{Code: 403, Message: denial, Calls: []recordedCall{last}}, "mutating"},
		{"it was called, but not last", event{Code: 403, Message: denial, Calls: []recordedCall{last, {Hook: "b.example.com"}}}, "validating"},
		{"its call changed the object, so it did not deny", event{Code: 403, Message: denial, Calls: []recordedCall{{Hook: "a.example.com", Mutated: true}}}, "validating"},
		{"its patch was applied", event{Code: 403, Message: denial, Calls: []recordedCall{{Hook: "a.example.com", Patch: setA}}}, "validating"},
		{"its call failed open", event{Code: 403, Message: denial, Calls: []recordedCall{{Hook: "a.example.com", FailedOpen: true}}}, "validating"},
		{"validating webhooks were called", event{Code: 403, Message: denial, Calls: []recordedCall{last}, Annotations: map[string]string{openValidatingPrefix + "round_0_index_0": "v.example.com"}}, "validating"},
		{"it was not called as a mutating one", event{Code: 403, Message: denial}, "validating"},
		{"the name is a Go string", event{Code: 403, Message: `admission webhook "a\"b" denied the request`}, "validating"},
		{"no webhook", event{Code: 403, Message: `configmaps "x" is forbidden: exceeded quota`, Calls: []recordedCall{last}}, "nobody"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			c.event.ID = "x"
			r := read(t, defaults(), c.event.line())
			mutating := slices.ContainsFunc(r.Mutating, func(m Mutating) bool { return m.Denied > 0 })
			validating := slices.ContainsFunc(r.Validating, func(v Validating) bool { return v.Denied > 0 })
			if mutating != (c.want == "mutating") || validating != (c.want == "validating") {
				t.Errorf("mutating %t, validating %t, want %s", mutating, validating, c.want)
			}
		})
	}
}

// TestSameName checks the counts of a mutating and a validating webhook with the same name, as in cert-manager. They
// must be marked as unclear if both webhooks denied requests.
func TestSameName(t *testing.T) {
	log := event{ID: "x", Code: 403, Message: denial, Calls: []recordedCall{{Hook: "a.example.com"}}}.line()
	if r := read(t, defaults(), log); r.Mutating[0].Unclear || len(r.Notes) != 0 {
		t.Errorf("only the mutating webhook is known: %+v, %q", r.Mutating, r.Notes)
	}
	log += event{ID: "y", Code: 403, Message: denial, Calls: []recordedCall{{Hook: "a.example.com", Mutated: true, Patch: setA}}}.line()
	r := read(t, defaults(), log)
	if !r.Mutating[0].Unclear || r.Mutating[0].Denied != 1 || r.Validating[0].Denied != 1 || len(r.Notes) != 1 {
		t.Errorf("%+v, %+v, %q", r.Mutating, r.Validating, r.Notes)
	}
}
