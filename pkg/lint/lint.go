// SPDX-License-Identifier: Apache-2.0

// Package lint holds webhook configurations against the good practices: what the API server
// refuses, what locks a cluster out of itself, what is called too often, too long or not at
// all, and certificates that do not fit.
//
// [Run] takes Kubernetes objects and returns findings; [Rules] lists what it knows. It makes
// no calls. The more it is given (the namespaces, the service and the Deployment of the webhook),
// the more exactly it knows which requests meet which webhook. What it cannot know it does not
// report: a label that nobody showed it may be there or not.
//
// A finding that is meant to be is suppressed with a reason, in an annotation of the
// configuration:
//
//	metadata:
//	  annotations:
//	    lint.admitkit.dev/ignore: "AK203=it guards the pods of kube-system on purpose; AK402@slow.example.com=asks a registry"
//
// or by [Options]. A suppression without a reason, of an unknown rule, or of nothing is a
// finding itself.
package lint

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Input is what is held against the rules.
type Input struct {
	// Objects are webhook configurations of v1 and v1beta1, and of what surrounds them: Namespaces,
	// Services, Pods, Deployments, StatefulSets, DaemonSets, HorizontalPodAutoscalers and
	// CustomResourceDefinitions. They are Go types or *unstructured.Unstructured, of which the
	// latter also tell of fields that the Go types do not have. Others are left aside.
	Objects []runtime.Object
	// Serving are the certificates that webhooks serve, the leaf first, by the names of the
	// webhooks; those of "" are of all webhooks that are not named.
	Serving map[string][]*x509.Certificate
}

// Options say how to judge. The zero value is good for files.
type Options struct {
	// Live is for objects read from a cluster, all there are of their kinds: what somebody fills in
	// later, such as a caBundle, has to be there.
	Live bool
	// Kubernetes is the version of the API server, such as "1.36", to leave aside what only others do;
	// empty is all of them.
	Kubernetes string
	// Ignore suppresses findings.
	Ignore []Ignore
	// Proven are the names of mutating webhooks that are proven to be safe to call again, as by
	// package idempotence or `admitkit verify`.
	Proven []string
	// ExpiresWithin is how soon a certificate expires to be reported; zero is 30 days.
	ExpiresWithin time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Ignore suppresses findings.
type Ignore struct {
	// Rule is the ID of a rule.
	Rule string `json:"rule"`
	// Object is the kind and the name of a configuration, with a slash between; empty is every
	// one. Webhook is the name of a webhook in it; empty is every one. Both may have the wildcards
	// of path.Match.
	Object  string `json:"object,omitempty"`
	Webhook string `json:"webhook,omitempty"`
	// Reason says why; it must be there.
	Reason string `json:"reason"`
}

// A Severity says how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	// Error is what does not work.
	Error Severity = "error"
	// Warning is what fails when something else does.
	Warning Severity = "warning"
	// Advice is what could be better.
	Advice Severity = "advice"
)

// Severities are all of them, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Advice} }

// AtLeast reports whether s is as bad as other, or worse.
func (s Severity) AtLeast(other Severity) bool {
	all := Severities()
	return slices.Index(all, s) <= slices.Index(all, other)
}

// A Rule is what configurations are held against.
type Rule struct {
	// ID never changes, and is never given to another rule.
	ID string `json:"id"`
	// Severity is that of the findings, the worst if they differ.
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	Why      string   `json:"why"`
	Fix      string   `json:"fix"`
	// Link is where to read on.
	Link string `json:"link"`
}

// A Finding is where a configuration breaks a rule.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Object is the kind and the name of the configuration, with a slash between, and Index is its
	// place in Input.Objects. A finding about Options.Ignore has no object, and -1.
	Object string `json:"object,omitempty"`
	Index  int    `json:"-"`
	// Webhook is the name of the webhook, if it is about one.
	Webhook string `json:"webhook,omitempty"`
	// Path is the field path, such as webhooks[0].rules[1].resources.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
	// Suppressed is the reason why it does not count, or empty.
	Suppressed string `json:"suppressed,omitempty"`
}

// Run returns what it finds, in the order of the objects; suppressed findings are among them.
func Run(input Input, options Options) []Finding {
	l := &linter{input: input, options: options, rules: map[string]Rule{}}
	for _, r := range Rules() {
		l.rules[r.ID] = r
	}
	if l.options.Now == nil {
		l.options.Now = time.Now
	}
	if l.options.ExpiresWithin == 0 {
		l.options.ExpiresWithin = 30 * 24 * time.Hour
	}
	l.read()
	for _, c := range l.configurations {
		for _, check := range configurationChecks {
			check(l, c)
		}
		for _, h := range c.hooks {
			for _, check := range hookChecks {
				check(l, h)
			}
		}
	}
	for _, check := range allChecks {
		check(l)
	}
	l.suppress()
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Compare(uint(a.Index), uint(b.Index)) // -1 comes last
	})
	return l.findings
}

// A linter is one run.
type linter struct {
	input          Input
	options        Options
	rules          map[string]Rule
	configurations []*configuration
	around         surroundings
	findings       []Finding
}

var configurationChecks = []func(*linter, *configuration){
	(*linter).rejected, (*linter).oldVersion, (*linter).static,
}

var hookChecks = []func(*linter, *hook){
	(*linter).resourceOrder, (*linter).neverCalled, (*linter).neverMatches, (*linter).exact, (*linter).oldDefaults,
	(*linter).evasion, (*linter).mutations, (*linter).sideEffects, (*linter).reviewVersions,
	(*linter).ownPods, (*linter).ownNeeds, (*linter).kubeSystem, (*linter).nodeLeases, (*linter).nodes,
	(*linter).virtual, (*linter).everything, (*linter).service, (*linter).replicas,
	(*linter).timeout, (*linter).reinvocation, (*linter).bundle, (*linter).serving,
}

var allChecks = []func(*linter){
	(*linter).sameConfigurations, (*linter).sameWebhooks, (*linter).loops, (*linter).timeouts, (*linter).order,
}

// isAtLeast reports whether the API server is known to be of a version, or a later one. A pre-release comes before
// its version, and may lack what that has.
func (l *linter) isAtLeast(major, minor int) bool {
	var isMajor, isMinor int
	version := strings.TrimPrefix(l.options.Kubernetes, "v")
	if n, _ := fmt.Sscanf(version, "%d.%d", &isMajor, &isMinor); n < 2 {
		return false
	}
	for _, stage := range []string{"alpha", "beta", "rc"} {
		if strings.HasPrefix(version, fmt.Sprintf("%d.%d.0-%s.", major, minor, stage)) {
			return false
		}
	}
	return isMajor > major || isMajor == major && isMinor >= minor
}

// found is about a webhook.
func (l *linter) found(rule string, h *hook, at *field.Path, message string) *Finding {
	f := l.foundIn(rule, h.of, at, message)
	f.Webhook = h.Name
	return f
}

// foundIn is about a configuration.
func (l *linter) foundIn(rule string, c *configuration, at *field.Path, message string) *Finding {
	path := ""
	if at != nil {
		path = at.String()
	}
	l.findings = append(l.findings, Finding{Rule: rule, Severity: l.rules[rule].Severity, Object: c.String(), Index: c.index,
		Path: path, Message: message, Fix: l.rules[rule].Fix})
	return &l.findings[len(l.findings)-1]
}

// only lowers the severity.
func (f *Finding) only(s Severity) *Finding {
	f.Severity = s
	return f
}

// with says better what to do.
func (f *Finding) with(fix string) *Finding {
	f.Fix = fix
	return f
}
