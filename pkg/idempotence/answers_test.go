// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"
)

var uidOf = regexp.MustCompile(`"uid":"([^"]*)"`)

// answering returns a webhook that responds to each request with the text answer. It replaces %s in the text with the
// UID of the request.
func answering(version, answer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		fmt.Fprintf(w, answer, uidOf.FindSubmatch(body)[1])
	})
}

func TestReadsAnswersAsTheAPIServerDoes(t *testing.T) {
	patched := func(patch string) string {
		return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"%s","allowed":true,"patchType":"JSONPatch","patch":"` +
			base64.StdEncoding.EncodeToString([]byte(patch)) + `"}}`
	}
	for _, in := range []struct {
		reason, version, answer string
		allowed                 int // number of objects that the webhook allows; -1 means all
		law                     Law // the law that must fail; empty for none
	}{
		{"names are case-sensitive", "v1", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"%s","Allowed":true}}`, 0, ""},
		{"v1 needs a kind", "v1", `{"response":{"uid":"%s","allowed":true}}`, 0, L8},
		{"v1beta1 does not", "v1beta1", `{"response":{"uid":"%s","allowed":true}}`, -1, ""},
		{"but if there is one, it is right", "v1beta1", `{"kind":"Review","apiVersion":"admission.k8s.io/v1beta1","response":{"uid":"%s","allowed":true}}`, 0, L8},
		{"no answer", "v1", `%s`, 0, L8},
		{"a patch that makes the library panic", "v1", patched(`[{"op":"test","path":""}]`), 0, L10},
		{"a patch of a path that is not there", "v1", patched(`[{"op":"remove","path":"/nothing"}]`), 0, L10},
		{"a patch that copies itself until it is large", "v1", patched(`[` + strings.Repeat(`{"op":"copy","from":"","path":"/metadata/x"},`, 24) + `{"op":"remove","path":"/metadata/x"}]`), 0, L10},
	} {
		t.Run(in.reason, func(t *testing.T) {
			c := broken(t, "P01")
			c.Webhook.AdmissionReviewVersions = []string{in.version}
			c.New = func() http.Handler { return answering(in.version, in.answer) }
			report := runCase(t, c, Options{Objects: 3})
			if want := in.allowed; report.Allowed != want && (want >= 0 || report.Allowed != report.Objects) {
				t.Errorf("%d of %d objects are allowed", report.Allowed, report.Objects)
			}
			if broken := in.law == "" || slices.ContainsFunc(report.Findings, func(v *Violation) bool { return v.Law == in.law }); !broken || in.law == "" && !report.OK() {
				t.Errorf("want a finding of %q:\n%s", in.law, text(report))
			}
		})
	}
}

func TestLeavesBehindAHandlerThatDoesNotAnswer(t *testing.T) {
	c := broken(t, "P01")
	c.Webhook.TimeoutSeconds = ptr.To[int32](1)
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		defer close(ended)
		c.New = func() http.Handler { return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }) }
		for budget, says := range map[time.Duration]string{time.Hour: "in 3 of 3 calls", 2500 * time.Millisecond: "in 2 of 2 calls"} {
			report := runCase(t, c, Options{Budget: budget})
			if got := text(report); len(report.Findings) != 1 || !strings.Contains(got, "did not answer") || strings.Contains(got, "budget") ||
				!strings.Contains(got, "  Found:  no answer within timeoutSeconds (1 s) "+says+": does it hang?\n") {
				t.Errorf("got\n%s", got)
			}
		}
	})
}

// TestHangForOneObjectIsAFailure lets the webhook hang in the first call only. The harness must report a failure and
// continue the run.
func TestHangForOneObjectIsAFailure(t *testing.T) {
	c := broken(t, "P01")
	c.Webhook.TimeoutSeconds = ptr.To[int32](1)
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		defer close(ended)
		var calls atomic.Int64
		c.New = func() http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if calls.Add(1) == 1 {
					<-ended
				}
			})
		}
		report := runCase(t, c, Options{Objects: 3, Budget: time.Hour})
		if got := text(report); report.OK() || strings.Contains(got, "does it hang") || report.Calls < 10 {
			t.Errorf("got\n%s", got)
		}
	})
}
