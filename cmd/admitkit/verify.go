// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"log"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/cli/verify"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

func newVerify(s *screen.Screen) *cobra.Command {
	var o verify.Options
	c := &cobra.Command{
		Use:     "verify [PACKAGE]",
		Short:   "Test that a mutating webhook is safe to call again",
		GroupID: "check",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(args[0])) {
				return nil // the argument is a Go package
			}
			return arguments()(c, args)
		},
		Long: `Test that a mutating webhook, in any language, is safe to call again.

The API server can call a mutating webhook several times for one object: again in
the same request after another webhook's change, at every update, and after a
restore from a backup. verify calls the webhook as the API server does. It
generates objects from your samples, and edits them between two calls as users,
controllers and other webhooks do. It then checks laws, such as "a second call
changes nothing".
For a law that fails, verify reports a minimal object, the cause and a likely
fix. docs/idempotence.md explains the laws and the report.

The webhook must be running: on this machine, or behind "kubectl port-forward".
With PACKAGE, a Go package of hooks, verify builds and runs the hooks itself.
The file of --webhook-configuration gives the operations, kinds, selectors, review
versions and side effects of the webhook. Without --url, verify calls the address
in the clientConfig. With --url, verify ignores the clientConfig, except for the
caBundle if --ca-file is not set. Without a configuration, verify assumes that the
webhook is called for CREATE of the samples' kinds.

-f gives CustomResourceDefinitions, Namespaces with their labels, and sample
objects that the webhook changes. --traffic takes further samples from recordings
of "admitkit record": few and different ones of the calls of this webhook. verify
creates nothing in your cluster.

Between two calls, a real API server on this machine defaults and validates the
objects, if its binaries are installed (see "admitkit apiserver path"). Otherwise
verify does that in process. The same command line makes the same calls in the
same order.

Exit codes:

  0  all laws pass; there may be advice
  1  at least one law fails
  2  no law fails, but verify has no verdict: the webhook cannot be reached, too
     few cases ran, or Ctrl-C ended the run; the results say which`,
		Example: `
admitkit verify --url https://127.0.0.1:9443/mutate --ca-file ca.crt \
    --webhook-configuration config/webhook/manifests.yaml -f config/samples

# two replicas, which must give the same answers, and results for CI
admitkit verify --url https://127.0.0.1:9443/mutate --url https://127.0.0.1:9444/mutate \
    --ca-file ca.crt --webhook-configuration webhooks.yaml -f pod.yaml -o text -o junit=verify.xml

# a webhook of a cluster, after: kubectl -n shop port-forward service/hook 9443:443
kubectl get mutatingwebhookconfiguration hook -o yaml |
    admitkit verify --webhook-configuration - --url https://127.0.0.1:9443/mutate \
    --server-name hook.shop.svc -f pod.yaml

# a dry run must not change the webhook's database
admitkit verify --url https://127.0.0.1:9443/mutate --ca-file ca.crt -f pod.yaml \
    --observe 'psql -Atc "select count(*) from tokens"'

# several webhooks together, in the order in which the API server calls them
admitkit verify --chain mesh.yaml --chain token.yaml \
    --url mesh.example.com=https://127.0.0.1:9443/inject --url token.example.com=https://127.0.0.1:9444/ \
    --ca-file ca.crt -f pod.yaml

# a Go package of hooks written with admitkit
admitkit verify ./hooks -f config/samples`,
	}
	outputs := outputFlag(c, "text", "json", "junit", "html")
	verifyFlags(c, &o)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := outputs.Check(s); err != nil {
			return err
		}
		if len(args) > 0 {
			if c.Flags().Changed("hook") {
				return problem.New("%s and --hook both name a package of hooks", args[0]).Hint("%s %s", c.CommandPath(), args[0])
			}
			if err := c.Flags().Set("hook", args[0]); err != nil {
				return err
			}
		}
		if err := exclusive(c, [][]string{{"server", "in-process"}, {"chain", "webhook-configuration", "hook"}, {"chain", "webhook"}, {"hook", "url"}}); err != nil {
			return err
		}
		o.Line = verifyLine(c)
		quietLibraries()
		defer moreMemory()()
		result, err := verify.Run(c.Context(), s, o)
		if err != nil {
			return err
		}
		if err := outputs.Write(s, result.Write); err != nil {
			return err
		}
		return result.Err()
	}
	return c
}

// exclusive returns an error if two flags of one group are set.
func exclusive(c *cobra.Command, groups [][]string) error {
	for _, group := range groups {
		first := ""
		for _, name := range group {
			switch {
			case !c.Flags().Changed(name):
			case first == "":
				first = name
			default:
				return problem.New("--%s and --%s exclude each other", first, name).Hint("%s --help", c.CommandPath())
			}
		}
	}
	return nil
}

// quietLibraries discards the logs of the Kubernetes libraries, and the messages of net/http that withoutIdleResponses
// drops.
func quietLibraries() {
	klog.SetLogger(logr.Discard())
	log.SetOutput(withoutIdleResponses{os.Stderr})
}

// withoutIdleResponses drops the message of net/http's client about a response on an idle connection. A server sends
// such a response before it closes the connection.
type withoutIdleResponses struct{ io.Writer }

func (w withoutIdleResponses) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("Unsolicited response received on idle HTTP channel")) {
		return len(p), nil
	}
	return w.Writer.Write(p)
}

// moreMemory makes the garbage collector run less often, because verify allocates many short-lived objects. The
// returned function restores the previous setting.
func moreMemory() func() {
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

func verifyFlags(c *cobra.Command, o *verify.Options) {
	f := c.Flags()
	f.SortFlags = false // verifyLine prints the flags in this order, the most important first
	f.StringArrayVar(&o.URLs, "url", nil, "URL of the webhook; with --chain, NAME=URL; can be repeated for replicas, which must give the same answers")
	f.StringVar(&o.CAFile, "ca-file", "", "PEM file with the CA of the webhook's server (default the caBundle of the configuration, or the system's CAs)")
	f.StringArrayVar(&o.Configurations, "webhook-configuration", nil, "file with the MutatingWebhookConfiguration, or - for standard input (default the one in the files of -f)")
	f.StringArrayVarP(&o.Files, "filename", "f", nil, "file or folder with samples, CustomResourceDefinitions and Namespaces; can be repeated")
	f.StringArrayVar(&o.Traffic, "traffic", nil, "recording whose objects are samples, or folder of recordings; can be repeated")
	f.StringVar(&o.Webhook, "webhook", "", "name of the webhook, if the configuration has several (default the one whose path is that of --url)")
	f.StringArrayVar(&o.Chain, "chain", nil, "file with configurations whose webhooks are all tested together; can be repeated")
	f.StringVar(&o.Hook, "hook", "", "Go package of hooks, such as ./hooks, that verify builds and runs; the same as the argument PACKAGE")
	f.StringVar(&o.Exceptions, "exceptions", "", "YAML file with failures that are intended: a list of path, law and reason")
	f.StringVar(&o.Observe, "observe", "", "shell command whose output must not change during a dry run")
	f.StringSliceVar(&o.Laws, "law", nil, "law to test, such as L1 (default all laws); can be repeated")
	f.StringSliceVar(&o.Without, "without", nil, "law to skip; can be repeated")
	f.Int64Var(&o.Seed, "seed", idempotence.DefaultSeed, "random seed of the generated objects and edits")
	f.IntVar(&o.Objects, "objects", idempotence.DefaultObjects, "number of objects to generate")
	f.DurationVar(&o.Budget, "budget", idempotence.DefaultBudget, "time limit of the run; laws without a verdict at its end are inconclusive")
	f.StringVar(&o.RunAgain, "run-again", "", "`COMMAND` that the report shows for repeating the run; for programs that wrap verify (default this command line)")
	f.BoolVar(&o.Server, "server", false, "require a real API server between two calls")
	f.BoolVar(&o.InProcess, "in-process", false, "do not use a real API server")
	f.StringVar(&o.ServerName, "server-name", "", "DNS name to expect in the server's certificate (default the host of the URL)")
	f.StringVar(&o.ClientCert, "client-cert", "", "file with a client certificate, for webhooks that authenticate the API server")
	f.StringVar(&o.ClientKey, "client-key", "", "file with the key of the client certificate")
	f.StringVar(&o.TokenFile, "token-file", "", "file with a bearer token, for webhooks that authenticate the API server")
	f.StringVar(&o.Store, "store", "", "folder for failing cases; verify stores new ones in it and first tests those of earlier runs")
	f.StringVar(&o.Replay, "replay", "", "file with a failing case that --store wrote; verify tests only this case")
	for _, name := range []string{"ca-file", "webhook-configuration", "filename", "chain", "exceptions", "client-cert", "client-key", "token-file", "replay", "traffic"} {
		_ = c.MarkFlagFilename(name) // fails only if the flag does not exist
	}
	_ = c.MarkFlagDirname("store")
	_ = c.MarkFlagDirname("hook")
	laws := make([]string, len(idempotence.Laws))
	for i, law := range idempotence.Laws {
		laws[i] = string(law) + "\t" + law.Title() + ": " + law.Statement()
	}
	for _, name := range []string{"law", "without"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(laws, cobra.ShellCompDirectiveNoFileComp))
	}
}

// verifyLine returns the command line without the flags that differ between runs, such as --seed.
func verifyLine(c *cobra.Command) string {
	words := []string{c.CommandPath()}
	c.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		switch f.Name {
		case "seed", "objects", "replay", "output", "quiet", "color":
			return
		}
		for _, value := range values {
			word := "--" + f.Name
			if f.Name == "filename" {
				word = "-f"
			}
			if f.Value.Type() == "bool" {
				words = append(words, strings.TrimSuffix(word+"="+value, "=true"))
				continue
			}
			words = append(words, word, textutil.ShellQuote(value))
		}
	})
	return strings.Join(words, " ")
}
