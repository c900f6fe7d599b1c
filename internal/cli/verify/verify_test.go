// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// TestEndsWhileStandardInputDoesNot checks that Ctrl-C ends a command that waits for standard input.
func TestEndsWhileStandardInputDoesNot(t *testing.T) {
	rows := []struct {
		flag string
		o    Options
	}{
		{"-f -", Options{Files: []string{"-"}}},
		{"--webhook-configuration -", Options{Configurations: []string{"-"}}},
		{"--chain -", Options{Chain: []string{"-"}}},
		{"--exceptions -", Options{Exceptions: "-", Objects: 1, Budget: time.Minute}},
	}
	for _, row := range rows {
		t.Run(row.flag, func(t *testing.T) {
			stdin, writer := io.Pipe()
			defer func() { _ = writer.Close() }() // closing a pipe never fails
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, _ = io.WriteString(writer, "\n") // returns when Run has begun to read
				cancel()
			}()
			_, err := Run(ctx, &screen.Screen{In: stdin, Out: io.Discard, Err: io.Discard, Getenv: os.Getenv}, row.o)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that it was canceled", err)
			}
		})
	}
}

func TestExceptions(t *testing.T) {
	rows := []struct{ name, text, want, reason string }{
		{"empty", "", "", "there may be none yet"},
		{"comment", "# none yet\n", "", "a file of comments is empty"},
		{"no list", "path: a", "1: expected a list of exceptions", "a map is a list that was forgotten"},
		{"text", "\n- a", "2: expected an exception with a path and a reason", "a path alone has no reason"},
		{"no path", "- {reason: a}", "1: the exception has no path", "it would be for everything"},
		{"no reason", "- {path: a}", "1: the exception for a has no reason", "the report repeats it"},
		{"blank reason", "- {path: a, reason: '  '}", "1: the exception for a has no reason", "that is none"},
		{"no such law", "- path: a\n  reason: b\n  law: l1", `3: unknown law "l1"`, "laws are written as in the report"},
		{"field", "- path: a\n  reason: b\n  laws: L1", `3: unknown field "laws" of an exception`, "a typing error would be an exception for all laws"},
		{"twice", "- path: a\n  reason: b\n  path: c", "3: ", "one of them would be lost"},
		{"not text", "- path: [a]\n  reason: b", "1: path must be a string", "one path, one exception"},
		{"bad", "- path: [", " line 1: ", "the parser knows the line"},
		{"alias", "- &a {path: b, reason: c}\n- *a", "", "YAML is YAML"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := parseExceptions([]byte(row.text))
			if got := ""; err != nil && !strings.HasPrefix(err.Error(), row.want) || err == nil && row.want != got {
				t.Errorf("got %v, want %q: %s", err, row.want, row.reason)
			}
		})
	}
	got, err := parseExceptions([]byte("- path: metadata.annotations[example.com/at]\n  law: L3\n  reason: says when\n- {path: spec, reason: 7}"))
	want := []idempotence.Exception{
		{Path: "metadata.annotations[example.com/at]", Law: idempotence.L3, Reason: "says when"}, {Path: "spec", Reason: "7"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// FuzzExceptions checks that each file either causes an error or gives valid exceptions.
func FuzzExceptions(f *testing.F) {
	f.Add([]byte("- path: a\n  law: L4b\n  reason: b\n"))
	f.Add([]byte("- &a {path: b, reason: c}\n- *a\n---\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			return
		}
		list, err := parseExceptions(text)
		for _, e := range list {
			if err == nil && (e.Path == "" || e.Reason == "" || e.Law != "" && !slices.Contains(idempotence.Laws, e.Law)) {
				t.Errorf("%+v", e)
			}
		}
	})
}

// FuzzAnswers checks that the error for any response to a first call is one line of visible characters.
func FuzzAnswers(f *testing.F) {
	f.Add(200, "text/html", []byte("<!doctype html>\x1b[31m"))
	f.Add(404, "", []byte("\xff\n\nnot found"))
	f.Add(302, "/elsewhere", []byte(nil))
	f.Fuzz(func(t *testing.T, status int, header string, body []byte) {
		l := &listener{runner: &runner{screen: &screen.Screen{Quiet: true}, result: &Result{}}}
		response := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {header}, "Location": {header}},
			Request: &http.Request{URL: &url.URL{Scheme: "https", Host: "127.0.0.1"}}}
		if strings.ContainsFunc(header, func(c rune) bool { return c < ' ' || c > '~' }) {
			return // net/http refuses such a header
		}
		if err := l.wrongAnswer("https://127.0.0.1/", response, body); err != nil {
			if text := err.Error(); strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
				t.Errorf("%q", text)
			}
		}
	})
}

func TestLaws(t *testing.T) {
	rows := []struct {
		only, without []string
		left          int
		reason        string
	}{
		{nil, nil, 13, "all of them, if nothing is said"},
		{[]string{"L1", "L4b"}, nil, 2, "those that are named"},
		{nil, []string{"L1"}, 12, "all but one"},
		{[]string{"L1", "L2"}, []string{"L2"}, 1, "both together"},
		{[]string{"L1"}, []string{"L1"}, 0, "nothing is left: an error"},
		{[]string{"L0"}, nil, 0, "there is none: an error"},
	}
	for _, row := range rows {
		out, err := excludedLaws(row.only, row.without)
		if got := len(idempotence.Laws) - len(out); err == nil && got != row.left || (err != nil) != (row.left == 0) {
			t.Errorf("%v without %v: %d, %v: %s", row.only, row.without, got, err, row.reason)
		}
	}
}

func TestChoose(t *testing.T) {
	path := func(p string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: &p}}
	}
	named := func(name string, config admissionregistrationv1.WebhookClientConfig) target {
		return target{MutatingWebhook: admissionregistrationv1.MutatingWebhook{Name: name, ClientConfig: config}}
	}
	direct := "https://hooks.example.com/c/"
	all := []target{named("a", path("/a")), named("b", path("b/")), named("c", admissionregistrationv1.WebhookClientConfig{URL: &direct}),
		named("d", path("/d")), named("d", path("/e")), named("root", admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{}})}
	rows := []struct{ webhook, url, want, reason string }{
		{"a", "", "a", "by its name"},
		{"a", "https://127.0.0.1/b", "a", "the name says more than the path"},
		{"", "https://127.0.0.1/b", "b", "by its path, as the API server cleans it"},
		{"", "https://127.0.0.1/c", "c", "by the path of its URL"},
		{"", "https://127.0.0.1", "root", "no path is the root"},
		{"", "https://127.0.0.1/f", "", "no path fits"},
		{"", "", "", "nothing says which"},
		{"d", "", "", "there are two of that name"},
		{"e", "", "", "there is none of that name"},
	}
	for _, row := range rows {
		r := &runner{Options: Options{Webhook: row.webhook}}
		if row.url != "" {
			r.URLs = []string{row.url}
		}
		if got, err := r.choose(all); got.Name != row.want || (err == nil) != (row.want != "") {
			t.Errorf("--webhook %q --url %q: %q, %v: %s", row.webhook, row.url, got.Name, err, row.reason)
		}
	}
}
