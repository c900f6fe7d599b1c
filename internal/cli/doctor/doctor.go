// SPDX-License-Identifier: Apache-2.0

// Package doctor implements "admitkit doctor". It reads a snapshot of a cluster and prints what package internal/doctor
// finds in it.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/doctor"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/lint"
)

// Options are the flags of "admitkit doctor".
type Options struct {
	Flags cluster.Flags
	// FailOn is the lowest severity that makes a run fail.
	FailOn        string
	ExpiresWithin time.Duration
	// Direct makes doctor connect to Pods directly, and not through the API server and a kubelet.
	Direct bool
	// Ignore has the IDs of checks whose findings are left out.
	Ignore []string
	// AuditLogs are audit logs of the API servers, or "-" for standard input. Probe makes doctor send dry runs.
	AuditLogs []string
	Probe     bool
	// Watch is the time between two scrapes; only calls in between count. If it is 0, all calls since the API servers
	// started count.
	Watch time.Duration
	// Now returns the current time; nil is time.Now.
	Now func() time.Time

	dial    func(ctx context.Context, network, address string) (net.Conn, error) // nil is that of net.Dialer
	timeout time.Duration                                                        // 0 is the default
}

// A Report is the result of Run. Its JSON encoding is stable.
type Report struct {
	Server     string `json:"server"`
	Kubernetes string `json:"kubernetes"`
	// Configurations, Webhooks, Conversions and APIServices count what was checked.
	Configurations int `json:"configurations"`
	Webhooks       int `json:"webhooks"`
	Conversions    int `json:"conversions"`
	APIServices    int `json:"apiServices"`
	// Findings are sorted, worst first.
	Findings []doctor.Finding `json:"findings"`
	// Ignored is the number of findings that --ignore left out.
	Ignored int `json:"ignored,omitempty"`
	// Repair is nil if the API server rejects no requests because of a finding.
	Repair *doctor.Repair `json:"repair,omitempty"`
	// Traffic is nil if the metrics of no API server could be read.
	Traffic *Traffic `json:"traffic,omitempty"`
	// NotChecked lists the objects and connections that could not be checked, so that findings may be missing.
	NotChecked []Gap `json:"notChecked"`
	// NotProbed has the webhooks that no dry run of --probe reached.
	NotProbed []NotProbed `json:"notProbed,omitempty"`

	failOn lint.Severity
}

// Failed reports whether a finding has the severity of --fail-on or a higher one.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Severity.AtLeast(r.failOn) })
}

// Incomplete reports whether a missing permission prevented a check.
func (r *Report) Incomplete() bool {
	return slices.ContainsFunc(r.NotChecked, func(g Gap) bool { return g.Forbidden })
}

// Run reads the cluster and checks it. It returns an error if an option is invalid or the cluster cannot be reached.
// Findings are not errors, and missing permissions are in Report.NotChecked.
func Run(ctx context.Context, s *screen.Screen, o Options) (*Report, error) {
	if !slices.Contains(lint.Severities(), lint.Severity(o.FailOn)) {
		return nil, problem.New("--fail-on=%s is not a severity: use error, warning or advice", o.FailOn)
	}
	if o.Watch < 0 {
		return nil, problem.New("--watch=%s is negative: use a time such as 1m", o.Watch)
	}
	for _, id := range o.Ignore {
		if !slices.ContainsFunc(doctor.Checks(), func(c doctor.Check) bool { return c.ID == id }) {
			return nil, problem.New("--ignore=%s: there is no such check", id).Hint("--ignore no-disruption-budget; reports and docs/doctor.md have the names")
		}
	}
	config, err := o.Flags.Config()
	if err != nil {
		return nil, err
	}
	return o.run(ctx, s, config)
}

func (o *Options) run(ctx context.Context, s *screen.Screen, config *rest.Config) (*Report, error) {
	var server clock
	kubernetes, err := versionOf(ctx, server.observe(config))
	if err != nil {
		return nil, err
	}
	now := server.now
	if o.Now != nil {
		now = o.Now
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, problem.New("cannot use the kubeconfig: %w", err)
	}
	progress := s.Progress()
	r := newReader(config, client, progress.Step)
	r.s.Now, r.s.ExpiresWithin, r.s.Kubernetes = now(), o.ExpiresWithin, kubernetes
	r.direct = o.Direct
	if o.dial != nil {
		r.dial = o.dial
	}
	r.timeout = cmp.Or(o.timeout, r.timeout)
	r.watchFor, r.probing = o.Watch, o.Probe
	r.s.Fights, err = fightsIn(ctx, s.In, o.AuditLogs, progress)
	if err != nil {
		progress.Done()
		return nil, err
	}
	report := &Report{Server: config.Host, Kubernetes: kubernetes, failOn: lint.Severity(o.FailOn)}
	if err = r.read(ctx); err == nil {
		report.Findings = append([]doctor.Finding{}, doctor.Diagnose(r.s)...)
		all := len(report.Findings)
		report.Findings = slices.DeleteFunc(report.Findings, func(f doctor.Finding) bool { return slices.Contains(o.Ignore, f.Check) })
		report.Ignored = all - len(report.Findings)
		if report.Repair = doctor.RepairOf(r.s, report.Findings); report.Repair != nil {
			r.readRepairers(ctx, report.Repair)
		}
	}
	progress.Done()
	if err != nil {
		return nil, err
	}
	report.Configurations, report.NotChecked = len(r.s.Configurations), append([]Gap{}, r.gaps...)
	report.NotProbed = r.unprobed
	report.Traffic = trafficOf(r.s)
	for _, t := range r.s.Targets {
		switch t.Kind {
		case doctor.Conversion:
			report.Conversions++
		case doctor.Aggregated:
			report.APIServices++
		default:
			report.Webhooks++
		}
	}
	return report, nil
}

// versionOf returns the version of the API server, or "" if the user may not read it. It returns an error if the server
// cannot be reached, or does not accept the credentials.
func versionOf(ctx context.Context, config *rest.Config) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", problem.New("cannot use the kubeconfig: %w", err)
	}
	text, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case apierrors.IsForbidden(err):
		return "", nil
	case err != nil:
		return "", cluster.Explain(config, err)
	}
	var info version.Info
	if json.Unmarshal(text, &info) != nil {
		return "", problem.New("the server at %s is not an API server, because /version has no Kubernetes version: correct the server in the kubeconfig", config.Host)
	}
	return info.GitVersion, nil
}
