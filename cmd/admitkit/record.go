// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/record"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newRecord(s *screen.Screen) *cobra.Command {
	var o record.Options
	c := &cobra.Command{
		Use:     "record --to URL",
		Short:   "Record the calls of a webhook, without their secrets",
		GroupID: "check",
		Long: `Record the calls of a webhook in any language, without their secrets. record is a
reverse proxy: the API server calls it instead of the webhook, and it passes
each call on. A slow or full disk does not delay calls: record then drops the
recordings of calls, and counts them.

Each call is a line of JSON in a file compressed with gzip: the AdmissionReview,
the answer, the outcome and the latency. Look at them with:

  zcat recordings/*.gz | jq .

record keeps the first calls of each combination of path, kind, operation,
outcome and changed fields (--novel). It keeps the share --rate of the other
calls, up to --max-bytes-per-second. It keeps --max-files files, and deletes the
oldest one.

Secrets are replaced by pseudonyms of the same shape, and equal values have
equal pseudonyms. Secrets are: data of Secrets and ConfigMaps, values of
environment variables, userInfo.extra, values of fields, headers and flags with
names of credentials, private keys, tokens, passwords in URLs, and all copies of
these in annotations, messages and patches. Name further fields with
--secret-path. HTTP headers are not recorded. Other data, such as names of users, is recorded.

The certificate and its key are read again when they change. Without
--tls-cert, record serves HTTP, for a proxy in front of it that terminates TLS.

SIGTERM or Ctrl-C ends record, after the calls in flight.`,
		Example: `
admitkit record --listen :9443 --tls-cert tls.crt --tls-key tls.key \
    --to https://127.0.0.1:8443 --ca-file ca.crt --output /var/lib/recordings
admitkit record --listen 127.0.0.1:9443 --to http://127.0.0.1:8080
admitkit record --to https://webhook.shop.svc --rate 0.01 --key-file key \
    --secret-path 'spec.users[*].pin' --secret-path 'metadata.annotations[example.com/pin]'`,
		Args: arguments(),
		RunE: func(c *cobra.Command, _ []string) error { return record.Run(c.Context(), s, o) },
	}
	f := c.Flags()
	f.SortFlags = false // the most important first
	f.StringVar(&o.To, "to", "", "`URL` of the webhook's server; the path of each call is added to it")
	f.StringVar(&o.Listen, "listen", ":9443", "`ADDRESS` to listen at")
	f.StringVar(&o.TLSCert, "tls-cert", "", "PEM file with the certificate that the API server trusts, usually that of the webhook")
	f.StringVar(&o.TLSKey, "tls-key", "", "PEM file with the key of the certificate")
	f.StringVar(&o.CAFile, "ca-file", "", "PEM file with the CA of the webhook's server (default the system's CAs)")
	f.StringVar(&o.ServerName, "server-name", "", "DNS name to expect in the certificate of the webhook's server (default the host of --to)")
	f.StringVar(&o.Record.Dir, "output", "recordings", "folder for the files; record creates it")
	f.Float64Var(&o.Rate, "rate", 1, "`SHARE` of the calls to record, from 0 to 1")
	f.IntVar(&o.Record.Novel, "novel", 3, "number of calls of each combination that are always recorded")
	f.StringVar(&o.Speed, "max-bytes-per-second", "64Ki", "record at most this much of the calls chosen by --rate; the `SIZE` is before compression")
	f.StringVar(&o.FileSize, "max-file-size", "64Mi", "begin a new file at this `SIZE`")
	f.DurationVar(&o.Record.MaxFileAge, "max-file-age", 24*time.Hour, "begin a new file at this age")
	f.IntVar(&o.Record.MaxFiles, "max-files", 10, "keep at most this many files")
	f.StringArrayVar(&o.Record.SecretPaths, "secret-path", nil, "field `PATH` of objects whose values are secret, such as spec.users[*].pin; can be repeated")
	f.StringVar(&o.Record.KeyFile, "key-file", "", "file with the key of the pseudonyms; record creates it (default a new key for each run)")
	f.BoolVar(&o.Record.Unredacted, "unredacted", false, "record secrets as they are")
	f.StringVar(&o.MetricsListen, "metrics-listen", "", "`ADDRESS` at which to serve Prometheus metrics, at /metrics")
	f.DurationVar(&o.ShutdownDelay, "shutdown-delay", 0, "time to go on serving after SIGTERM, until no API server calls this replica")
	_ = c.MarkFlagDirname("output") // fails only if the flag does not exist
	return c
}
