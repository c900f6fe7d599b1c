// SPDX-License-Identifier: Apache-2.0

// Package lint implements "admitkit lint". It reads objects, checks them with pkg/lint, and adds files and line numbers
// to the findings.
package lint

import (
	"cmp"
	"context"
	"crypto/x509"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/internal/versions"
	"github.com/admitkit/admitkit/pkg/lint"
)

// Options are the flags and arguments of "admitkit lint".
type Options struct {
	// Paths are files and folders, or "-" for standard input. They are empty if Cluster is true.
	Paths   []string
	Cluster bool
	Flags   cluster.Flags
	// Config is the file with suppressions. If it is empty, DefaultConfig is read if it exists.
	Config string
	// Severity is the lowest severity to report. FailOn is the lowest severity that makes a run fail.
	Severity, FailOn string
	ServingCert      []string
	Probe            []string
	ExpiresWithin    time.Duration
	// Kubernetes is the version of the API server. If it is empty, the default is the version of the cluster, or any
	// version for files.
	Kubernetes string
	Now        func() time.Time
}

// A Finding is a finding of pkg/lint with its location.
type Finding struct {
	lint.Finding
	// File and Line are the location; both are absent for objects of a cluster.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Link is the URL of the rule's documentation.
	Link string `json:"link"`
	// external means that an entry of the file with suppressions suppresses the finding, not an annotation.
	external bool
}

// A Report is the result of Run.
type Report struct {
	// Findings are in the order of the files and their lines. They include suppressed findings.
	Findings []Finding `json:"findings"`
	// Configurations and Webhooks count the checked objects.
	Configurations int `json:"configurations"`
	Webhooks       int `json:"webhooks"`
	// Errors, Warnings, Advice and Suppressed count the findings.
	Errors     int `json:"errors"`
	Warnings   int `json:"warnings"`
	Advice     int `json:"advice"`
	Suppressed int `json:"suppressed"`

	failOn lint.Severity
	// objects lists the checked configurations, for JUnit.
	objects []string
}

// Failed reports whether a finding has the severity of --fail-on or a higher one.
func (r *Report) Failed() bool { return slices.ContainsFunc(r.Findings, r.counts) }

func (r *Report) counts(f Finding) bool {
	return f.Suppressed == "" && f.Severity.AtLeast(r.failOn)
}

// Run reads the objects and checks them. Findings are not an error.
func Run(ctx context.Context, s *screen.Screen, o Options) (*Report, error) {
	severity, err := severityOf("--severity", o.Severity)
	if err != nil {
		return nil, err
	}
	failOn, err := severityOf("--fail-on", o.FailOn)
	if err != nil {
		return nil, err
	}
	config, err := readConfig(o.Config)
	if err != nil {
		return nil, err
	}
	if _, ok := versions.Parse(o.Kubernetes); o.Kubernetes != "" && !ok {
		return nil, problem.New("--kubernetes=%s is not a version", o.Kubernetes).Hint("--kubernetes 1.36")
	}
	all, err := o.read(ctx, s)
	if err != nil {
		return nil, err
	}
	report := &Report{Findings: []Finding{}, failOn: failOn}
	input := lint.Input{}
	for _, object := range all {
		u, err := object.Unstructured()
		if err != nil {
			return nil, problem.New("%w", err)
		}
		input.Objects = append(input.Objects, runtime.Object(u))
		if isConfiguration(object) {
			report.count(object, u.Object)
		}
	}
	if report.Configurations == 0 {
		return nil, o.noConfigurations(len(all))
	}
	if input.Serving, err = o.serving(ctx); err != nil {
		return nil, err
	}
	if input.Serving[""] != nil && severalServers(all) {
		return nil, problem.New("the configurations have webhooks on several servers, but only one serving certificate is given").
			Hint("--serving-cert WEBHOOK=FILE, or --probe WEBHOOK=HOST:PORT, for each webhook")
	}
	options := lint.Options{Live: o.Cluster, Ignore: config.ignore, Proven: proven(s, all), Kubernetes: o.Kubernetes, ExpiresWithin: o.ExpiresWithin, Now: o.Now}
	for _, f := range lint.Run(input, options) {
		report.add(f, all, config, severity)
	}
	if !o.Cluster {
		report.sort(all)
	}
	return report, nil
}

func severityOf(flag, name string) (lint.Severity, error) {
	if slices.Contains(lint.Severities(), lint.Severity(name)) {
		return lint.Severity(name), nil
	}
	return "", problem.New("%s=%s is not a severity: use error, warning or advice", flag, name)
}

func (o *Options) noConfigurations(read int) error {
	if o.Cluster {
		return problem.New("the cluster has no webhook configuration")
	}
	return problem.New("no webhook configuration in the %s of %s", textutil.Count(read, "object"), objects.Names(o.Paths...)).
		Hint("admitkit lint FILE, with a %s or a %s", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration").
		Hint("admitkit manifests | admitkit lint -   # for a program that registers its own hooks")
}

func isConfiguration(o *objects.Object) bool {
	return o.GVK.Group == "admissionregistration.k8s.io" && (o.GVK.Version == "v1" || o.GVK.Version == "v1beta1") &&
		(o.GVK.Kind == "MutatingWebhookConfiguration" || o.GVK.Kind == "ValidatingWebhookConfiguration")
}

func (r *Report) count(o *objects.Object, document map[string]any) {
	r.Configurations++
	r.objects = append(r.objects, o.GVK.Kind+"/"+o.Name)
	if webhooks, ok := document["webhooks"].([]any); ok {
		r.Webhooks += len(webhooks)
	}
}

func (r *Report) add(f lint.Finding, all []*objects.Object, config *config, lowest lint.Severity) {
	if !f.Severity.AtLeast(lowest) {
		return
	}
	found := Finding{Finding: f, Link: linkOf(f.Rule)}
	switch {
	case f.Index >= 0:
		object := all[f.Index]
		found.File, found.Line = object.File, object.LineOf(stepsOf(f.Path)...)
	default:
		found.File, found.Line = config.file, config.lineOf(f.Path)
	}
	found.external = slices.ContainsFunc(config.ignore, func(i lint.Ignore) bool { return strings.EqualFold(i.Rule, f.Rule) && i.Reason == f.Suppressed })
	switch {
	case f.Suppressed != "":
		r.Suppressed++
	case f.Severity == lint.Error:
		r.Errors++
	case f.Severity == lint.Warning:
		r.Warnings++
	default:
		r.Advice++
	}
	r.Findings = append(r.Findings, found)
}

func linkOf(id string) string {
	for _, r := range lint.Rules() {
		if r.ID == id {
			return r.Link
		}
	}
	return ""
}

// sort sorts the findings by file, line and severity.
func (r *Report) sort(all []*objects.Object) {
	fileOrder := map[string]int{}
	for i, o := range all {
		if _, known := fileOrder[o.File]; !known {
			fileOrder[o.File] = i
		}
	}
	at := func(f Finding) int {
		if i, ok := fileOrder[f.File]; ok {
			return i
		}
		return len(all)
	}
	rank := func(f Finding) int { return slices.Index(lint.Severities(), f.Severity) }
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.Line, b.Line), rank(a)-rank(b))
	})
}

// stepsOf splits a field path, such as webhooks[0].rules or metadata.annotations[a.b/c], into names and indices.
func stepsOf(path string) []any {
	var steps []any
	for path != "" {
		switch at := strings.IndexAny(path, ".["); {
		case at > 0:
			steps, path = append(steps, path[:at]), path[at:]
		case at < 0:
			return append(steps, path)
		case path[0] == '.':
			path = path[1:]
			if path == "" || path[0] == '.' || path[0] == '[' {
				return steps // pkg/lint returns no such path
			}
		default:
			key, rest, _ := strings.Cut(path[1:], "]")
			path = rest
			if index, err := strconv.Atoi(key); err == nil {
				steps = append(steps, index)
			} else {
				steps = append(steps, key)
			}
		}
	}
	return steps
}

// Explain returns the rule with this ID, ignoring case. It returns an error if the rule does not exist.
func Explain(id string) (*lint.Rule, error) {
	for _, r := range lint.Rules() {
		if strings.EqualFold(r.ID, id) {
			return &r, nil
		}
	}
	return nil, problem.New("the rule %q does not exist", id).Hint("admitkit lint --rules")
}

// read reads the objects from files, standard input or a cluster.
func (o *Options) read(ctx context.Context, s *screen.Screen) ([]*objects.Object, error) {
	if o.Cluster {
		return o.readCluster(ctx, s)
	}
	return objects.Read(ctx, o.Paths, s.In, s.Note)
}

// serving reads the serving certificates of --serving-cert and --probe. The keys of the result are names of webhooks.
// The key is "" if the flag names no webhook.
func (o *Options) serving(ctx context.Context) (map[string][]*x509.Certificate, error) {
	all := map[string][]*x509.Certificate{}
	add := func(flag, value string, read func(string) ([]*x509.Certificate, error)) error {
		webhook, where, named := strings.Cut(value, "=")
		if !named {
			webhook, where = "", value
		}
		if all[webhook] != nil {
			return problem.New("%s=%s: this webhook already has a certificate", flag, value).Hint("%s WEBHOOK=...", flag)
		}
		chain, err := read(where)
		if err != nil {
			return problem.New("%s=%s: %w", flag, value, err)
		}
		all[webhook] = chain
		return nil
	}
	for _, value := range o.ServingCert {
		if err := add("--serving-cert", value, readCertificates); err != nil {
			return nil, err
		}
	}
	for _, value := range o.Probe {
		err := add("--probe", value, func(address string) ([]*x509.Certificate, error) { return probe(ctx, address) })
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
