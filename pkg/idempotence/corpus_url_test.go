// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"flag"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/test/corpus"
)

// byURLShare is n if the tests in this file use every n-th webhook of package corpus. The tests of cmd/admitkit serve
// all broken webhooks.
var byURLShare = flag.Int("url-share", shareByURL, "which part of the corpus is tested behind servers: 1 for all, 2 for half of it")

// replicasOfCase is the number of servers for each webhook of the corpus.
const replicasOfCase = 2

// byURL serves a webhook of package corpus with TLS, by several servers. It returns a subject that knows only their
// URLs.
func byURL(t *testing.T, c corpus.Case) Subject {
	t.Helper()
	var client *http.Client
	urls := make([]string, replicasOfCase)
	for i := range urls {
		server := httptest.NewUnstartedServer(c.New())
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // some of the webhooks panic
		server.StartTLS()
		t.Cleanup(server.Close)
		client, urls[i] = server.Client(), server.URL // all servers have the same certificate
	}
	return URL(c.Webhook, client, urls...)
}

// inProcessOnly lists webhooks whose bugs a run by URL cannot find. T21, M55 and M61: the harness reads the
// trigger, another profile, or another annotation in their Go source. M46: a concurrent request overwrites its state, which the harness sees only by
// comparison with a new instance.
var inProcessOnly = []string{"T21", "M46", "M55", "M61"}

func TestFindsAllPatternsByURL(t *testing.T) {
	for _, c := range shareOf(corpus.Patterns(), *byURLShare) {
		if slices.ContainsFunc(inProcessOnly, func(number string) bool { return strings.HasPrefix(c.Name, number+" ") }) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			report := runSubject(t, byURL(t, c), c, Options{Objects: objectsByURL}, publicOnly(c)...)
			if !finds(report, c) && !(c.Advice && report.OK()) {
				t.Errorf("no violation of %v:\n%s", c.Laws, text(report))
			}
		})
	}
}

// publicOnly returns the families of inputs to disable for a webhook of package corpus that runs behind a server. For
// the common patterns (P01 to P26) it returns the slowest families, which none of these patterns needs. For other
// webhooks it returns none.
func publicOnly(c corpus.Case) []explore.Family {
	if c.Name[0] == 'P' {
		return ensuring
	}
	return nil
}

func TestFlagsNoLookalikeByURL(t *testing.T) {
	for _, c := range shareOf(corpus.Lookalikes(), *byURLShare) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if report := runSubject(t, byURL(t, c), c, Options{Objects: objectsByURL / 2}, ensuring...); !report.OK() {
				t.Errorf("a correct webhook is flagged:\n%s", text(report))
			}
		})
	}
}
