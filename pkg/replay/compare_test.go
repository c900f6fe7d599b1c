// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/patch"
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
		{"an explicit default", denied(`"message":"no"`), denied(`"message":"no","code":400`), ""},
		{"no explanation", `"allowed":false`, denied(`"code":200`), ""},
		{"a reason that is the message", denied(`"reason":"Forbidden"`), denied(`"reason":"Forbidden","message":"Forbidden"`), ""},
		{"a denial that says no", `"status":{}`, `"Allowed":true`, ""},
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
		{"another message", denied(`"message":"a"`), denied(`"message":"b"`), "denial: denied before: 400: a; and now: 400: b"},
		{"another code", denied(`"message":"a"`), denied(`"message":"a","code":422,"reason":"Invalid"`), "denial: denied before: 400: a; and now: 422 Invalid: a"},
		{"no code any more", denied(`"message":"a","code":403,"reason":"Forbidden"`), denied(`"message":"a"`), "denial: denied before: 403 Forbidden: a; and now: 400: a"},
		{"the name of allowed in another case", allowed, `"Allowed":true`, "decision: allowed before, denied now: without explanation"},
		{"a new field", allowed, patched(`[{"op":"add","path":"/spec/hostname","value":"a"}]`), "patch: the patched object differs in spec.hostname"},
		{
			"another element", patched(`[{"op":"add","path":"/spec/containers/-","value":{"name":"p","image":"p:1"}}]`),
			patched(`[{"op":"add","path":"/spec/containers/-","value":{"name":"p","image":"p:2"}}]`), "patch: the patched object differs in spec.containers[*].image",
		},
		{"no element", patched(`[{"op":"add","path":"/spec/containers/-","value":{"name":"p"}}]`), allowed, "patch: the patched object differs in spec.containers[*]"},
		{"a name with a dot", allowed, patched(`[{"op":"add","path":"/metadata/labels/example.com~1a","value":"1"}]`), "patch: the patched object differs in metadata.labels[example.com/a]"},
		{"a patch that does not apply", allowed, patched(`[{"op":"remove","path":"/spec/hostname"}]`), "failure: fails now: the patch cannot be applied: *"},
		{"a denial before, and a patch that does not apply", denied(`"message":"a"`), patched(`[{"op":"remove","path":"/spec/hostname"}]`), "failure: fails now: the patch cannot be applied: *"},
		{
			"two patches that do not apply", patched(`[{"op":"remove","path":"/spec/a"}]`), patched(`[{"op":"remove","path":"/spec/b"}]`),
			"not compared: both versions failed",
		},
		{"a patch without a type", allowed, `"allowed":true,"patch":"W10="`, "failure: fails now: the answer is invalid: webhook returned response.patch but not response.patchType"},
		{"a type without a patch", allowed, `"allowed":true,"patchType":"JSONPatch"`, "failure: fails now: the answer is invalid: webhook returned response.patchType but not response.patch"},
		{"a patch that is not in base64", allowed, `"allowed":true,"patchType":"JSONPatch","patch":[{"op":"remove","path":"/spec"}]`, "failure: fails now: the answer is not an AdmissionReview: *"},
		{"an invalid answer before", `"allowed":1`, allowed, "failure: failed before, decides now: the answer is not an AdmissionReview: *"},
		{"both invalid", `"allowed":1`, `"allowed":2`, "not compared: both versions failed"},

		{"the decision of Shadow", shadow("would-deny", "no owner"), denied(`"message":"no owner"`), ""},
		{"the decision of Shadow changes", shadow("would-deny", "no owner"), allowed, "decision: denied before, allowed now: no owner"},
		{"a failure in Shadow", shadow("would-fail", "down"), allowed, "failure: failed before, decides now: down"},
		{"a long message of Shadow", shadow("would-deny", "no owner: "+strings.Repeat("x", 20)+"…"), denied(`"message":"no owner: ` + strings.Repeat("x", 30) + `"`), ""},
		{"a withheld patch", shadow("would-change", "add /spec/hostname"), patched(`[{"op":"add","path":"/spec/hostname","value":"a"}]`), "not compared: a hook in the mode Shadow withheld its patch, so there is no object to compare"},
		{"an equal withheld patch", shadow("would-change", "add /a"), shadow("would-change", "add /a"), ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			req, err := review.Decode([]byte(body("web-1", `,"spec":{"containers":[{"name":"app"}]}`)))
			if err != nil {
				t.Fatal(err)
			}
			req.Object = []byte(`{"metadata":{"name":"web-1","labels":{"app":"web"}},"spec":{"containers":[{"name":"app"}]}}`)
			d, skip := compare(req, parse(req, "", http.StatusOK, []byte(reply("web-1", c.before))), parse(req, "", http.StatusOK, []byte(reply("web-1", c.after))))
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

// TestValuesOf checks the values of an example in which an element is removed before another one changes.
func TestValuesOf(t *testing.T) {
	was, err := decode([]byte(`{"args":["a","b","c"],"env":[{"name":"A"},{"name":"B","value":"1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	is, err := decode([]byte(`{"args":["b","c"],"env":[{"name":"B","value":"2"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	ops, err := patch.Values(was, is)
	if err != nil {
		t.Fatal(err)
	}
	before, after := valuesOf(was, ops)
	const wantBefore, wantAfter = `/args/0: "a"` + "\n" + `/env/0: {"name":"A"}` + "\n" + `/env/0/value: "1"`, "/args/0: (absent)\n/env/0: (absent)\n" + `/env/0/value: "2"`
	if before != wantBefore || after != wantAfter {
		t.Errorf("before:\n%s\nafter:\n%s\nof %s", before, after, ops.AppendJSON(nil))
	}
}

// TestParse checks which answers the API server takes for a decision.
func TestParse(t *testing.T) {
	const v1, v1beta1 = "admission.k8s.io/v1", "admission.k8s.io/v1beta1"
	envelope := func(version, members string) string {
		return `{"kind":"AdmissionReview","apiVersion":"` + version + `","response":{` + members + `}}`
	}
	const add = `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`
	untyped := `"allowed":true,"patch":"` + base64.StdEncoding.EncodeToString([]byte(add)) + `"`
	deletion := strings.Replace(strings.Replace(body("a", ""), `"CREATE"`, `"DELETE"`, 1), `"object":`, `"oldObject":`, 1)
	beta := strings.Replace(body("a", ""), v1, v1beta1, 1)
	for _, c := range []struct {
		reason, review, kind string
		code                 int
		answer, want         string
	}{
		{"created", body("a", ""), "", 201, reply("a", `"allowed":true`), "allowed"},
		{"partial content", body("a", ""), "", 206, reply("a", `"allowed":true`), "allowed"},
		{"a redirect", body("a", ""), "", 307, reply("a", `"allowed":true`), "failed: HTTP 307: *"},
		{"nothing", body("a", ""), "", 200, "", "failed: the answer is not an AdmissionReview: *"},
		{"two documents", body("a", ""), "", 200, reply("a", `"allowed":true`) + "{}", "failed: the answer is not an AdmissionReview: *"},
		{"no response", body("a", ""), "", 200, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, "failed: the answer is invalid: webhook response was absent"},
		{"another version", body("a", ""), "", 200, envelope(v1beta1, `"uid":"uid-a","allowed":true`), `failed: the answer has the apiVersion "admission.k8s.io/v1beta1" and the kind "AdmissionReview", want admission.k8s.io/v1 and AdmissionReview`},
		{"no version", body("a", ""), "", 200, `{"response":{"uid":"uid-a","allowed":true}}`, `failed: the answer has the apiVersion "" and the kind "", want *`},
		{"v1beta1", beta, "", 200, envelope(v1beta1, `"allowed":true`), "allowed"},
		{"v1beta1 without a version", beta, "", 200, `{"response":{"allowed":true}}`, "allowed"},
		{"v1beta1 without a patchType", beta, "", 200, envelope(v1beta1, untyped), "allowed, with a patch"},
		{"v1beta1 of a validating webhook", beta, "validating", 200, envelope(v1beta1, untyped), "allowed"},
		{"v1beta1, answered with v1", beta, "", 200, envelope(v1, `"allowed":true`), "failed: the answer has the apiVersion *"},
		{"a patch of a validating webhook", body("a", ""), "validating", 200, reply("a", patched(add)), "failed: the answer is invalid: validating webhook may not return response.patch"},
		{"a denial with a patch, of a validating webhook", body("a", ""), "validating", 200, reply("a", strings.Replace(patched(add), "true", "false", 1)), "failed: the answer is invalid: *"},
		{"a denial with a patch", body("a", ""), "mutating", 200, reply("a", strings.Replace(patched(add), "true", "false", 1)), "denied: 400: without explanation"},
		{"another patchType", body("a", ""), "", 200, reply("a", strings.Replace(patched(add), "JSONPatch", "Merge", 1)), `failed: the patchType "Merge" is unknown`},
		{"no operations", body("a", ""), "", 200, reply("a", patched(`[]`)), "allowed"},
		{"null as the patch", body("a", ""), "", 200, reply("a", patched(`null`)), "allowed"},
		{"a deletion", deletion, "", 200, reply("a", `"allowed":true`), "allowed"},
		{"a deletion without operations", deletion, "", 200, reply("a", patched(`[]`)), "allowed"},
		{"a deletion with a patch", deletion, "", 200, reply("a", patched(add)), "failed: the answer has a patch, and a DELETE has no object to patch"},
	} {
		req, err := review.Decode([]byte(c.review))
		if err != nil {
			t.Fatal(err)
		}
		if got := parse(req, c.kind, c.code, []byte(c.answer)).String(); !matches(got, c.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", c.reason, got, c.want)
		}
	}
}

// FuzzCompare compares any two answers. An answer never differs from itself, and what differs differs in both directions.
func FuzzCompare(f *testing.F) {
	f.Add(200, []byte(reply("web-1", `"allowed":true`)), 200, []byte(reply("web-1", patched(`[{"op":"add","path":"/spec/hostname","value":"a"}]`))))
	f.Add(500, []byte(`{"kind":"Status","message":"down"}`), 200, []byte(`{}`))
	f.Add(200, []byte(reply("web-1", patched(`[{"op":"move","from":"/spec","path":"/metadata/labels"}]`))), 200, []byte(reply("web-1", patched(`[{"op":"remove","path":"/spec/containers/0"}]`))))
	req, err := review.Decode([]byte(body("web-1", `,"spec":{"containers":[{"name":"app","env":[{"name":"A","value":"x"},null]}],"n":1.50}`)))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, codeA int, a []byte, codeB int, b []byte) {
		before, after := parse(req, "", codeA, a), parse(req, "", codeB, b)
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

func TestAfterKind(t *testing.T) {
	req := &review.Request{}
	req.Name = "web"
	req.Kind.Kind = "Pod"
	for text, want := range map[string]string{
		"Pod web uses the network of its node": "Pod … uses the network of its node",
		"pods/web, pod web.":                   "pods/…, pod ….",
		"the web Pod needs a web label":        "the web Pod needs a web label",
		"Pod web-1 and Pod website":            "Pod web-1 and Pod website",
	} {
		if got := afterKind(req, text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
