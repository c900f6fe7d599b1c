// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/admitkit/admitkit/pkg/review"
)

func patched(patch string) string {
	return `"allowed":true,"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(patch)) + `"`
}

// TestCompare compares two answers to the creation of a Pod with one container and one label. before and after are members of
// the JSON of the answers.
func TestCompare(t *testing.T) {
	const allowed = `"allowed":true`
	denied := func(status string) string { return `"allowed":false,"status":{` + status + `}` }
	shadow := func(key, text string) string {
		return `"allowed":true,"auditAnnotations":{"mode":"Shadow","` + key + `":"` + text + `"}`
	}
	for _, c := range []struct{ reason, before, after, want string }{
		{"equal", allowed, allowed, ""},
		{"an explicit default", denied(`"message":"no"`), denied(`"message":"no","code":403,"reason":"Forbidden"`), ""},
		{"an empty patch", allowed, patched(`[]`), ""},
		{"a patch that changes nothing", allowed, patched(`[{"op":"add","path":"/metadata/labels/app","value":"web"}]`), ""},
		{"a null member", allowed, patched(`[{"op":"add","path":"/spec/hostname","value":null}]`), ""},
		{
			"another order of operations", patched(`[{"op":"add","path":"/metadata/labels/a","value":"1"},{"op":"add","path":"/metadata/labels/b","value":"2"}]`),
			patched(`[{"op":"add","path":"/metadata/labels/b","value":"2"},{"op":"add","path":"/metadata/labels/a","value":"1"}]`), "",
		},
		{
			"other operations with the same effect", patched(`[{"op":"add","path":"/metadata/labels","value":{"app":"web","a":"1"}}]`),
			patched(`[{"op":"add","path":"/metadata/labels/a","value":"1"}]`), "",
		},
		{"other warnings", allowed, allowed + `,"warnings":["old"]`, "notes: other warnings or audit annotations"},
		{"other annotations", allowed + `,"auditAnnotations":{"a":"1"}`, allowed + `,"auditAnnotations":{"a":"2"}`, "notes: other warnings or audit annotations"},

		{"denied now", allowed, denied(`"message":"Pod web-1 has no owner"`), "decision: allowed before, denied now: Pod … has no owner"},
		{"allowed now", denied(`"message":"no owner"`), allowed, "decision: denied before, allowed now: no owner"},
		{"another message", denied(`"message":"a"`), denied(`"message":"b"`), "denial: denied before: 403 Forbidden: a; and now: 403 Forbidden: b"},
		{"another code", denied(`"message":"a"`), denied(`"message":"a","code":422,"reason":"Invalid"`), "denial: denied before: 403 Forbidden: a; and now: 422 Invalid: a"},
		{"a new field", allowed, patched(`[{"op":"add","path":"/spec/hostname","value":"a"}]`), "patch: the patched object differs in spec.hostname"},
		{
			"another element", patched(`[{"op":"add","path":"/spec/containers/-","value":{"name":"p","image":"p:1"}}]`),
			patched(`[{"op":"add","path":"/spec/containers/-","value":{"name":"p","image":"p:2"}}]`), "patch: the patched object differs in spec.containers[*].image",
		},
		{"no element", patched(`[{"op":"add","path":"/spec/containers/-","value":{"name":"p"}}]`), allowed, "patch: the patched object differs in spec.containers[*]"},
		{"a name with a dot", allowed, patched(`[{"op":"add","path":"/metadata/labels/example.com~1a","value":"1"}]`), "patch: the patched object differs in metadata.labels[example.com/a]"},
		{"a patch that does not apply", allowed, patched(`[{"op":"remove","path":"/spec/hostname"}]`), "failure: fails now: the patch cannot be applied: *"},
		{"a patch of another type", allowed, `"allowed":true,"patch":"W10="`, "failure: fails now: the answer has a patch without the patchType JSONPatch"},
		{"no decision", allowed, `"status":{}`, "failure: fails now: the answer has no decision: response.allowed is missing"},
		{"an invalid answer before", `"allowed":1`, allowed, "failure: failed before, decides now: the answer is not an AdmissionReview: *"},
		{"both invalid", `"allowed":1`, `"allowed":2`, "not compared: both versions failed"},

		{"the decision of Shadow", shadow("would-deny", "no owner"), denied(`"message":"no owner"`), ""},
		{"the decision of Shadow changes", shadow("would-deny", "no owner"), allowed, "decision: denied before, allowed now: no owner"},
		{"a failure in Shadow", shadow("would-fail", "down"), allowed, "failure: failed before, decides now: down"},
		{"a withheld patch", shadow("would-change", "add /spec/hostname"), patched(`[{"op":"add","path":"/spec/hostname","value":"a"}]`), "not compared: a hook in the mode Shadow withheld its patch, so there is no object to compare"},
		{"an equal withheld patch", shadow("would-change", "add /a"), shadow("would-change", "add /a"), ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			req, err := review.Decode([]byte(body("web-1", `,"spec":{"containers":[{"name":"app"}]}`)))
			if err != nil {
				t.Fatal(err)
			}
			req.Object = []byte(`{"metadata":{"name":"web-1","labels":{"app":"web"}},"spec":{"containers":[{"name":"app"}]}}`)
			d, skip := compare(req, parse(req, http.StatusOK, []byte(reply("web-1", c.before))), parse(req, http.StatusOK, []byte(reply("web-1", c.after))))
			got := ""
			switch {
			case d != nil:
				got = string(d.class) + ": " + d.cause
			case skip != "":
				got = "not compared: " + string(skip)
			}
			if !matches(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// matches compares texts. An asterisk at the end of want stands for any text.
func matches(got, want string) bool {
	if n := len(want) - 1; n >= 0 && want[n] == '*' {
		return len(got) > n && got[:n] == want[:n]
	}
	return got == want
}

// FuzzCompare compares any two answers. An answer must not differ from itself. If two answers differ,
// they must also differ in the reverse order.
func FuzzCompare(f *testing.F) {
	f.Add(200, []byte(reply("web-1", `"allowed":true`)), 200, []byte(reply("web-1", patched(`[{"op":"add","path":"/spec/hostname","value":"a"}]`))))
	f.Add(500, []byte(`{"kind":"Status","message":"down"}`), 200, []byte(`{}`))
	f.Add(200, []byte(reply("web-1", patched(`[{"op":"move","from":"/spec","path":"/metadata/labels"}]`))), 200, []byte(reply("web-1", patched(`[{"op":"remove","path":"/spec/containers/0"}]`))))
	req, err := review.Decode([]byte(body("web-1", `,"spec":{"containers":[{"name":"app","env":[{"name":"A","value":"x"},null]}],"n":1.50}`)))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, codeA int, a []byte, codeB int, b []byte) {
		before, after := parse(req, codeA, a), parse(req, codeB, b)
		if d, _ := compare(req, before, before); d != nil {
			t.Fatalf("an answer differs from itself: %+v", d)
		}
		there, _ := compare(req, before, after)
		back, _ := compare(req, after, before)
		if (there == nil) != (back == nil) {
			t.Fatalf("%+v in one direction, and %+v in the other", there, back)
		}
	})
}
