// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// start starts a recorder with a folder of its own, which ends with the test.
func start(t testing.TB, o Options) *Recorder {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(t.Context()) }) // most tests have closed it
	return r
}

func closeRecorder(t testing.TB, r *Recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// filesOf returns the names of the files of a recorder, the oldest first.
func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "admitkit-*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// read returns the calls in a file. It fails the test unless the whole file is readable.
func read(t testing.TB, name string) (calls []*Call) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := NewReader(f)
	for call, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, call)
	}
	if report := r.Report(); report.Skipped > 0 || report.CutOff != nil || report.Calls != len(calls) {
		t.Fatalf("%s: %+v", name, report)
	}
	return calls
}

// recorded closes the recorder and returns the calls in its files.
func recorded(t testing.TB, r *Recorder) (calls []*Call) {
	t.Helper()
	closeRecorder(t, r)
	for _, name := range filesOf(t, r.files.dir) {
		calls = append(calls, read(t, name)...)
	}
	return calls
}

// pods is a mutating hook. The name of the Pod decides what it does.
func pods() *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))},
		func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			value := ""
			for _, c := range req.Object.Spec.Containers {
				for _, env := range c.Env {
					value = env.Value
				}
			}
			switch req.Object.Name {
			case "denied":
				return webhook.Deny("the value " + value + " is not allowed")
			case "failed":
				return errors.New("cannot use " + value)
			case "mutated":
				req.Object.Labels = map[string]string{"copy": value}
			}
			return nil
		})
}

// reviewOf returns the review of a Pod with this name and an environment variable with this value.
func reviewOf(name, value string) []byte {
	quoted, _ := json.Marshal(value) // a string always marshals
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},`+
		`"resource":{"group":"","version":"v1","resource":"pods"},"name":"%[1]s","namespace":"shop","operation":"CREATE","userInfo":{"username":"ada"},`+
		`"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%[1]s","namespace":"shop"},"spec":{"containers":[{"name":"app","image":"app",`+
		`"env":[{"name":"X","value":%[2]s}]}]}},"oldObject":null,"dryRun":false,"options":null}}`+"\n", name, quoted)
}

// call sends a review to a handler and returns its answer.
func call(t testing.TB, h http.Handler, path string, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// responseIn returns the response in an answer.
func responseIn(t testing.TB, answer []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil || review.Response == nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return review.Response
}

// A logbook keeps the lines of a log.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) write(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, prefix+args)
}

func (l *logbook) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// valueIn returns the value of the environment variable of a Pod.
func valueIn(t testing.TB, object []byte) string {
	t.Helper()
	var pod corev1.Pod
	if err := json.Unmarshal(object, &pod); err != nil || len(pod.Spec.Containers) != 1 {
		t.Fatalf("%s: %v", object, err)
	}
	return pod.Spec.Containers[0].Env[0].Value
}
