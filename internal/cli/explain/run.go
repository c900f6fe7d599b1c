// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

// Options are the flags of the command.
type Options struct {
	Ask
	Files, Configurations, OldFiles []string
	// Traffic are recordings whose requests are explained. Against are the webhook configurations to compare with,
	// instead of the webhooks that were called in the recording.
	Traffic, Against []string
	Cluster          bool
	Where            cluster.Flags
	User             string
	Groups           []string
	// UID and Extra are unknown if nil. Entries of Extra have the form KEY=VALUE.
	UID             *string
	Extra           []string
	NamespaceLabels *string // nil if the flag is not set; empty for a namespace without labels
	Allow           []string
	Kubernetes      string
	// Webhook is the name of the webhook to explain in detail.
	Webhook               string
	Expected, NotExpected []string
}

// Run reads the input and returns the report.
func Run(ctx context.Context, o *Options, s *screen.Screen) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	read := o.begin(ctx, s)
	all, err := read(o.Files)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, problem.New("there is no object in %s", strings.Join(o.Files, ", "))
	}
	if o.Old, err = read(o.OldFiles); err != nil {
		return nil, err
	}
	facts, err := o.facts(ctx, all, read)
	if err != nil {
		return nil, err
	}
	report, err := facts.Explain(ctx, all, o.Ask)
	if err != nil {
		return nil, err
	}
	return report, o.known(facts)
}

// begin silences the API server's code, which would log to standard error. It returns a function that reads files.
func (o *Options) begin(ctx context.Context, s *screen.Screen) func(paths []string) ([]*objects.Object, error) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	noted := map[string]bool{}
	return func(paths []string) ([]*objects.Object, error) {
		return objects.Read(ctx, paths, s.In, func(format string, args ...any) {
			if note := fmt.Sprintf(format, args...); !noted[note] { // the same folder can be read twice
				noted[note] = true
				s.Note("%s", note)
			}
		})
	}
}

// check validates the flags and parses those that have structure.
func (o *Options) check() error {
	switch {
	case len(o.Against) > 0 && len(o.Traffic) == 0:
		return problem.New("--against compares the requests of recordings").Hint("--traffic FILE")
	case len(o.Files) == 0 && len(o.Traffic) == 0:
		return problem.New("there is no object to explain").Hint("-f pod.yaml").Hint("kubectl get pod NAME -o yaml | admitkit explain -f - --cluster --operation DELETE")
	case len(o.Configurations) == 0 && !o.Cluster:
		return problem.New("there are no webhook configurations or admission policies").Hint("--cluster, for those of the current kubeconfig's cluster").Hint("--webhook-configuration FILE|DIR, with webhook configurations or policies")
	case o.User == "" && len(o.Groups) > 0:
		return problem.New("--group needs --user").Hint("--user NAME")
	case o.User == "" && (o.UID != nil || len(o.Extra) > 0):
		return problem.New("--user-uid and --user-extra need --user").Hint("--user NAME")
	}
	if o.User != "" {
		o.Ask.User = &User{Name: o.User, Groups: o.Groups, UID: o.UID}
		for _, extra := range o.Extra {
			key, value, ok := strings.Cut(extra, "=")
			if !ok || key == "" {
				return problem.New("--user-extra %s: want KEY=VALUE", extra)
			}
			if o.Ask.User.Extra == nil {
				o.Ask.User.Extra = map[string][]string{}
			}
			key = strings.ToLower(key) // as the API server does
			o.Ask.User.Extra[key] = append(o.Ask.User.Extra[key], value)
		}
	}
	if o.NamespaceLabels != nil {
		set, err := labels.ConvertSelectorToLabelsMap(*o.NamespaceLabels)
		if err != nil {
			return problem.New("--namespace-labels %s: labels have the form KEY=VALUE,KEY=VALUE", *o.NamespaceLabels).Hint("--namespace-labels team=web,env=prod")
		}
		o.Ask.NamespaceLabels = set
	}
	if o.Kubernetes != "" {
		o.Kubernetes = strings.TrimPrefix(o.Kubernetes, "v")
		var major, minor int
		if n, _ := fmt.Sscanf(o.Kubernetes, "%d.%d", &major, &minor); n != 2 || major != 1 {
			return problem.New("--kubernetes %s: want a version such as 1.37", o.Kubernetes)
		}
		o.Kubernetes = fmt.Sprintf("%d.%d", major, minor)
	}
	return nil
}

func (o *Options) facts(ctx context.Context, all []*objects.Object, read func([]string) ([]*objects.Object, error)) (*Facts, error) {
	var configurations []*objects.Object
	var err error
	if len(o.Configurations) > 0 {
		if configurations, err = read(o.Configurations); err != nil {
			return nil, err
		}
	}
	var w *Facts
	if o.Cluster {
		w, err = FromCluster(ctx, o.Where, configurations, all)
	} else {
		w, err = FromFiles(configurations, all)
	}
	if err != nil {
		return nil, err
	}
	if o.Kubernetes != "" {
		w.Kubernetes = o.Kubernetes
	}
	if len(o.Allow) > 0 {
		return w, w.Allow(o.Allow)
	}
	return w, nil
}

// known returns an error if a flag names a webhook that does not exist.
func (o *Options) known(w *Facts) error {
	var names []string
	for _, c := range w.mutating {
		for _, h := range c.Webhooks {
			names = append(names, h.Name)
		}
	}
	for _, c := range w.validating {
		for _, h := range c.Webhooks {
			names = append(names, h.Name)
		}
	}
	for _, name := range slices.Concat([]string{o.Webhook}, o.Expected, o.NotExpected) {
		if name != "" && !slices.Contains(names, name) {
			slices.Sort(names)
			err := problem.New("there is no webhook %s", name)
			if names = slices.Compact(names); len(names) == 0 {
				return err
			}
			return err.Hint("choose one of %s", strings.Join(names[:min(5, len(names))], ", "))
		}
	}
	return nil
}

// Verdict returns the error that sets the exit code: an expectation that failed, or an unknown decision.
func (o *Options) Verdict(r *Report) error {
	if len(o.Expected)+len(o.NotExpected) > 0 {
		return o.expectations(r)
	}
	webhooks, objects := r.unknown(o.Webhook)
	var err *problem.Error
	switch {
	case len(webhooks)+objects == 0:
		return o.policiesVerdict(r)
	case len(webhooks) == 0:
		return problem.New("cannot explain %d of %d objects", objects, len(r.Objects))
	case objects == 0:
		err = problem.New("it is unknown whether %s", areCalled(len(webhooks)))
	default:
		err = problem.New("cannot explain %d of %d objects, and it is unknown whether %s", objects, len(r.Objects), areCalled(len(webhooks)))
	}
	if name := r.unknownNamespace(o.Webhook); name != "" {
		err = err.Hint("--namespace-labels KEY=VALUE,..., or -f with the Namespace %s, for its labels", name)
	}
	if o.Webhook == "" {
		err = err.Hint("--webhook %s  # shows what is unknown", webhooks[0])
	}
	return err
}

// policiesVerdict returns an error if the effect of a policy is unknown, unless one webhook is explained.
func (o *Options) policiesVerdict(r *Report) error {
	var names []string
	for i := range r.Objects {
		for _, p := range r.Objects[i].Policies {
			if name := p.kind() + " " + p.Name; p.Applies == Unknown && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 || o.Webhook != "" {
		return nil
	}
	return problem.New("the effect of %s is unknown", list(names, "and")).Hint("-w FILE with the bindings and parameters, --allow, or --namespace-labels, as the lines above say")
}

func areCalled(n int) string {
	if n == 1 {
		return "1 webhook is called"
	}
	return fmt.Sprintf("%d webhooks are called", n)
}

// expectations returns an error with a sentence for each expectation that failed, or nil.
func (o *Options) expectations(r *Report) error {
	var failed, unknown []string
	look := func(name string, want Called) {
		for _, object := range r.Objects {
			if object.Error != "" {
				unknown = append(unknown, object.Object)
			}
			for _, w := range object.Webhooks {
				switch {
				case w.Name != name || w.Called == want:
				case w.Called == Unknown:
					unknown = append(unknown, name+" for "+object.Object)
				case want == Yes:
					failed = append(failed, fmt.Sprintf("%s is not called for %s: %s", name, object.Object, w.because()))
				default:
					failed = append(failed, fmt.Sprintf("%s is called for %s: %s", name, object.Object, w.because()))
				}
			}
		}
	}
	for _, name := range o.Expected {
		look(name, Yes)
	}
	for _, name := range o.NotExpected {
		look(name, No)
	}
	switch {
	case len(failed) > 0:
		return &unexpected{failed}
	case len(unknown) > 0:
		return problem.New("the answer is unknown for %s", strings.Join(unknown, ", "))
	}
	return nil
}

// unexpected is the error for expectations that failed.
type unexpected struct{ failed []string }

func (u *unexpected) Error() string { return strings.Join(u.failed, "\n") }

// Is reports whether target is problem.ErrFound, so that the exit code is 1.
func (u *unexpected) Is(target error) bool { return target == problem.ErrFound }
