// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestRecordHook records calls of a hook with all outcomes, and reads them again.
func TestRecordHook(t *testing.T) {
	const secret = "hunter2"
	r := start(t, Options{})
	hook := pods().WithObserver(r)
	before := time.Now()
	answers := map[string][]byte{}
	for _, name := range []string{"allowed", "mutated", "denied", "failed"} {
		answers[name] = call(t, hook, hook.Path(), reviewOf(name, secret)).Body.Bytes()
	}
	call(t, hook, hook.Path(), []byte("no review"))
	calls := recorded(t, r)
	if len(calls) != 4 {
		t.Fatalf("got %d calls", len(calls))
	}
	pseudonym := ""
	for i, got := range calls {
		req, err := review.Decode(got.Request)
		if err != nil {
			t.Fatalf("%s: %v", got.Request, err)
		}
		outcome := webhook.Outcome(req.Name)
		if got.Outcome != outcome || got.Webhook != "pods.example.com" || got.Type != "mutating" || got.Path != hook.Path() || got.Line != i+1 || !got.Novel || got.Key == "" {
			t.Errorf("got %+v", got)
		}
		if got.Time.Before(before.Add(-time.Second)) || got.Time.After(time.Now()) || got.Duration <= 0 || got.Duration > time.Minute {
			t.Errorf("%s: at %s, in %s", outcome, got.Time, got.Duration)
		}
		if strings.Contains(string(got.Request)+string(got.Answer), secret) {
			t.Errorf("the secret is in %s %s", got.Request, got.Answer)
		}
		value := valueIn(t, req.Object)
		if pseudonym == "" {
			pseudonym = value
		}
		if value != pseudonym {
			t.Errorf("one value has the pseudonyms %q and %q", value, pseudonym)
		}
		// The answer is that of the webhook, with the pseudonym in place of the secret.
		switch want := answers[string(outcome)]; outcome {
		case webhook.Mutated:
			own, old := responseIn(t, got.Answer), responseIn(t, want)
			if string(own.Patch) != strings.ReplaceAll(string(old.Patch), secret, pseudonym) || own.UID != old.UID || !own.Allowed {
				t.Errorf("got %s, want %s", own.Patch, old.Patch)
			}
		default:
			if string(got.Answer) != strings.TrimSpace(strings.ReplaceAll(string(want), secret, pseudonym)) {
				t.Errorf("got %s, want %s", got.Answer, want)
			}
		}
	}
	want := Stats{Calls: 5, Recorded: 4, Unreadable: 1}
	if s := r.Stats(); s.WrittenBytes == 0 || s != (Stats{Calls: want.Calls, Recorded: want.Recorded, Unreadable: want.Unreadable, WrittenBytes: s.WrittenBytes}) {
		t.Errorf("got %+v", s)
	}
}

// TestOtherRecorders requires that two recorders with one key file have the same pseudonyms, and others have not.
func TestOtherRecorders(t *testing.T) {
	key := t.TempDir() + "/key"
	values, keys := map[string]int{}, map[string]int{}
	for _, o := range []Options{{KeyFile: key}, {KeyFile: key}, {}, {Unredacted: true}} {
		r := start(t, o)
		hook := pods().WithObserver(r)
		call(t, hook, hook.Path(), reviewOf("allowed", "hunter2"))
		got := recorded(t, r)[0]
		req, err := review.Decode(got.Request)
		if err != nil {
			t.Fatal(err)
		}
		values[valueIn(t, req.Object)]++
		keys[got.Key]++
	}
	if len(values) != 3 || values["hunter2"] != 1 || len(keys) != 3 || keys[""] != 1 {
		t.Errorf("got the values %v, with the keys %v", values, keys)
	}
}

// TestShadow requires that the mode of a hook is recorded.
func TestShadow(t *testing.T) {
	r := start(t, Options{})
	hook := pods().WithMode(webhook.Shadow).WithObserver(r)
	call(t, hook, hook.Path(), reviewOf("denied", "hunter2"))
	got := recorded(t, r)[0]
	if got.Outcome != webhook.Allowed || got.Mode != webhook.Shadow || got.Withheld != webhook.Denied {
		t.Errorf("got %+v", got)
	}
}

func TestBadOptions(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, in := range []struct {
		options Options
		want    string
	}{
		{Options{}, "record: Options.Dir is empty: want a folder for the files"},
		{Options{Dir: t.TempDir(), Rate: 2}, "record: Options.Rate is 2: want a share from 0 to 1"},
		{Options{Dir: file}, "record: cannot create the folder for the files: "},
		{Options{Dir: t.TempDir(), KeyFile: file}, "record: Options.KeyFile: " + file + " is not a key"},
		{Options{Dir: t.TempDir(), SecretPaths: []string{"a..b"}}, `record: Options.SecretPaths: "a..b" is not a field path`},
	} {
		if r, err := New(in.options); err == nil || !strings.HasPrefix(err.Error(), in.want) {
			t.Errorf("got %v, %v", r, err)
		}
	}
}

// TestClosed requires that a closed recorder does nothing, and that calls go on.
func TestClosed(t *testing.T) {
	r := start(t, Options{})
	closeRecorder(t, r)
	closeRecorder(t, r)
	hook := pods().WithObserver(r)
	if w := call(t, hook, hook.Path(), reviewOf("allowed", "x")); w.Code != http.StatusOK {
		t.Errorf("answered %d", w.Code)
	}
	if w := call(t, r.Handler(pods()), hook.Path(), reviewOf("allowed", "x")); w.Code != http.StatusOK {
		t.Errorf("answered %d", w.Code)
	}
	if s := r.Stats(); s != (Stats{}) || len(filesOf(t, r.files.dir)) != 0 {
		t.Errorf("got %+v", s)
	}
}
