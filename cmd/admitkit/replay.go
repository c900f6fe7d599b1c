// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/replay"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newReplay(s *screen.Screen) *cobra.Command {
	var o replay.Options
	c := &cobra.Command{
		Use:     "replay FILE|DIR...",
		Short:   "Send recorded calls to another version of a webhook, and report what changes",
		GroupID: "check",
		Long: `Send recorded calls to another version of a webhook, in any language, and report
what changes: decisions, denials, patched objects, and failures.

The files are those of "admitkit record" or of pkg/record. The new version is a
server (--url) or a Go package of hooks (--hook). It is compared with the
recorded answers or, with --against, with an old version that gets the same
calls. replay calls nothing else.

Patches are compared by their effect: replay applies both to the object, and
compares the objects. For a hook that only recorded its decisions (mode Shadow or
Warn), these decisions count. Warnings and audit annotations that differ are
notes, not changes. Changes are grouped by their cause, with one example each.

Recordings have pseudonyms in place of secrets. With --key-file, the key of the
recorder, secrets that the webhook sets are compared, too. Give the same
--secret-path as for record.

With --rate, replay is a load test: it sends the calls at the recorded times (1x),
faster (10x), at a number per second (250/s), or as fast as the connections allow
(max), and reports latencies instead of changes. Then the exit code is 1 if a call
failed, and 2 if the rate was not reached.

Exit codes:

  0  nothing changes
  1  at least one call changes
  2  no call could be read or compared; or nothing changes, but parts of the
     recordings could not be read`,
		Example: `
admitkit replay recordings --url https://127.0.0.1:9443 --ca-file ca.crt
admitkit replay recordings --hook ./hooks -o text -o junit=replay.xml
admitkit replay recordings --url https://127.0.0.1:9443 --against https://127.0.0.1:9444 \
    --ca-file ca.crt -o html=replay.html
admitkit replay recordings --url https://127.0.0.1:9443 --ca-file ca.crt \
    --rate 10x --connections 20 --duration 1m
admitkit replay recordings/*.gz --hook ./hooks --webhook images.example.com --key-file key`,
		Args: arguments("FILE|DIR..."),
	}
	f := c.Flags()
	f.SortFlags = false // the most important first
	f.StringVar(&o.URL, "url", "", "`URL` of the new version; the path of each call is added to a URL without a path")
	f.StringVar(&o.Hook, "hook", "", "Go package of hooks, the new version")
	f.StringVar(&o.Against, "against", "", "`URL|PACKAGE` of the old version (default the recorded answers)")
	f.StringVar(&o.CAFile, "ca-file", "", "PEM file with the CA of the servers (default the system's CAs)")
	f.StringVar(&o.ServerName, "server-name", "", "DNS name to expect in the servers' certificates (default the host of the URL)")
	f.StringSliceVar(&o.Webhooks, "webhook", nil, "replay only the calls of the webhook with this `NAME` or URL path; can be repeated")
	f.StringVar(&o.KeyFile, "key-file", "", "file with the key of the recorder's pseudonyms")
	f.StringArrayVar(&o.SecretPaths, "secret-path", nil, "field `PATH` whose values the recorder replaced, such as spec.users[*].pin; can be repeated")
	f.IntVar(&o.Workers, "connections", 8, "number of calls at the same time")
	f.StringVar(&o.Rate, "rate", "", "`RATE` of a load test: 1x, 10x, 250/s or max")
	f.DurationVar(&o.Duration, "duration", 0, "length of a load test; the recording is repeated (default each call once)")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Second, "time limit of a call")
	outputs := outputFlag(c, "text", "json", "junit", "html")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := outputs.Check(s); err != nil {
			return err
		}
		if err := exclusive(c, [][]string{{"url", "hook"}}); err != nil {
			return err
		}
		o.Files = args
		if o.Rate != "" {
			if err := outputs.Only("a load test", "text", "json"); err != nil {
				return err
			}
			report, err := replay.RunLoad(c.Context(), s, o)
			if err != nil {
				return err
			}
			if err := outputs.Write(s, report.Write); err != nil {
				return err
			}
			return report.Err()
		}
		report, err := replay.Run(c.Context(), s, o)
		if err != nil {
			return err
		}
		if err := outputs.Write(s, report.Write); err != nil {
			return err
		}
		return report.Err()
	}
	return c
}
