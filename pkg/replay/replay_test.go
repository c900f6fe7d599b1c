// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestSeventeenOfManyCalls replays 100,000 recorded calls against a version that decides 17 of them differently. The memory
// does not grow with the number of calls.
func TestSeventeenOfManyCalls(t *testing.T) {
	const all, differs = 100_000, 17
	name := file(t, func(write func(string)) {
		for i := range all {
			pod := fmt.Sprintf("web-%d", i)
			write(line(body(pod, `,"spec":{"containers":[{"name":"app","image":"app:v1"}]}`), "allowed", reply(pod, `"allowed":true`)))
		}
	})
	hook := validating(func(pod *corev1.Pod) error {
		var i int
		if _, err := fmt.Sscanf(pod.Name, "web-%d", &i); err == nil && i%5883 == 5 {
			return webhook.Deny("Pod " + pod.Name + " has no owner")
		}
		return nil
	})
	var early, most uint64
	r := run(t, Options{Files: []string{name}, New: Handler(hook), Timeout: noTimeout, Progress: func(calls int) {
		if calls%10_000 != 0 && calls != 1000 {
			return
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if calls == 1000 {
			early = m.HeapAlloc
		}
		most = max(most, m.HeapAlloc)
	}})
	if r.Read != all || r.Changed != differs || r.Same != all-differs {
		t.Errorf("%d read, %d changed, %d same", r.Read, r.Changed, r.Same)
	}
	if want := `17 decision CREATE pods: allowed before, denied now: Pod … has no owner`; causes(r) != want {
		t.Errorf("got\n%s\nwant\n%s", causes(r), want)
	}
	if e := r.Changes[0].Example; e.Line != 6 || e.Object != "shop/web-5" || e.Before != "allowed" || e.After != "denied: 403 Forbidden: Pod web-5 has no owner" {
		t.Errorf("the example is %+v", e)
	}
	if growth := int64(most) - int64(early); growth > 4<<20 {
		t.Errorf("the heap grew by %d bytes after the first 1000 calls", growth)
	}
}

// TestSameVersion replays recordings of hooks against the same hooks. Nothing may change, even if a recording has
// pseudonyms.
func TestSameVersion(t *testing.T) {
	injecting := mutating(func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "proxy", Image: "proxy:v2", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "hunter2-hunter2"}, {Name: "MODE", Value: "fast"}},
		})
		pod.Annotations = map[string]string{"example.com/injected": "true"}
	})
	denying := validating(func(pod *corev1.Pod) error {
		if len(pod.Spec.Containers[0].Env) > 0 {
			return webhook.Deny("variable " + pod.Spec.Containers[0].Env[0].Value + " is forbidden")
		}
		return nil
	})
	bodies := []string{
		body("web-1", `,"spec":{"containers":[{"name":"app","image":"app:v1","env":[{"name":"PASSWORD","value":"correct horse"}]}]}`),
		body("web-2", `,"spec":{"containers":[{"name":"app","image":"app:v1"}]}`),
	}
	key := t.TempDir() + "/key"
	for _, c := range []struct {
		reason string
		hook   *webhook.Hook
		record record.Options
		replay Options
	}{
		{"a patch with secrets, and no key", injecting, record.Options{}, Options{}},
		{"a patch with secrets, and the key", injecting, record.Options{KeyFile: key}, Options{KeyFile: key}},
		{"a patch with secrets, not redacted", injecting, record.Options{Unredacted: true}, Options{}},
		{"a message with a secret", denying, record.Options{}, Options{}},
		{"a message with a secret, and the key", denying, record.Options{KeyFile: key}, Options{KeyFile: key}},
		{"Shadow", denying.WithMode(webhook.Shadow), record.Options{}, Options{}},
		{"Shadow of a patch", injecting.WithMode(webhook.Shadow), record.Options{}, Options{}},
		{"Warn of a patch", injecting.WithMode(webhook.Warn), record.Options{}, Options{}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			c.replay.Files, c.replay.New = []string{recordWith(t, c.hook, c.record, bodies...)}, Handler(c.hook)
			if r := run(t, c.replay); r.Same != len(bodies) || causes(r) != "" {
				t.Errorf("%d of %d are the same:\n%s\n%s", r.Same, len(bodies), causes(r), asJSON(t, r))
			}
		})
	}
}

// TestChangedSecrets checks that a changed secret is reported with the key, and is not compared without it.
func TestChangedSecrets(t *testing.T) {
	with := func(value string) *webhook.Hook {
		return mutating(func(pod *corev1.Pod) { pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: value}} })
	}
	pod := body("web-1", `,"spec":{"containers":[{"name":"app","image":"app:v1"}]}`)
	key := t.TempDir() + "/key"
	dir := recordWith(t, with("hunter2-hunter2"), record.Options{KeyFile: key}, pod)
	if r := run(t, Options{Files: []string{dir}, New: Handler(with("hunter3-hunter3")), KeyFile: key}); causes(r) != "1 patch CREATE pods: the patched object differs in spec.containers[*].env[*].value" {
		t.Errorf("with the key: %s", causes(r))
	}
	if r := run(t, Options{Files: []string{dir}, New: Handler(with("hunter3-hunter3"))}); causes(r) != "" || r.Secrets != 1 {
		t.Errorf("without the key: %s, and %d calls with secrets", causes(r), r.Secrets)
	}
	wrong := t.TempDir() + "/key"
	recordWith(t, with("any"), record.Options{KeyFile: wrong}, pod)
	if r := run(t, Options{Files: []string{dir}, New: Handler(with("hunter3-hunter3")), KeyFile: wrong}); r.Compared() != 0 || len(r.NotCompared) != 1 {
		t.Errorf("with another key: %s", asJSON(t, r))
	}
	for _, keyFile := range []string{"", key} {
		r := run(t, Options{Files: []string{dir}, Old: Handler(with("hunter2-hunter2")), New: Handler(with("hunter3-hunter3")), KeyFile: keyFile})
		if r.Changed != 1 || strings.Contains(asJSON(t, r), "hunter") {
			t.Errorf("two versions, and the key file %q: %s", keyFile, asJSON(t, r))
		}
	}
	other := mutating(func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OTHER", Value: "hunter3-hunter3"}}
	})
	if r := run(t, Options{Files: []string{dir}, New: Handler(other)}); r.Changed != 1 {
		t.Errorf("another variable: %s", causes(r))
	}
	if _, err := Run(t.Context(), Options{Files: []string{dir}, New: Handler(other), KeyFile: key + "2"}); err == nil || !strings.Contains(err.Error(), "cannot read the key") {
		t.Errorf("without the file of the key: %v", err)
	}
}

// TestOldVersion compares two versions with each other instead of with the recording.
func TestOldVersion(t *testing.T) {
	deny := func(text string) *webhook.Hook {
		return validating(func(*corev1.Pod) error { return webhook.Deny(text) })
	}
	dir := recordWith(t, validating(func(*corev1.Pod) error { return nil }), record.Options{}, body("web-1", ""))
	if r := run(t, Options{Files: []string{dir}, Old: Handler(deny("a")), New: Handler(deny("b"))}); causes(r) != "1 denial CREATE pods: denied before: 403 Forbidden: a; and now: 403 Forbidden: b" {
		t.Errorf("got %s", causes(r))
	}
}

// TestDamage reads files with damage as far as possible, and reports it.
func TestDamage(t *testing.T) {
	hook := Handler(validating(func(*corev1.Pod) error { return nil }))
	good := line(body("web-1", ""), "allowed", reply("web-1", `"allowed":true`))
	name := file(t, func(write func(string)) { write(good); write("no JSON"); write(`{"a":1}`); write(good) })
	r := run(t, Options{Files: []string{name}, New: hook})
	if f := r.Files[0]; r.Same != 2 || f.Calls != 2 || f.Skipped != 2 || len(f.Problems) != 2 || !strings.HasPrefix(f.Problems[0], "line 2 was skipped: ") {
		t.Errorf("%d are the same, the file is %+v", r.Same, f)
	}
	folder := filepath.Join(t.TempDir(), "[a-b]")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "calls.jsonl"), []byte(strings.Repeat("no JSON\n", 12)+good+"\n"+good[:50]), 0o600); err != nil {
		t.Fatal(err)
	}
	r = run(t, Options{Files: []string{folder}, New: hook})
	if f := r.Files[0]; r.Same != 1 || f.Skipped != 12 || len(f.Problems) != 12 || f.Problems[10] != "2 more lines were skipped" || f.Problems[11] != "the file is cut off: unexpected EOF" {
		t.Errorf("a folder: %d are the same, the file is %+v", r.Same, f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Options{Files: []string{folder}, New: hook, Webhooks: []string{"other"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted run: %v", err)
	}
	for _, c := range []struct{ reason, line, want string }{
		{"no call", "no JSON", "line 1 was skipped"},
		{"another version", strings.Replace(good, "record/1", "record/9", 1), `has the format "admitkit-record/9"`},
	} {
		name := file(t, func(write func(string)) { write(c.line) })
		if _, err := Run(t.Context(), Options{Files: []string{name}, New: hook}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	if _, err := Run(t.Context(), Options{Files: []string{name}, New: hook, Webhooks: []string{"other.example.com"}}); err == nil || !strings.HasPrefix(err.Error(), "replay: none of the 2 calls is for other.example.com: ") {
		t.Errorf("no call of the webhook: %v", err)
	}
	if r := run(t, Options{Files: []string{name}, New: hook, Webhooks: []string{"/pods"}}); r.Same != 2 {
		t.Errorf("%d calls of the path", r.Same)
	}
	if _, err := Run(t.Context(), Options{Files: []string{t.TempDir()}, New: hook}); err == nil || !strings.Contains(err.Error(), "has no files *.jsonl or *.jsonl.gz") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Run(t.Context(), Options{Files: []string{"none"}, New: hook}); err == nil || !strings.Contains(err.Error(), "cannot read the recordings: stat none: ") {
		t.Errorf("no file: %v", err)
	}
}

// TestManyCauses checks that the report is bounded if each call is of another webhook or invalid in another way.
func TestManyCauses(t *testing.T) {
	name := file(t, func(write func(string)) {
		for i := range 1300 {
			pod := fmt.Sprintf("web-%d", i)
			call := line(body(pod, ""), "allowed", reply(pod, `"allowed":true`))
			write(strings.Replace(call, "pods.example.com", fmt.Sprintf("pods-%d.example.com", i), 1))
			write(strings.Replace(call, `"admission.k8s.io/v1"`, fmt.Sprintf(`"admission.k8s.io/v%d"`, i+2), 1))
		}
	})
	r := run(t, Options{Files: []string{name}, New: Handler(validating(func(*corev1.Pod) error { return webhook.Deny("no") }))})
	if r.Changed != 1300 || len(r.Changes) != 1001 || r.Changes[0].Calls != 300 || r.Changes[0].Cause != "one of many other causes" {
		t.Errorf("%d changed, of %d causes, first %+v", r.Changed, len(r.Changes), r.Changes[0])
	}
	if len(r.NotCompared) != 101 {
		t.Errorf("%d reasons", len(r.NotCompared))
	}
}

// TestBrokenConnections checks that calls with the same error have one cause, whatever the addresses of their connections.
func TestBrokenConnections(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	address := server.URL
	server.Close()
	name := file(t, func(write func(string)) {
		write(line(body("web-1", ""), "allowed", reply("web-1", `"allowed":true`)))
	})
	target, err := URL(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, Options{Files: []string{name}, New: target})
	if want := "1 failure CREATE pods: fails now: no answer: dial: connect: connection refused"; causes(r) != want {
		t.Errorf("got\n%s\nwant\n%s", causes(r), want)
	}
}

// TestServerRequest checks that a handler gets the request of a server, and that early hints are not its answer.
func TestServerRequest(t *testing.T) {
	name := file(t, func(write func(string)) {
		write(line(body("web-1", ""), "allowed", reply("web-1", `"allowed":true`)))
	})
	r := run(t, Options{Files: []string{name}, New: Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "/pods" {
			t.Errorf("the RequestURI is %q", r.RequestURI)
		}
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = fmt.Fprint(w, reply("web-1", `"allowed":true`), strings.Repeat(" ", 4<<20))
	}))})
	if r.Same != 1 {
		t.Error(causes(r))
	}
}

// TestOddHandlers checks that a handler that panics or answers nonsense is a failure of the call.
func TestOddHandlers(t *testing.T) {
	name := file(t, func(write func(string)) {
		write(line(body("web-1", ""), "allowed", reply("web-1", `"allowed":true`)))
	})
	for _, c := range []struct {
		handler http.HandlerFunc
		want    string
	}{
		{func(http.ResponseWriter, *http.Request) { panic("no map") }, "fails now: no answer: the handler panicked: no map"},
		{func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }, "fails now: the answer is not an AdmissionReview: invalid character 'h' looking for beginning of value"},
		{func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) }, "fails now: HTTP 502: down"},
		{func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, reply("web-2", `"allowed":true`)) }, "fails now: the answer does not have the uid of the request"},
	} {
		r := run(t, Options{Files: []string{name}, New: Handler(c.handler)})
		if want := "1 failure CREATE pods: " + c.want; causes(r) != want {
			t.Errorf("got\n%s\nwant\n%s", causes(r), want)
		}
	}
}
