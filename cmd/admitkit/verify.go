// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/cli/verify"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

func newVerify(s *screen.Screen) *cobra.Command {
	var o verify.Options
	c := &cobra.Command{
		Use:     "verify",
		Short:   "Hold a mutating webhook against the laws of reinvocation",
		GroupID: "judge",
		Args:    arguments(),
		Long: `Hold a mutating webhook, in any language, against the laws of reinvocation.

The API server may call a mutating webhook several times for what is one object
to its user: again in the same request, when another webhook changed something,
at every update, after a restore. verify calls the webhook as the API server
does, with objects that it makes of your samples, and puts other parties' edits
in between. What breaks a law is made small and reported with its cause and
what usually mends it. docs/idempotence.md explains the laws and the report.

The webhook is served somewhere: by a program on this machine, or behind
"kubectl port-forward". --webhook-configuration says what it is called for:
operations, kinds, selectors, review versions, side effects. Without --url, its
clientConfig says where it is served; with --url, only the caBundle of it
counts, and that only without --ca-file. Without a configuration, the webhook
is taken to be called for CREATE of the kinds of the samples.

-f names objects: samples that the webhook changes, definitions of custom
resources, and namespaces with their labels. Nothing is created anywhere: the
webhook gets the objects, and nobody else.

Between two calls, objects are defaulted and validated by a real API server if
there is one on this machine (see "admitkit apiserver path"), and in process
otherwise. The same command line makes the same calls in the same order.

Exit codes: 0 all laws hold, 1 a law is broken, 2 it cannot be told: the webhook
cannot be reached, or too little could be tried, which the results say. So it is
after Ctrl-C, with the results until then. A law that is broken counts for more
than one of which too little is known. Advice alone is 0.`,
		Example: `
admitkit verify --url https://127.0.0.1:9443/mutate --ca-file ca.crt \
    --webhook-configuration config/webhook/manifests.yaml -f config/samples

# two replicas, which must agree; and results for CI
admitkit verify --url https://127.0.0.1:9443/mutate --url https://127.0.0.1:9444/mutate \
    --ca-file ca.crt --webhook-configuration webhooks.yaml -f pod.yaml -o text -o junit=verify.xml

# in a cluster: after kubectl -n shop port-forward service/hook 9443:443
kubectl get mutatingwebhookconfiguration hook -o yaml |
    admitkit verify --webhook-configuration - --url https://127.0.0.1:9443/mutate \
    --server-name hook.shop.svc -f pod.yaml

# what it writes elsewhere must not change in a dry run
admitkit verify --url https://127.0.0.1:9443/mutate --ca-file ca.crt -f pod.yaml \
    --observe 'psql -Atc "select count(*) from tokens"'

# several webhooks together, in the API server's order
admitkit verify --chain mesh.yaml --chain token.yaml \
    --url mesh.example.com=https://127.0.0.1:9443/inject --url token.example.com=https://127.0.0.1:9444/ \
    --ca-file ca.crt -f pod.yaml

# hooks written with admitkit
admitkit verify --hook ./hooks -f config/samples`,
	}
	outputs := outputFlag(c, "text", "json", "junit", "html")
	verifyFlags(c, &o)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := outputs.Check(s); err != nil {
			return err
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

// exclusive refuses flags of one group together.
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

// quietLibraries keeps what Kubernetes' libraries log away from what is printed.
func quietLibraries() { klog.SetLogger(logr.Discard()) }

// moreMemory has the garbage collector run less often: a run makes many small objects and keeps few. The function
// that it returns undoes that.
func moreMemory() func() {
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

func verifyFlags(c *cobra.Command, o *verify.Options) {
	f := c.Flags()
	f.SortFlags = false // those that matter first, and in the line that makes a run again
	f.StringArrayVar(&o.URLs, "url", nil, "URL of the webhook; several are replicas, which must agree; with --chain: NAME=URL")
	f.StringVar(&o.CAFile, "ca-file", "", "file with the CA of the webhook's server, PEM (default the caBundle of the configuration, or what this machine trusts)")
	f.StringArrayVar(&o.Configurations, "webhook-configuration", nil, "file with the MutatingWebhookConfiguration, - for standard input (default one among the objects of -f)")
	f.StringArrayVarP(&o.Files, "filename", "f", nil, "file or folder with samples, CustomResourceDefinitions and Namespaces; may be repeated")
	f.StringVar(&o.Webhook, "webhook", "", "name of the webhook, if the configuration has several (default the one at the path of --url)")
	f.StringArrayVar(&o.Chain, "chain", nil, "file with configurations of which all webhooks are tested together; may be repeated")
	f.StringVar(&o.Hook, "hook", "", "Go package with hooks of admitkit, which is built and served, such as ./hooks")
	f.StringVar(&o.Exceptions, "exceptions", "", "YAML file with what is intended: a list of path, law and reason")
	f.StringVar(&o.Observe, "observe", "", "command for sh whose output must not change over a dry run")
	f.StringSliceVar(&o.Laws, "law", nil, "law to test, such as L1 (default all); may be repeated")
	f.StringSliceVar(&o.Without, "without", nil, "law to leave out; may be repeated")
	f.Int64Var(&o.Seed, "seed", idempotence.DefaultSeed, "what the objects and edits are made of: another seed, other objects")
	f.IntVar(&o.Objects, "objects", idempotence.DefaultObjects, "how many objects to make")
	f.DurationVar(&o.Budget, "budget", idempotence.DefaultBudget, "how long it may take; what is not done then is inconclusive")
	f.BoolVar(&o.Server, "server", false, "use a real API server between two calls, or fail")
	f.BoolVar(&o.InProcess, "in-process", false, "use no real API server")
	f.StringVar(&o.ServerName, "server-name", "", "name that the server's certificate has to be for (default the host of the URL)")
	f.StringVar(&o.ClientCert, "client-cert", "", "file with a client certificate, for webhooks that want to know who calls")
	f.StringVar(&o.ClientKey, "client-key", "", "file with its key")
	f.StringVar(&o.TokenFile, "token-file", "", "file with a bearer token, for the same")
	f.StringVar(&o.Store, "store", "", "folder in which cases that fail are kept, and tried first by the next run")
	f.StringVar(&o.Replay, "replay", "", "file of such a folder: try that case, and nothing else")
	for _, name := range []string{"ca-file", "webhook-configuration", "filename", "chain", "exceptions", "client-cert", "client-key", "token-file", "replay"} {
		_ = c.MarkFlagFilename(name) // the flag is there
	}
	_ = c.MarkFlagDirname("store")
	_ = c.MarkFlagDirname("hook")
	laws := make([]string, len(idempotence.Laws))
	for i, law := range idempotence.Laws {
		laws[i] = string(law) + "\t" + law.Statement()
	}
	for _, name := range []string{"law", "without"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(laws, cobra.ShellCompDirectiveNoFileComp))
	}
}

// verifyLine is the command line without what differs from run to run.
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
			words = append(words, word, verify.Quoted(value))
		}
	})
	return strings.Join(words, " ")
}
