// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// words are what the harness, which is a Go package, says of its options, and what is said here.
var words = [...]string{
	"give samples that switch it on, see Samples, or say with AllowInconclusive why there are none", "give samples that switch it on, with -f",
	"give a sample of the objects that it is for, see Samples, or the definition of the custom resource, see CRDs", "give a sample of the objects that it is for, or the definition of the custom resource, with -f",
	"give it more with Budget, or take fewer Objects", "give it more with --budget, or take fewer --objects",
	"is not known without Observe", "is not known without --observe",
	"left out with Without", "left out by the command line",
	"or give its definition with CRDs", "or give its definition with -f",
	"declare it with Rivals, or delete the file", "delete the file",
	"it was found with TimeGaps: give that option, or delete the file", "it was found in a Go test, with TimeGaps: run that",
	"cannot test the webhook: ", "",
	"give URL a client with the caBundle as RootCAs in its tls.Config", "give --ca-file",
	"call it by one of them, or set ServerName in the client's tls.Config", "give --server-name",
}

// flagWords says with flags what the harness says with options.
func flagWords(text string) string { return strings.NewReplacer(words[:]...).Replace(text) }

// inFlags is a report that speaks of flags.
func inFlags(r *idempotence.Report) *idempotence.Report {
	r.Incomplete = flagWords(r.Incomplete)
	for i := range r.Laws {
		r.Laws[i].Reason = flagWords(r.Laws[i].Reason)
	}
	for i := range r.Replayed {
		r.Replayed[i].Reason = flagWords(r.Replayed[i].Reason)
	}
	for i := range r.Notes {
		r.Notes[i] = flagWords(r.Notes[i])
	}
	return r
}

// undecided is the error of a run that broke no law, and cannot say that all hold.
func undecided(r *idempotence.Report) error {
	err := problem.New("no law was found broken, but too little could be tried to tell that all hold")
	switch {
	case strings.Contains(r.Incomplete, "the server broke the connection"):
		return problem.New("no law was found broken, but the server broke too many connections to tell that all is well").
			Hint("the webhook's log may say why, or that of what is in front of it")
	case strings.Contains(r.Incomplete, "would accept none of the objects"):
		return err.Hint("kubectl apply --dry-run=server -f FILE, for what is wrong with the samples")
	case strings.Contains(r.Incomplete, "--budget"):
		return err.Hint("--budget 10m, or --objects 10")
	case strings.Contains(r.Incomplete, "with -f"):
		return err.Hint("-f FILE, with an object that the webhook changes")
	}
	return err
}
