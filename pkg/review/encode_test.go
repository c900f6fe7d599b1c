// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/admitkit/admitkit/pkg/patch"
)

func TestAnswersAsText(t *testing.T) {
	denied := Deny(metav1.Status{Message: "no <html>"})
	denied.Warn("careful")
	noted := Allow()
	for _, key := range []string{"b", "a"} {
		if err := noted.Audit(key, key); err != nil {
			t.Fatal(err)
		}
	}
	change := patch.Patch{{Op: patch.Add, Path: "/a", Value: json.RawMessage(`1`)}}
	const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u",`
	req := want(nil)
	for _, row := range []struct {
		reason reason
		got    []byte
		want   string
	}{
		{because("a decision without details"), AppendValidating(nil, &req, Allow()), head + `"allowed":true}}`},
		{because("a mutating webhook with nothing to change sends neither patch nor patchType"), AppendMutating(nil, &req, Allow(), patch.Patch{}), head + `"allowed":true}}`},
		{because("a patch and its type"), AppendMutating(nil, &req, Allow(), change), head + `"allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d","patchType":"JSONPatch"}}`},
		{because("a denial leaves the patch out"), AppendMutating(nil, &req, denied, change),
			head + `"allowed":false,"status":{"metadata":{},"status":"Failure","message":"no \u003chtml\u003e","reason":"Forbidden","code":403},"warnings":["careful"]}}`},
		{because("annotations in the order of their keys"), AppendValidating(nil, &req, noted), head + `"allowed":true,"auditAnnotations":{"a":"a","b":"b"}}}`},
	} {
		row.reason.run(t, func(t *testing.T) {
			if got := string(row.got); got != row.want+"\n" {
				t.Errorf("(-want +got)\n-%s\n+%s", row.want, got)
			}
		})
	}
}

// TestClientsRecogniseADenial checks that functions such as apierrors.IsForbidden recognize a denial whose status was
// only partly set. They look at the reason first.
func TestClientsRecogniseADenial(t *testing.T) {
	for _, row := range []struct {
		reason reason
		status metav1.Status
		is     func(error) bool
	}{
		{because("nothing but a message"), metav1.Status{Message: "no"}, apierrors.IsForbidden},
		{because("a code alone"), metav1.Status{Code: 422}, apierrors.IsInvalid},
		{because("a reason alone"), metav1.Status{Reason: metav1.StatusReasonNotFound}, apierrors.IsNotFound},
		{because("a success code"), metav1.Status{Code: 200, Reason: metav1.StatusReasonConflict}, apierrors.IsConflict},
		{because("too many requests"), metav1.Status{Code: 429}, apierrors.IsTooManyRequests},
	} {
		row.reason.run(t, func(t *testing.T) {
			req := want(nil)
			got, err := readAnswer(&req, false, AppendValidating(nil, &req, Deny(row.status)))
			if err != nil {
				t.Fatal(err)
			}
			if seen := webhookerrors.ToStatusErr(webhookName, got.Result); !row.is(seen) {
				t.Errorf("the client sees %v", seen.ErrStatus)
			}
		})
	}
}

// TestAnswersAreWrittenAsByEncodingJSON checks that responses are the same as from encoding/json, although most are
// encoded without it.
func TestAnswersAreWrittenAsByEncodingJSON(t *testing.T) {
	check := func(got []byte, v any) {
		t.Helper()
		want, err := json.Marshal(v)
		if err != nil || string(got) != string(want) {
			t.Errorf("(-want +got) %v\n-%s\n+%s", err, want, got)
		}
	}
	texts := slices.Concat(oddTexts, []string{"a<b", "a>b", "a&b", "\x7f", "\u2028", "\u2029", "plain ~ text!"})
	for b := range 256 {
		texts = append(texts, "a"+string([]byte{byte(b)})+"b")
	}
	for _, text := range texts {
		check(appendString(nil, text), text)
		denial := Deny(metav1.Status{Message: text, Reason: metav1.StatusReason(text)}).Denial()
		check(appendStatus(nil, denial), denial)
	}
	for n := range uint64(1_000) {
		if _, d, p := randomAnswer(n); !d.Allowed() {
			check(appendStatus(nil, d.Denial()), d.Denial())
		} else {
			want := base64.StdEncoding.EncodeToString(p.AppendJSON(nil))
			for _, room := range []int{0, 10, 10_000} { // the memory is too small at an early step, at a later step, never
				if got := appendBase64(append(make([]byte, 0, room), "before"...), p); string(got) != "before"+want {
					t.Errorf("answer %d: (-want +got)\n-%s\n+%s", n, want, got)
				}
			}
		}
	}
}
