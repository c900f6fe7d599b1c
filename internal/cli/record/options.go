// SPDX-License-Identifier: Apache-2.0

// Package record is the command "admitkit record": a reverse proxy that records the calls of a webhook.
package record

import (
	"crypto/tls"
	"math"
	"net"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/internal/cli/trust"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/record"
)

// Options are the flags of the command.
type Options struct {
	Listen, To         string
	TLSCert, TLSKey    string
	CAFile, ServerName string
	MetricsListen      string
	ShutdownDelay      time.Duration
	Speed, FileSize    string // quantities
	Record             record.Options
	Rate               float64
	target             *url.URL
	tls                *tls.Config // of the connections to the webhook; nil for http
}

// check validates and parses the options. Its errors name the flag and the fix.
func (o *Options) check() (err error) {
	if o.To == "" {
		return problem.New("--to is missing").Hint("admitkit record --to https://127.0.0.1:8443 --ca-file FILE, with the URL of the webhook's server")
	}
	o.target, err = url.Parse(o.To)
	switch {
	case err != nil || o.target.Host == "" || o.target.Scheme != "https" && o.target.Scheme != "http":
		return problem.New("--to %s is not a URL like https://127.0.0.1:8443", o.To)
	case o.target.User != nil || o.target.RawQuery != "" || o.target.Fragment != "":
		return problem.New("--to %s: the URL of a webhook must not have a query, a fragment or a user", o.To)
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return problem.New("--tls-cert and --tls-key must be set together")
	case o.Rate < 0 || o.Rate > 1 || math.IsNaN(o.Rate):
		return problem.New("--rate=%v is not a share from 0 to 1", o.Rate)
	case o.Record.Novel < 0:
		return problem.New("--novel=%d is negative: the minimum is 0", o.Record.Novel)
	case o.Record.MaxFiles < 1:
		return problem.New("--max-files=%d is too small: the minimum is 1", o.Record.MaxFiles)
	case o.Record.MaxFileAge <= 0:
		return problem.New("--max-file-age=%s is too short: it must be greater than 0", o.Record.MaxFileAge)
	case o.ShutdownDelay < 0:
		return problem.New("--shutdown-delay=%s is negative: use a time such as 10s", o.ShutdownDelay)
	}
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		return problem.New("--listen %s is not an address like :9443 or 127.0.0.1:9443", o.Listen)
	}
	if err := o.checkSizes(); err != nil {
		return err
	}
	return o.checkTLS()
}

func (o *Options) checkSizes() (err error) {
	if o.Record.MaxBytesPerSecond, err = parseSize("max-bytes-per-second", o.Speed); err != nil {
		return err
	}
	if o.Record.MaxFileBytes, err = parseSize("max-file-size", o.FileSize); err != nil {
		return err
	}
	if o.Record.Rate = o.Rate; o.Rate == 0 {
		o.Record.Rate = -1
	}
	if o.Record.Novel == 0 {
		o.Record.Novel = -1
	}
	return nil
}

func parseSize(flag, text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Value() < 1 {
		return 0, problem.New("--%s=%s is not a size like 64Mi", flag, text)
	}
	return q.Value(), nil
}

// checkTLS reads the CA of the webhook.
func (o *Options) checkTLS() (err error) {
	if o.target.Scheme == "http" {
		if o.CAFile != "" || o.ServerName != "" {
			return problem.New("--ca-file and --server-name need an https URL in --to")
		}
		return nil
	}
	o.tls, err = trust.Config(o.CAFile, o.ServerName)
	return err
}
