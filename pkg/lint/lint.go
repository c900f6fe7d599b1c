// SPDX-License-Identifier: Apache-2.0

// Package lint checks webhook configurations against good practices. It finds configurations that the API server
// rejects; webhooks that can lock up a cluster, slow down requests or are never called; and certificates that do not
// match.
//
// [Run] takes Kubernetes objects and returns findings. [Rules] lists the rules. Run makes no network calls. It finds
// more if the objects include the namespaces, the Service and the Deployment of the webhook. Run does not report a
// problem that depends on facts outside of the input, such as unknown labels.
//
// To suppress a finding, give the reason in an annotation of the configuration:
//
//	metadata:
//	  annotations:
//	    lint.admitkit.dev/ignore: "AK203=it guards the pods of kube-system on purpose; AK402@slow.example.com=asks a registry"
//
// [Options] can suppress findings, too. A suppression without a reason, of an unknown rule, or without a matching
// finding is itself a finding.
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

// Input holds the objects that Run checks.
type Input struct {
	// Objects are webhook configurations of v1 and v1beta1, and objects around them: Namespaces, Services, Pods,
	// Deployments, StatefulSets, DaemonSets, HorizontalPodAutoscalers and CustomResourceDefinitions. They are Go types
	// or *unstructured.Unstructured; only the latter can have unknown fields. Run skips other kinds.
	Objects []runtime.Object
	// Serving has the serving certificates of webhooks, leaf first, by webhook name. The key "" is for all webhooks
	// without an entry of their own.
	Serving map[string][]*x509.Certificate
}

// Options configure Run. The zero value is the default for objects from files.
type Options struct {
	// Live states that Objects has all objects of a cluster. Fields that a program fills in later, such as caBundle,
	// are then required.
	Live bool
	// Kubernetes is the version of the API server, such as "1.36". Run skips findings about other versions. If it is
	// empty, Run reports findings about all versions.
	Kubernetes string
	// Ignore suppresses findings, in addition to the annotations of the configurations.
	Ignore []Ignore
	// Proven has the names of mutating webhooks that are proven to be safe to call again, for example by package
	// idempotence or "admitkit verify".
	Proven []string
	// ExpiresWithin is the remaining lifetime below which a certificate is reported; zero is 30 days.
	ExpiresWithin time.Duration
	// Now returns the current time; nil is time.Now.
	Now func() time.Time
}

// Ignore suppresses the findings of one rule.
type Ignore struct {
	// Rule is the ID of the rule.
	Rule string `json:"rule"`
	// Object is the kind and name of a configuration, as Kind/name, and Webhook is the name of a webhook. Both can
	// have the wildcards of path.Match. Empty values match everything.
	Object  string `json:"object,omitempty"`
	Webhook string `json:"webhook,omitempty"`
	// Reason explains the suppression. It is required.
	Reason string `json:"reason"`
}

// A Severity ranks a finding.
type Severity string

// The severities, worst first.
const (
	// Error marks a configuration that does not work.
	Error Severity = "error"
	// Warning marks a configuration that fails when something else fails.
	Warning Severity = "warning"
	// Advice marks a possible improvement.
	Advice Severity = "advice"
)

// Severities returns all severities, worst first.
func Severities() []Severity { return []Severity{Error, Warning, Advice} }

// AtLeast reports whether s is as severe as other, or more severe.
func (s Severity) AtLeast(other Severity) bool {
	all := Severities()
	return slices.Index(all, s) <= slices.Index(all, other)
}

// A Rule describes one kind of problem.
type Rule struct {
	// ID is stable. The ID of a removed rule is not used again.
	ID string `json:"id"`
	// Severity is the highest severity of the rule's findings.
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	Why      string   `json:"why"`
	Fix      string   `json:"fix"`
	// Link is the URL of more documentation.
	Link string `json:"link"`
}

// A Finding is one violation of a rule.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Object is the kind and name of the configuration, as Kind/name. Index is its index in Input.Objects. A finding
	// about Options.Ignore has no Object, and the index -1.
	Object string `json:"object,omitempty"`
	Index  int    `json:"-"`
	// Webhook is the name of the webhook; empty if the finding is about the whole configuration.
	Webhook string `json:"webhook,omitempty"`
	// Path is the field path, such as webhooks[0].rules[1].resources.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
	// Suppressed is the reason for the suppression; empty if the finding is not suppressed.
	Suppressed string `json:"suppressed,omitempty"`
}

// Run returns all findings in the order of the objects, including suppressed ones.
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
		for _, h := range c.webhooks {
			for _, check := range webhookChecks {
				check(l, h)
			}
		}
	}
	for _, check := range crossChecks {
		check(l)
	}
	l.suppress()
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Compare(uint(a.Index), uint(b.Index)) // -1 comes last
	})
	return l.findings
}

// A linter is the state of one call of Run.
type linter struct {
	input          Input
	options        Options
	rules          map[string]Rule
	configurations []*configuration
	around         surroundings
	findings       []Finding
}

var configurationChecks = []func(*linter, *configuration){
	(*linter).rejected, (*linter).apiVersion, (*linter).static,
}

var webhookChecks = []func(*linter, *webhook){
	(*linter).newFields, (*linter).resourceOrder, (*linter).neverCalled, (*linter).neverMatches, (*linter).exact, (*linter).oldDefaults,
	(*linter).evasion, (*linter).mutations, (*linter).sideEffects, (*linter).reviewVersions,
	(*linter).ownPods, (*linter).ownNeeds, (*linter).kubeSystem, (*linter).nodeLeases, (*linter).nodes,
	(*linter).virtual, (*linter).everything, (*linter).service, (*linter).replicas,
	(*linter).timeout, (*linter).reinvocation, (*linter).bundle, (*linter).serving,
}

// crossChecks compare several configurations.
var crossChecks = []func(*linter){
	(*linter).sameConfigurations, (*linter).sameWebhooks, (*linter).loops, (*linter).timeouts, (*linter).order,
}

// isAtLeast reports whether the API server is known to have this version or a later one. A pre-release counts as
// earlier, because it may lack features of the release.
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

// found adds a finding about a webhook.
func (l *linter) found(rule string, h *webhook, at *field.Path, message string) *Finding {
	f := l.foundIn(rule, h.of, at, message)
	f.Webhook = h.Name
	return f
}

// foundIn adds a finding about a configuration.
func (l *linter) foundIn(rule string, c *configuration, at *field.Path, message string) *Finding {
	path := ""
	if at != nil {
		path = at.String()
	}
	l.findings = append(l.findings, Finding{Rule: rule, Severity: l.rules[rule].Severity, Object: c.String(), Index: c.index,
		Path: path, Message: message, Fix: l.rules[rule].Fix})
	return &l.findings[len(l.findings)-1]
}

// withSeverity sets a severity that differs from the rule's.
func (f *Finding) withSeverity(s Severity) *Finding {
	f.Severity = s
	return f
}

// withFix sets a fix that differs from the rule's.
func (f *Finding) withFix(fix string) *Finding {
	f.Fix = fix
	return f
}
