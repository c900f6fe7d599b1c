// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A fakeTB records what Check reports.
type fakeTB struct {
	t      *testing.T
	failed string
	logged string
}

func (*fakeTB) Helper()                          {}
func (f *fakeTB) Context() context.Context       { return f.t.Context() }
func (f *fakeTB) Errorf(format string, a ...any) { f.failed += fmt.Sprintf(format, a...) }
func (f *fakeTB) Fatalf(format string, a ...any) { f.failed += "FATAL " + fmt.Sprintf(format, a...) }
func (f *fakeTB) Logf(format string, a ...any)   { f.logged += fmt.Sprintf(format, a...) }

func TestCheck(t *testing.T) {
	allow := validating(func(*corev1.Pod) error { return nil })
	deny := validating(func(pod *corev1.Pod) error {
		if pod.Name == "web-2" {
			return webhook.Deny("no owner")
		}
		return nil
	})
	dir := recordWith(t, allow, record.Options{}, body("web-1", ""), body("web-2", ""), body("web-3", ""))
	check := func(h *webhook.Hook) *fakeTB {
		f := &fakeTB{t: t}
		Check(f, h, dir)
		return f
	}
	if f := check(allow); f.failed+f.logged != "" {
		t.Errorf("the same version: %+v", f)
	}
	f := check(deny)
	for _, want := range []string{"1 of 3 calls changed: 1 decision.", "allowed before, denied now: no owner", "shop/web-2", "ADMITKIT_UPDATE=1"} {
		if !strings.Contains(f.failed, want) {
			t.Errorf("the report lacks %q:\n%s", want, f.failed)
		}
	}
	if f := check(validating(func(*corev1.Pod) error { panic("no") })); !strings.Contains(f.failed, "3 of 3 calls changed: 3 failures.") {
		t.Errorf("a hook that panics: %s", f.failed)
	}

	t.Setenv("ADMITKIT_UPDATE", "1")
	if f := check(deny); f.failed != "" {
		t.Errorf("the update: %+v", f)
	}
	t.Setenv("ADMITKIT_UPDATE", "")
	golden, err := os.ReadFile(filepath.Join(dir, "answers.golden"))
	if err != nil || !strings.Contains(string(golden), ":2 CREATE pods shop/web-2: denied: 403 Forbidden: no owner\n") || strings.Count(string(golden), "\n") != 3 {
		t.Errorf("the golden file is %v\n%s", err, golden)
	}
	if f := check(deny); f.failed != "" {
		t.Errorf("the new version: %+v", f)
	}
	if f := check(allow); !strings.Contains(f.failed, "+ ") || !strings.Contains(f.failed, "shop/web-2: allowed\n- ") {
		t.Errorf("the old version: %+v", f)
	}
	if f := (&fakeTB{t: t}); true {
		Check(f, allow, t.TempDir())
		if !strings.HasPrefix(f.failed, "FATAL replay: cannot read the recordings: the folder ") {
			t.Errorf("no recordings: %+v", f)
		}
	}
}

// TestGolden checks that the golden file has the effect of patches and no secrets, and that damage is reported.
func TestGolden(t *testing.T) {
	with := func(value string, operations ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var review admissionv1.AdmissionReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			patch := strings.ReplaceAll("["+strings.Join(operations, ",")+"]", "VALUE", value)
			_, _ = fmt.Fprint(w, reply(review.Request.Name, patched(patch)))
		}
	}
	const label, annotation = `{"op":"add","path":"/metadata/labels","value":{"a":"1"}}`, `{"op":"add","path":"/metadata/annotations","value":{"b":"2"}}`
	const secret = `{"op":"add","path":"/spec/containers/0/env","value":[{"name":"TOKEN","value":"VALUE"}]}`
	pod := body("web-1", `,"spec":{"containers":[{"name":"app","image":"app:v1"}]}`)
	dir := recordWith(t, mutating(func(*corev1.Pod) {}), record.Options{}, pod)
	check := func(h http.Handler) string {
		f := &fakeTB{t: t}
		Check(f, h, dir)
		return f.failed
	}
	t.Setenv("ADMITKIT_UPDATE", "1")
	if failed := check(with("hunter2-hunter2", label, annotation, secret)); failed != "" {
		t.Fatal(failed)
	}
	t.Setenv("ADMITKIT_UPDATE", "")
	golden, err := os.ReadFile(filepath.Join(dir, goldenName))
	if err != nil || strings.Contains(string(golden), "hunter2") || !strings.Contains(string(golden), `{"name":"TOKEN","value":"(secret)"}`) {
		t.Errorf("%v\n%s", err, golden)
	}
	if failed := check(with("hunter3-hunter3", secret, annotation, label)); failed != "" {
		t.Errorf("the same effect: %s", failed)
	}
	if failed := check(with("hunter2-hunter2", label, secret)); !strings.Contains(failed, "+ ") {
		t.Errorf("another effect: %s", failed)
	}

	damage := []byte("no JSON\n")
	if err := os.WriteFile(filepath.Join(dir, "admitkit-damaged.jsonl.gz"), damage, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "damaged.jsonl.gz: line 1 was skipped: "
	if failed := check(with("hunter2-hunter2", label, annotation, secret)); !strings.Contains(failed, want) {
		t.Errorf("damage, with a golden file: %q", failed)
	}
	t.Setenv("ADMITKIT_UPDATE", "1")
	if failed := check(with("", label)); !strings.Contains(failed, want) {
		t.Errorf("damage, and an update: %q", failed)
	}
	if now, err := os.ReadFile(filepath.Join(dir, goldenName)); err != nil || string(now) != string(golden) {
		t.Errorf("the golden file was replaced: %v\n%s", err, now)
	}
	t.Setenv("ADMITKIT_UPDATE", "")
	if err := os.Remove(filepath.Join(dir, goldenName)); err != nil {
		t.Fatal(err)
	}
	if failed := check(validating(func(*corev1.Pod) error { return nil })); !strings.Contains(failed, want) {
		t.Errorf("damage, without a golden file: %q", failed)
	}
}
