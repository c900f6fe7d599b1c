// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/audit"
	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newAudit(s *screen.Screen) *cobra.Command {
	o := audit.Options{Top: 10, Slow: time.Second, Again: 5}
	var since, until string
	c := &cobra.Command{
		Use:     "audit FILE...",
		Short:   "Tell from audit logs what webhooks did",
		GroupID: "judge",
		Long: `Tell from the audit logs of the API server what webhooks did: calls, changes,
patches, denials and failures of each, and what should not be: requests that
were let pass because a webhook failed, webhooks that change the same object
again and again, two that take back each other's changes, patches that change
nothing, slow ones.

It needs events of audit.k8s.io as JSON, one a line, as the API server writes
them with --audit-log-path; files may be compressed with gzip, and "-" is
standard input. The level of the audit policy decides what can be told:

  Metadata   calls of mutating webhooks, and whether they changed the object;
             denials, failures, audit annotations; the time spent in webhooks,
             of requests that took more than 500 ms
  Request    also the patches: fields that two webhooks contend for, elements
             added twice, patches that change nothing

Calls of validating webhooks that allowed a request are not recorded at any
level. Each request is counted once, however many files it is in. Memory does
not grow with the logs.

Lines that are no event are skipped, counted and named. One that is too long, or
not JSON, or JSON in which an event may be wrapped, may have been an event; only
a last line that is not written to its end yet does not count.

Exit codes: 0 nothing but advice, 1 there are errors or warnings, 2 there was
no audit event, or nothing was found and a file could be read only in part or
has lines that may have been events.`,
		Example: `admitkit audit /var/log/kubernetes/audit.log
admitkit audit audit-*.log.gz audit.log --since 2h -o text -o html=audit.html
ssh control-plane-0 sudo cat /var/log/kubernetes/audit.log | admitkit audit -
admitkit audit audit.log --webhook sidecar.example.com --slow 200ms -o json`,
		Args: arguments("FILE..."),
	}
	flags := c.Flags()
	flags.StringVar(&since, "since", "", "leave out requests before `TIME`, as in 2006-01-02T15:04:05Z, or so long ago, as in 90m")
	flags.StringVar(&until, "until", "", "leave out requests from `TIME` on")
	flags.StringSliceVar(&o.Webhooks, "webhook", nil, "only the webhook `NAME`, or CONFIGURATION/NAME; may be repeated")
	flags.IntVar(&o.Top, "top", o.Top, "show `N` rows of a table, and N findings of a kind")
	flags.DurationVar(&o.Slow, "slow", o.Slow, "`DURATION` in webhooks that makes a request a finding")
	flags.IntVar(&o.Again, "again", o.Again, "`N` changes of the same object by a webhook are a finding")
	out := outputFlag(c, "text", "json", "junit", "html")
	c.RunE = func(c *cobra.Command, args []string) error {
		err := auditOptions(&o, since, until, time.Now())
		if err == nil {
			err = out.Check(s)
		}
		if err != nil {
			return err
		}
		report, err := readLogs(c.Context(), s, args, o)
		if err != nil {
			return err
		}
		if err := writeAudit(s, out, report); err != nil {
			return err
		}
		switch {
		case report.Found():
			return problem.ErrFound
		case len(report.Incomplete) > 0:
			return problem.New("nothing was found, but not all of the logs could be read: %s", strings.Join(report.Incomplete, "; "))
		}
		return nil
	}
	return c
}

// auditOptions checks the options, and reads the times.
func auditOptions(o *audit.Options, since, until string, now time.Time) (err error) {
	if o.Since, err = moment("since", since, now); err != nil {
		return err
	}
	if o.Until, err = moment("until", until, now); err != nil {
		return err
	}
	switch {
	case !o.Since.IsZero() && !o.Until.IsZero() && !o.Since.Before(o.Until):
		return problem.New("--since=%s is not before --until=%s", since, until)
	case o.Top < 1:
		return problem.New("--top=%d: it takes one or more", o.Top)
	case o.Again < 2:
		return problem.New("--again=%d: it takes two or more", o.Again)
	case o.Slow <= 0:
		return problem.New("--slow=%s: it takes a time above 0", o.Slow)
	}
	return nil
}

// moment reads a time, or how long ago it was.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, problem.New("--%s=%s is neither a time nor a duration", flag, text).Hint("--%s 2006-01-02T15:04:05Z, --%s 2006-01-02, or --%s 90m", flag, flag, flag)
}

func readLogs(ctx context.Context, s *screen.Screen, names []string, o audit.Options) (*audit.Report, error) {
	sources, err := audit.Sources(names, s.In)
	if err != nil {
		return nil, err
	}
	progress := s.Progress()
	defer progress.Done()
	return audit.Run(ctx, sources, o, func(read, all int64, events int) {
		progress.Part(read, all, "%d MB, %d events", read>>20, events)
	})
}

func writeAudit(s *screen.Screen, out *screen.Outputs, r *audit.Report) error {
	return out.Write(s, func(form string, w io.Writer, p screen.Painter) error {
		switch form {
		case "text":
			return r.WriteText(w, p)
		case "json":
			return r.WriteJSON(w)
		case "junit":
			return r.WriteJUnit(w)
		case "html":
			return r.Page().Write(w)
		}
		return fmt.Errorf("no form %q", form)
	})
}
