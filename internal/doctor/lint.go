// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/lint"
)

// bundles reports problems of each caBundle. It runs the rules of pkg/lint on a configuration for each target, so that
// they also serve conversion webhooks and aggregated API servers.
func bundles(s *Snapshot) []Finding {
	var input lint.Input
	var targets []*Target
	for _, t := range s.Targets {
		if !t.Unverified {
			input.Objects = append(input.Objects, configurationOf(t, len(targets)))
			targets = append(targets, t)
		}
	}
	for _, service := range s.Services {
		if service != nil {
			input.Objects = append(input.Objects, service)
		}
	}
	var found []Finding
	for _, f := range lint.Run(input, s.lintOptions()) {
		if isBundleRule(f.Rule) {
			found = append(found, ofLint(f, targets[f.Index]))
		}
	}
	return found
}

// lockouts reports webhooks that can lock up the cluster, and timeouts that add up. It runs the rules of pkg/lint on the
// configurations. An annotation that suppresses a rule works here, too.
func lockouts(s *Snapshot) []Finding {
	var found []Finding
	input := lint.Input{Objects: slices.Concat(s.Configurations, s.around())}
	for _, f := range lint.Run(input, s.lintOptions()) {
		if !isOtherRule(f.Rule) || f.Suppressed != "" {
			continue
		}
		at := slices.IndexFunc(s.Targets, func(t *Target) bool { return t.Object() == f.Object && t.Webhook == f.Webhook })
		if at >= 0 {
			found = append(found, ofLint(f, s.Targets[at]))
		}
	}
	return found
}

// isBundleRule reports whether a rule is about caBundle. isOtherRule reports whether it is another rule in lintRules.
func isBundleRule(rule string) bool { return isUsed(rule) && strings.HasPrefix(rule, "AK5") }
func isOtherRule(rule string) bool  { return isUsed(rule) && !strings.HasPrefix(rule, "AK5") }

func isUsed(rule string) bool {
	_, used := lintRules[rule]
	return used
}

// configurationOf returns a webhook configuration with a unique name that calls the target.
func configurationOf(t *Target, index int) runtime.Object {
	w := admissionregistrationv1.ValidatingWebhook{Name: "target.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: t.Bundle}}
	if b := t.Backend; b.IsService() {
		w.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: b.Service.Namespace, Name: b.Service.Name, Port: &b.Port}
	} else {
		w.ClientConfig.URL = &b.URL
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("target-%d", index)}, Webhooks: []admissionregistrationv1.ValidatingWebhook{w}}
}

// around returns the objects that the rules of pkg/lint need beside the configurations.
func (s *Snapshot) around() []runtime.Object {
	var all []runtime.Object
	for _, n := range s.Namespaces {
		if n != nil {
			all = append(all, n)
		}
	}
	for _, service := range s.Services {
		if service != nil {
			all = append(all, service)
		}
	}
	return append(all, s.Workloads...)
}

func (s *Snapshot) lintOptions() lint.Options {
	return lint.Options{Live: true, Kubernetes: s.Kubernetes, ExpiresWithin: s.ExpiresWithin, Now: func() time.Time { return s.Now }}
}

// ofLint returns a finding of pkg/lint about targets of one object.
func ofLint(f lint.Finding, targets ...*Target) Finding {
	found := find(f.Rule, targets[0].Object(), targets, f.Message)
	found.Fix = f.Fix
	if lintRules[f.Rule] == "" {
		found = found.withSeverity(f.Severity)
	}
	return found
}
