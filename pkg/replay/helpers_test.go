// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// body returns the review of the creation of a Pod. The members of the object are JSON.
func body(name, object string) string {
	return fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"uid-%[1]s","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"name":"%[1]s","namespace":"shop","operation":"CREATE","userInfo":{"username":"jane"},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%[1]s","namespace":"shop"}%[2]s},"options":{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}}}`, name, object)
}

// pods is the registration of the test's hooks.
func pods() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))}
}

// validating returns a hook that decides by the name of a Pod.
func validating(decide func(pod *corev1.Pod) error) *webhook.Hook {
	return webhook.Validating(pods(), func(_ context.Context, req *webhook.Request[corev1.Pod]) error { return decide(req.Object) })
}

// mutating returns a hook that changes Pods.
func mutating(change func(pod *corev1.Pod)) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))},
		func(_ context.Context, req *webhook.Request[corev1.Pod]) error { change(req.Object); return nil })
}

// recordWith sends the reviews to a hook, and returns the folder of the recording.
func recordWith(t *testing.T, hook *webhook.Hook, o record.Options, bodies ...string) string {
	t.Helper()
	o.Dir, o.MaxBytesPerSecond = t.TempDir(), -1
	recorder, err := record.New(o)
	if err != nil {
		t.Fatal(err)
	}
	observed := hook.WithObserver(recorder)
	for _, b := range bodies {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/pods?timeout=5s", strings.NewReader(b))
		r.Header.Set("Content-Type", "application/json")
		observed.ServeHTTP(w, r)
	}
	if err := recorder.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := recorder.Stats(); s.Recorded != int64(len(bodies)) {
		t.Fatalf("%d of %d calls were recorded: %+v", s.Recorded, len(bodies), s)
	}
	return o.Dir
}

// file writes lines into a file as a recorder does.
func file(t *testing.T, lines func(write func(line string))) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "traffic.gz")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	lines(func(line string) {
		if _, err := z.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	})
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// line returns the line of a call in a recording.
func line(request, outcome, answer string) string {
	return fmt.Sprintf(`{"format":"admitkit-record/1","time":"2026-11-27T10:00:00Z","webhook":"pods.example.com","type":"validating","path":"/pods","outcome":"%s","code":200,"durationSeconds":0.001,"request":%s,"answer":%s}`, outcome, request, answer)
}

// reply returns an answer to the review of body(name, …). The members are JSON.
func reply(name string, members string) string {
	return fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"uid-%s",%s}}`, name, members)
}

func run(t *testing.T, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// causes returns the changes and the notes of a report, one per line.
func causes(r *Report) string {
	var lines []string
	for _, c := range append(r.Changes, r.Notes...) {
		lines = append(lines, fmt.Sprintf("%d %s %s %s: %s", c.Calls, c.Class, c.Operation, c.Resource, c.Cause))
	}
	for _, n := range r.NotCompared {
		lines = append(lines, fmt.Sprintf("%d not compared: %s", n.Calls, n.Reason))
	}
	return strings.Join(lines, "\n")
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var noTimeout = time.Duration(-1)
