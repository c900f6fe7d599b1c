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
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

func newAudit(s *screen.Screen) *cobra.Command {
	o := audit.Options{Top: 10, Slow: time.Second, Again: 5}
	var since, until string
	c := &cobra.Command{
		Use:     "audit FILE...",
		Short:   "Report what webhooks did, from API server audit logs",
		GroupID: "check",
		Long: `Report what webhooks did, from the audit logs of the API server. audit counts the
calls, changes, patches, denials and failures of each webhook, and finds:

  - requests that were admitted because a webhook failed
  - webhooks that change the same object again and again
  - two webhooks that revert each other's changes
  - patches that change nothing
  - slow webhooks

With --withheld, audit answers another question: what would hooks in the modes
Warn and Shadow have denied or changed, and where would they have failed? It
counts the requests by webhook, reason, namespace and owner, with an example of
each. The owner is the controller of the object, which the log has at level
Request. Otherwise audit shows the user.

audit reads events of audit.k8s.io as JSON, one per line, as the API server
writes them with --audit-log-path. Files can be compressed with gzip, and "-" is
standard input. The level of the audit policy limits what audit can report:

  Metadata   calls of mutating webhooks, and whether they changed the object;
             denials, failures and audit annotations; the time in webhooks, for
             requests that took more than 500 ms
  Request    also the patches: fields that two webhooks both change, elements
             that are added twice, patches that change nothing

At no level does the API server record a call of a validating webhook that
allowed the request. A request that is in several files counts once. Memory use
does not grow with the size of the logs.

audit skips lines that it cannot read as events, and reports how many. A skipped
line counts as a possibly lost event if it is too long, is not JSON, or is JSON
that could contain an event. An incomplete last line is ignored.

Exit codes:

  0  no error and no warning; with --withheld, no denial and no failure
  1  at least one error or warning; with --withheld, a denial or a failure
  2  no audit event was read; or audit found nothing, but events may be lost
     because it could not read part of a file or skipped lines`,
		Example: `
admitkit audit /var/log/kubernetes/audit.log
admitkit audit audit-*.log.gz audit.log --since 2h -o text -o html=audit.html
ssh control-plane-0 sudo cat /var/log/kubernetes/audit.log | admitkit audit -
admitkit audit audit.log --withheld --since 168h
admitkit audit audit.log --webhook sidecar.example.com --slow 200ms -o json`,
		Args: arguments("FILE..."),
	}
	flags := c.Flags()
	flags.StringVar(&since, "since", "", "skip requests before `TIME`, such as 2006-01-02T15:04:05Z, or 90m for 90 minutes ago")
	flags.StringVar(&until, "until", "", "skip requests at `TIME` and later")
	flags.StringSliceVar(&o.Webhooks, "webhook", nil, "report only on the webhook `NAME`, or CONFIGURATION/NAME; can be repeated")
	flags.BoolVar(&o.Withheld, "withheld", false, "report only what hooks in the modes Warn and Shadow would have done")
	flags.IntVar(&o.Top, "top", o.Top, "show at most `N` rows of each table, and N findings of each kind")
	flags.DurationVar(&o.Slow, "slow", o.Slow, "report requests that wait at least `DURATION` for webhooks")
	flags.IntVar(&o.Again, "again", o.Again, "report a webhook that changes the same object `N` times or more")
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
			return problem.New("the result is incomplete: audit found nothing, but could not read part of the logs: %s", strings.Join(report.Incomplete, "; ")).
				Hint("export the logs again as JSON, one event per line, and check compressed files with gzip -t FILE")
		}
		return nil
	}
	return c
}

// auditOptions checks the options and parses --since and --until.
func auditOptions(o *audit.Options, since, until string, now time.Time) (err error) {
	if o.Since, err = parseTime("since", since, now); err != nil {
		return err
	}
	if o.Until, err = parseTime("until", until, now); err != nil {
		return err
	}
	switch {
	case !o.Since.IsZero() && !o.Until.IsZero() && !o.Since.Before(o.Until):
		return problem.New("--since=%s is not before --until=%s", since, until)
	case o.Top < 1:
		return problem.New("--top=%d is too small: the minimum is 1", o.Top)
	case o.Again < 2:
		return problem.New("--again=%d is too small: the minimum is 2", o.Again)
	case o.Slow <= 0:
		return problem.New("--slow=%s is too small: it must be greater than 0", o.Slow)
	}
	return nil
}

// parseTime parses the value of --since or --until: a time, or a duration before now. For an empty text it returns the
// zero time.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
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
		return fmt.Errorf("unknown output format %q", form)
	})
}
