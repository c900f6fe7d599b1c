// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// remembering returns a webhook that repeats its earlier response to a request with the same UID.
func remembering(answers *sync.Map, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		uid := string(uidOf.FindSubmatch(body)[1])
		answer, ok := answers.Load(uid)
		if !ok {
			request := httptest.NewRequestWithContext(r.Context(), http.MethodPost, "/", strings.NewReader(string(body)))
			request.Header = r.Header
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			answer = recorder.Body.String()
			answers.Store(uid, answer)
		}
		_, _ = w.Write([]byte(answer.(string)))
	})
}

// TestUIDIsUsedOnce tests a webhook that remembers the UIDs of all requests. It passes the laws only if the harness
// uses each UID for one request, even in several runs.
func TestUIDIsUsedOnce(t *testing.T) {
	registration, handler := marking()
	var answers sync.Map
	subject := Handler(registration, func() http.Handler { return remembering(&answers, handler) })
	for _, seed := range []int64{1, 2} {
		report, err := Run(t.Context(), subject, Options{Objects: 4, Seed: seed})
		if err != nil || !report.OK() {
			t.Errorf("%v, seed %d:\n%s", err, seed, text(report))
		}
	}
	z, err := newFuzzer(subject, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range [][]byte{{0, 2, 0, 1}, {0, 2, 0, 2}, {0, 3, 0, 3}} {
		if report, err := z.try(t.Context(), input); err != nil || !report.OK() {
			t.Errorf("%v, input %v:\n%s", err, input, text(report))
		}
	}
}

// TestUIDsAreNotReported runs the harness twice. The reports must be equal and contain no UID, although the UIDs of the
// requests differ.
func TestUIDsAreNotReported(t *testing.T) {
	says := func(answer string) Subject {
		registration, _ := marking()
		return Handler(registration, func() http.Handler { return answering("v1", answer) })
	}
	for name, subject := range map[string]Subject{
		"a violation": editing("", "v1", "configmaps", onCreate, func(_ *admissionv1.AdmissionRequest, doc document) {
			doc["data"] = document{"n": counter(doc)}
		}),
		"another uid":          says(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"x%s","allowed":true}}`),
		"no review":            says(`the request %s is none`),
		"a denial":             says(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"%s","allowed":false,"status":{"message":"no"}}}`),
		"no uid that is right": says(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"` + session.UIDPrefix + `000000000000","allowed":true}}` + `%.0s`),
	} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for range 2 {
				report, err := Run(t.Context(), subject, Options{Objects: 2})
				if err != nil {
					t.Fatal(err)
				}
				encoded, err := json.Marshal(report)
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, string(encoded)+text(report))
			}
			if texts[0] != texts[1] || strings.Contains(texts[0], session.UIDPrefix) {
				t.Errorf("the reports are\n%s\nand\n%s", texts[0], texts[1])
			}
		})
	}
}

// counter returns the value data.n of a document with one more character. A webhook that writes it changes the object
// in every call.
func counter(doc document) string {
	data, _ := doc["data"].(document)
	n, _ := data["n"].(string)
	return n + "1"
}
