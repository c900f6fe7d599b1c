// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

// randomEvent returns a random event with few objects and webhooks, so that events share them.
func randomEvent(r *rand.Rand, id int) event {
	e := event{
		ID: fmt.Sprint("id", id), Second: r.IntN(1000), Name: fmt.Sprint("o", r.IntN(4)), User: fmt.Sprint("user", r.IntN(8)),
		Verb: []string{"create", "update", "update", "patch", "delete", "get"}[r.IntN(6)], Level: []string{"Request", "Request", "Metadata"}[r.IntN(3)],
		Stage: []string{"", "", "", "RequestReceived", "Panic"}[r.IntN(5)], Code: []int{200, 200, 200, 201, 403, 500}[r.IntN(6)],
		Object: []string{"", teamA, teamNone}[r.IntN(3)], Annotations: map[string]string{},
	}
	if e.Code >= 400 {
		e.Message = []string{denial, failure, badRemove, "no"}[r.IntN(4)]
	}
	for range r.IntN(5) {
		c := recordedCall{Round: r.IntN(2), Hook: []string{"a.example.com", "b.example.com", "c.example.com"}[r.IntN(3)], Mutated: r.IntN(2) == 0, FailedOpen: r.IntN(8) == 0}
		if e.Level == "Request" {
			c.Patch = []string{"", setA, setB, addX, fmt.Sprintf(`[{"op":"add","path":"/data/n","value":"%d"}]`, r.IntN(30))}[r.IntN(5)]
		}
		e.Calls = append(e.Calls, c)
	}
	if r.IntN(4) == 0 {
		e.Annotations[latencyPrefix+"mutating-webhook"] = fmt.Sprintf("%dms", 500+r.IntN(1500))
	}
	if r.IntN(6) == 0 {
		e.Annotations["v.example.com/rule"] = "x"
		e.Annotations["v.example.com/mode"] = []string{"Warn", "Shadow", "Enforce"}[r.IntN(3)]
		e.Annotations["v.example.com/would-"+[]string{"deny", "fail", "change"}[r.IntN(3)]] = fmt.Sprintf("%s has rule %d", e.Name, r.IntN(3))
	}
	return e
}

// TestOrder checks that the report does not depend on the order of events, their distribution over files, or
// duplicates.
func TestOrder(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		var events []string
		for i := range 400 {
			events = append(events, randomEvent(r, i).line())
		}
		want := read(t, defaults(), strings.Join(events, ""))
		if len(want.Findings) < 5 {
			t.Fatalf("seed %d: only %d findings; the events are too dull", seed, len(want.Findings))
		}
		twice := append([]string{}, events[:50]...)
		r.Shuffle(len(events), func(i, k int) { events[i], events[k] = events[k], events[i] })
		got, err := Run(t.Context(), []Source{
			textSource("1", strings.NewReader(strings.Join(events[:100], ""))),
			textSource("2", strings.NewReader(strings.Join(append(events[100:], twice...), ""))),
		}, defaults(), noProgress)
		if err != nil {
			t.Fatal(err)
		}
		// Requests without webhooks are not deduplicated.
		got.Files, got.Events, got.Duplicates, got.Requests = want.Files, want.Events, want.Duplicates, want.Requests
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: another order gives another report\ngot:  %s\nwant: %s", seed, asJSON(got), asJSON(want))
		}
	}
}

func asJSON(r *Report) string {
	var text strings.Builder
	if err := r.WriteJSON(&text); err != nil {
		return err.Error()
	}
	return text.String()
}

// An endless reader generates a log of n events while it is read. Each object, field, webhook, certificate and message
// is new.
type endless struct {
	n, made int
	rest    string
	event   func(i int) event
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		if e.made == e.n {
			return 0, io.EOF
		}
		e.rest = e.event(e.made).line()
		e.made++
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestMemory checks that a log that is ten times as long needs no more memory. Every event has new names.
func TestMemory(t *testing.T) {
	used := func(n int) uint64 {
		tally := newTally(defaults())
		tally.hooks.max, tally.validating.max, tally.notes.max, tally.found.max, tally.objects.max, tally.fights.max, tally.withheld.max, tally.seen.max = 50, 50, 50, 50, 50, 50, 50, 500
		r := reader{tally: tally, progress: noProgress}
		log := &endless{n: n, event: func(i int) event {
			a, b := fmt.Sprintf("a%d.example.com", i), fmt.Sprintf("b%d.example.com", i)
			return event{ID: fmt.Sprint(i), Name: fmt.Sprint("o", i), User: fmt.Sprint("u", i), Verb: "patch", Object: `{"data":{}}`, Calls: []recordedCall{
				{Hook: a, Mutated: true, Patch: setA}, {Hook: b, Mutated: true, Patch: setB, FailedOpen: true}, {Round: 1, Hook: a, Mutated: true, Patch: setA},
			}, Annotations: map[string]string{
				fmt.Sprintf("v%d.example.com/mode", i): "Warn", fmt.Sprintf("v%d.example.com/would-deny", i): fmt.Sprint("rule ", i), openValidatingPrefix + "round_0_index_0": fmt.Sprintf("w%d.example.com", i),
				fmt.Sprintf("missing-san.invalid-cert.kubernetes.io/h%d", i): "x", latencyPrefix + "mutating-webhook": "3s",
			}}
		}}
		if err := r.source(t.Context(), textSource("log", log)); err != nil {
			t.Fatal(err)
		}
		var after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&after)
		report := tally.report()
		if tally.requests != n || len(report.Notes) < 5 {
			t.Errorf("%d of %d requests, notes: %q", tally.requests, n, report.Notes)
		}
		runtime.KeepAlive(tally)
		return after.HeapAlloc
	}
	once, ten := used(1500), used(15000)
	if ten > once+once/4+1<<20 {
		t.Errorf("%d bytes are in use after 1500 requests, %d after 15000", once, ten)
	}
}

// TestBounds checks that the counts of a full table may be too low but never too high, and that the rows with the
// highest counts remain.
func TestBounds(t *testing.T) {
	tab := newTable[int](8, func(n *int) int { return *n })
	truth := map[int]int{}
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		k := r.IntN(40)
		if r.IntN(2) == 0 {
			k = 7
		}
		truth[k]++
		n, _ := tab.row(k)
		*n++
		if len(tab.rows) > 8 {
			t.Fatalf("%d rows", len(tab.rows))
		}
	}
	for k, n := range tab.rows {
		if *n > truth[k] {
			t.Errorf("%d was counted %d times, and came %d times", k, *n, truth[k])
		}
	}
	if n := tab.rows[7]; n == nil || *n < truth[7]/2 {
		t.Errorf("the key that came every other time is lost: %v of %d", n, truth[7])
	}
	if tab.evicted == 0 {
		t.Error("the table does not count the removed rows")
	}
}

func TestSeen(t *testing.T) {
	s := newSeen(3)
	for i, k := range []uint64{1, 2, 3, 1, 4, 2, 5, 6, 4, 7} {
		if got, want := s.before(k), []bool{3: true, 5: true, 8: true, 9: false}[i]; got != want {
			t.Errorf("%d: key %d was seen: %t, want %t", i, k, got, want)
		}
	}
	if !s.forgot {
		t.Error("forgot is false after keys were forgotten")
	}
}

// TestLines checks the statistics on logs in which some lines are not events.
func TestLines(t *testing.T) {
	good := event{ID: "x", Calls: []recordedCall{{Hook: "a.example.com"}}}.line()
	long := strings.Repeat("x", longest+1)
	for _, c := range []struct {
		reason, log string
		want        File
	}{
		{"one event", good, File{Lines: 1, Events: 1}},
		{"no newline at the end", strings.TrimSpace(good), File{Lines: 1, Events: 1}},
		{"lines as Windows ends them", strings.TrimSpace(good) + "\r\n", File{Lines: 1, Events: 1}},
		{"empty lines are nothing", "\n\n" + good + "\n", File{Lines: 4, Events: 1}},
		{"not JSON", "nonsense\n" + good, File{Lines: 2, Events: 1, Corrupt: 1, Skipped: []SkippedLine{{1, "not JSON"}}}},
		{"cut off in the middle", good + good[:50] + "\n" + good, File{Lines: 3, Events: 2, Corrupt: 1, Skipped: []SkippedLine{{2, "not JSON"}}}},
		{"written only half, at the end", good + good[:50], File{Lines: 2, Events: 1, HalfWritten: true}},
		{"something behind the event", strings.TrimSpace(good) + " x\n" + good, File{Lines: 2, Events: 1, Corrupt: 1, Skipped: []SkippedLine{{1, "not JSON"}}}},
		{"another object", `{"kind":"Pod","apiVersion":"v1"}` + "\n" + good, File{Lines: 2, Events: 1, Corrupt: 1, Skipped: []SkippedLine{{1, "valid JSON, but not an audit.k8s.io Event"}}}},
		{"a list of events", `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[` + strings.TrimSpace(good) + "," + strings.TrimSpace(good) + "]}", File{Lines: 1, Events: 2}},
		{"a list of nothing", `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[1]}` + "\n" + good, File{Lines: 2, Events: 1, Corrupt: 1, Skipped: []SkippedLine{{1, "valid JSON, but not an audit.k8s.io Event"}}}},
		{"a list of which the last is none counts as a whole or not at all",
			`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[` + strings.TrimSpace(good) + ",1]}\n" + good,
			File{Lines: 2, Events: 1, Corrupt: 1, Skipped: []SkippedLine{{1, "valid JSON, but not an audit.k8s.io Event"}}}},
		{"only the first lines are named", "1\n2\n3\n4\n5\n" + good, File{Lines: 6, Events: 1, Corrupt: 5, Skipped: []SkippedLine{
			{1, "not JSON"}, {2, "not JSON"}, {3, "not JSON"}}}},
		{"too long", long + "\n" + good, File{Lines: 2, Events: 1, TooLong: 1, Skipped: []SkippedLine{{1, "longer than 32 MiB"}}}},
		{"long, but not too long", event{ID: "x", Object: `"` + strings.Repeat("x", 5<<20) + `"`}.line() + good, File{Lines: 2, Events: 2}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got := read(t, defaults(), c.log).Files[0]
			c.want.Name, c.want.Bytes = "log", int64(len(c.log))
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestNothing checks the errors for logs without facts about webhooks.
func TestNothing(t *testing.T) {
	for _, c := range []struct {
		reason, log string
		options     Options
		want, hint  string
	}{
		{"an empty file", "", defaults(), "no audit event in log (0 lines)", "--audit-policy-file"},
		{"other lines", "a\nb\n", defaults(), "no audit event in log (2 lines)", "level: Metadata"},
		{"wrapped", `{"message":"{}"}` + "\n", defaults(), "no audit event in log (1 line)", "jq -r .message"},
		{"the old format", `2026-11-22T10:00:00Z AUDIT: id="x" ip="192.0.2.1"` + "\n", defaults(), "no audit event in log (1 line)", "--audit-log-format=json"},
		{"the end of requests is not logged", event{ID: "x", Stage: "RequestReceived"}.line(), defaults(), "1 audit event, but none of the stage ResponseComplete", "omitStages"},
		{"another time", event{ID: "x"}.line(), Options{Top: 1, Slow: 1, Again: 2, Since: beginning.Add(time.Hour)}, "no request in the selected time: the log has requests from 2026-11-22T10:00:00Z to 2026-11-22T10:00:00Z", ""},
		{"another webhook", event{ID: "x", Calls: []recordedCall{{Hook: "a.example.com"}}}.line(), Options{Top: 1, Slow: 1, Again: 2, Webhooks: []string{"b"}}, "no record of b in 1 request", "a.example.com"},
		{"no webhook at all", event{ID: "x"}.line(), Options{Top: 1, Slow: 1, Again: 2, Webhooks: []string{"b"}}, "no record of b in 1 request", "the log has no call of a webhook"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			_, err := Run(t.Context(), []Source{textSource("log", strings.NewReader(c.log))}, c.options, noProgress)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(strings.Join(problem.Hints(err), "\n"), c.hint) {
				t.Errorf("got %v, hints %q; want %q and %q", err, problem.Hints(err), c.want, c.hint)
			}
		})
	}
}

// TestSources checks the reports and errors for compressed, truncated and missing files.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	line := event{ID: "x", Calls: []recordedCall{{Hook: "a.example.com"}}}.line()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range 2000 {
		if _, err := io.WriteString(z, event{ID: fmt.Sprint(i), Calls: []recordedCall{{Hook: "a.example.com"}}}.line()); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"plain": []byte(line), "whole.gz": packed.Bytes(), "half.gz": packed.Bytes()[:packed.Len()/2]} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	sources, err := Sources([]string{at("plain"), at("whole.gz"), "-"}, bytes.NewReader(packed.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), sources, defaults(), noProgress)
	if err != nil {
		t.Fatal(err)
	}
	if r.WithWebhooks != 2001 || r.Duplicates != 2000 || len(r.Incomplete) != 0 || r.Files[1].Bytes != int64(packed.Len()) {
		t.Errorf("%d requests, %d duplicates, %q, %+v", r.WithWebhooks, r.Duplicates, r.Incomplete, r.Files)
	}
	if sources, err = Sources([]string{at("half.gz")}, nil); err != nil {
		t.Fatal(err)
	}
	if r, err = Run(t.Context(), sources, defaults(), noProgress); err != nil || r.WithWebhooks < 500 || len(r.Incomplete) != 1 {
		t.Errorf("half a file: %v, %+v", err, r)
	} else if text := r.verdict(); !strings.Contains(text, "the part of the logs that could be read") {
		t.Errorf("half a file: %q", text)
	}
	if err := os.WriteFile(at("half.gz"), packed.Bytes()[:14], 0o600); err != nil {
		t.Fatal(err)
	}
	if sources, err = Sources([]string{at("half.gz")}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err = Run(t.Context(), sources, defaults(), noProgress); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("the beginning of a file: %v", err)
	}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{at("none")}, "there is no file"},
		{[]string{at("plain"), dir}, "is a folder"},
		{[]string{"-", "-"}, "only once"},
	} {
		if _, err := Sources(c.names, strings.NewReader("")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.names, err, c.want)
		}
	}
}

// TestInterruptedOpen checks that Run ends with its context while it waits to open a pipe without a writer.
func TestInterruptedOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := Sources([]string{name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, sources, defaults(), noProgress); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestInterrupt checks that Run ends with its context while it reads from a pipe without data.
func TestInterrupt(t *testing.T) {
	in, out := io.Pipe()
	defer func() { _ = out.Close() }() // it never fails
	ctx, cancel := context.WithCancel(t.Context())
	sources, err := Sources([]string{"-"}, in)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := Run(ctx, sources, defaults(), noProgress)
		ended <- err
	}()
	if _, err := io.WriteString(out, event{ID: "x"}.line()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// FuzzLine checks that the report on any lines can be written in each output format.
func FuzzLine(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 20 {
		f.Add([]byte(randomEvent(r, i).line()))
	}
	f.Add([]byte("nonsense\n\x00{}"))
	f.Add([]byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{"annotations":{"a/b":1}}]}`))
	f.Fuzz(func(t *testing.T, log []byte) {
		log = append(log, "\n"+event{ID: "x", Calls: []recordedCall{{Hook: "a.example.com", Mutated: true, Patch: setA}}}.line()...)
		report, err := Run(t.Context(), []Source{textSource("log", bytes.NewReader(log))}, Options{Top: 3, Slow: 1, Again: 2}, noProgress)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(report.WriteText(io.Discard, painter), report.WriteJSON(io.Discard), report.Page().Write(io.Discard)); err != nil {
			t.Fatal(err)
		}
	})
}

var painter = screen.Painter{On: true}
