// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/doctor"
	"github.com/admitkit/admitkit/internal/textutil"
)

// Traffic has the calls of webhooks, from the metrics of the API servers.
type Traffic struct {
	// Servers is the number of API servers that answered, and Known that of all known ones.
	Servers int       `json:"servers"`
	Known   int       `json:"known"`
	Since   time.Time `json:"since"`
	// WatchedSeconds is the time between two scrapes; only calls in between count. If it is 0, the calls since Since
	// count.
	WatchedSeconds float64 `json:"watchedSeconds"`
	// Writes counts the requests that create, change or delete objects.
	Writes int   `json:"writes"`
	Calls  []Row `json:"calls"`
}

// A Row has the calls of one webhook or conversion webhook.
type Row struct {
	Object  string `json:"object"`
	Webhook string `json:"webhook,omitempty"`
	Calls   int    `json:"calls"`
	// Share is the number of calls per write, at most 1. It is 0 for conversion webhooks.
	Share float64 `json:"share"`
	// Seconds99 is a time within which at least 99 % of the calls ended. It is 0 if the time is unknown or above 25 s.
	Seconds99 float64 `json:"seconds99"`
	Denied    int     `json:"denied"`
	Failed    int     `json:"failed"`
	Ignored   int     `json:"ignored"`
}

// trafficOf returns the rows of all webhooks that were called, those with most calls first.
func trafficOf(s *doctor.Snapshot) *Traffic {
	if s.Traffic == nil {
		return nil
	}
	t := &Traffic{Servers: s.Traffic.Servers, Known: s.Traffic.Known, Since: s.Traffic.Start.UTC(), WatchedSeconds: s.Traffic.Watched.Seconds(),
		Writes: int(s.Traffic.Writes), Calls: []Row{}}
	for _, target := range s.Targets {
		c := s.CallsOf(target)
		if c == nil || c.All == 0 {
			continue
		}
		row := Row{Object: target.Object(), Webhook: target.Webhook, Calls: int(c.All), Seconds99: c.AtMost(0.99), Denied: int(c.Denied), Failed: int(c.Failed), Ignored: int(c.Ignored)}
		if target.Kind != doctor.Conversion && s.Traffic.Writes > 0 {
			row.Share = min(c.All/s.Traffic.Writes, 1)
		}
		t.Calls = append(t.Calls, row)
	}
	slices.SortStableFunc(t.Calls, func(a, b Row) int { return cmp.Compare(b.Calls, a.Calls) })
	return t
}

// maxRows limits the rows in the text; the JSON has all.
const maxRows = 20

// nameWidth is the width of the names in the table.
const nameWidth = 30

func (t *printer) traffic(r *Traffic) {
	if r == nil || len(r.Calls) == 0 {
		return
	}
	t.printf("%s\n", t.Bold(fmt.Sprintf("%-*s %8s %6s %8s %7s %7s %7s", nameWidth, "CALLS", "calls", "writes", "99 %", "denied", "failed", "ignored")))
	for _, row := range r.Calls[:min(len(r.Calls), maxRows)] {
		name := textutil.VisibleLine(cmp.Or(row.Webhook, strings.TrimPrefix(row.Object, doctor.Conversion+"/")))
		if utf8.RuneCountInString(name) > nameWidth {
			t.printf("%s\n", name)
			name = ""
		}
		t.printf("%-*s %8d %6s %8s %7d %7d %7d\n", nameWidth, name, row.Calls, shareText(row), secondsText(row.Seconds99), row.Denied, row.Failed, row.Ignored)
	}
	if more := len(r.Calls) - maxRows; more > 0 {
		t.printf("%s\n", t.Faint(fmt.Sprintf("and %s: -o json", textutil.Count(more, "more webhook"))))
	}
	span := "since " + r.Since.Format(time.RFC3339)
	if r.WatchedSeconds > 0 {
		span = fmt.Sprintf("within %g s", r.WatchedSeconds)
	}
	t.printf("%s", faint(t.Painter, textutil.Wrap("", fmt.Sprintf("from the metrics of %d of %s, %s, with %s", r.Servers, textutil.Count(r.Known, "API server"), span, textutil.Count(r.Writes, "write")), width)))
	t.printf("%s\n\n", t.Faint(strings.Join(legend, "\n")))
}

var legend = []string{
	"writes: share of all writes that call the webhook; 99 %: time within which 99 %",
	"of the calls ended; denied: requests that the webhook denied; failed: calls",
	"that failed, so that the request was rejected; ignored: failed calls that were",
	"ignored because of failurePolicy Ignore",
}

func faint(p screen.Painter, text string) string {
	return p.Faint(strings.TrimSuffix(text, "\n")) + "\n"
}

func shareText(r Row) string {
	switch {
	case r.Share == 0:
		return "-"
	case r.Share < 0.01:
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", r.Share*100)
}

func secondsText(s float64) string {
	switch {
	case s == 0:
		return ">25 s"
	case s < 1:
		return fmt.Sprintf("<%g ms", s*1000)
	}
	return fmt.Sprintf("<%g s", s)
}
