// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	longTimeout = 10 // seconds; the default of v1
	// requestSeconds is the time limit of a request that creates or changes an object (k8s.io/apiserver
	// pkg/endpoints/handlers/rest.go: requestTimeoutUpperBound).
	requestSeconds = 34
)

func (l *linter) timeout(h *webhook) {
	switch {
	case h.TimeoutSeconds == nil && !h.of.v1beta1:
		l.found("AK401", h, h.at, "timeoutSeconds is not set; the default is 10")
	case h.TimeoutSeconds != nil && *h.TimeoutSeconds > longTimeout && *h.TimeoutSeconds <= 30:
		f := l.found("AK402", h, h.at.Child("timeoutSeconds"), fmt.Sprintf("a request can wait %d seconds for the webhook", *h.TimeoutSeconds))
		if !h.isForKubernetes() {
			f.withSeverity(Advice) // it delays only requests for custom resources
		}
	}
}

// ordinary returns a request that creates an object without labels in the namespace default.
func (l *linter) ordinary(r resource) request {
	request := r.on(create, "default", "any", unknownUser)
	request.labels.complete = true
	return request
}

// meetsOrdinary reports whether the webhook is called for an ordinary request, in a namespace with no label except its
// name.
func (l *linter) meetsOrdinary(h *webhook, r resource) bool {
	namespace := l.labelsOf("default")
	namespace.complete = true
	request := l.ordinary(r)
	return h.hasRule(request) && len(h.MatchConditions) == 0 && selects(h.NamespaceSelector, namespace) && selects(h.ObjectSelector, request.labels)
}

// chains returns, for each resource in the rules of mutating webhooks, the mutating webhooks that the API server calls
// for an ordinary request, in the order of the calls.
func (l *linter) chains() map[resource][]*webhook {
	var mutating []*configuration
	for _, c := range l.configurations {
		if c.mutating {
			mutating = append(mutating, c)
		}
	}
	slices.SortStableFunc(mutating, func(a, b *configuration) int { return cmp.Compare(a.Name, b.Name) })
	chains := map[resource][]*webhook{}
	for _, r := range named(mutating) {
		for _, c := range mutating {
			for _, h := range c.webhooks {
				if l.meetsOrdinary(h, r) {
					chains[r] = append(chains[r], h)
				}
			}
		}
	}
	return chains
}

// named returns pods and the resources that the rules of the configurations name without wildcards.
func named(configurations []*configuration) []resource {
	seen := map[resource]bool{}
	all := []resource{pods}
	seen[pods] = true
	for _, c := range configurations {
		for _, h := range c.webhooks {
			for _, rule := range h.Rules {
				for _, r := range resourcesOf(rule) {
					if !seen[r] {
						seen[r] = true
						all = append(all, r)
					}
				}
			}
		}
	}
	return all
}

func resourcesOf(rule admissionregistrationv1.RuleWithOperations) []resource {
	var all []resource
	for _, group := range rule.APIGroups {
		for _, version := range rule.APIVersions {
			for _, name := range rule.Resources {
				if group == "*" || strings.Contains(name, "*") || strings.Contains(name, "/") {
					continue
				}
				if version == "*" {
					version = "v1"
				}
				all = append(all, resource{group, version, name, ""})
			}
		}
	}
	return all
}

// timeouts reports mutating webhooks that are called for the same requests, if the sum of their timeouts exceeds the
// time limit of a request.
func (l *linter) timeouts() {
	reported := map[string]bool{}
	chains := l.chains()
	for _, r := range inOrder(chains) {
		var sum int32
		var parts []string
		for _, h := range chains[r] {
			sum += h.seconds()
			parts = append(parts, fmt.Sprintf("%s %d", h.Name, h.seconds()))
		}
		key := strings.Join(parts, " ")
		if sum <= requestSeconds || reported[key] {
			continue
		}
		reported[key] = true
		last := chains[r][len(chains[r])-1]
		l.found("AK403", last, last.at, fmt.Sprintf("the timeouts of %d mutating webhooks for %s add up to %d seconds: %s",
			len(parts), schema.GroupResource{Group: r.group, Resource: r.resource}, sum, strings.Join(parts, ", ")))
	}
}

func inOrder(chains map[resource][]*webhook) []resource {
	var all []resource
	for r := range chains {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b resource) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.version, b.version))
	})
	return all
}

func (h *webhook) isReinvoked() bool {
	return h.ReinvocationPolicy != nil && *h.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
}

func (l *linter) reinvocation(h *webhook) {
	if h.isReinvoked() && !slices.Contains(l.options.Proven, h.Name) {
		l.found("AK404", h, h.at.Child("reinvocationPolicy"), "reinvocationPolicy is IfNeeded, without proof that the webhook is safe to call again")
	}
}

// order reports webhooks for Pods that do not see the changes of a later webhook.
func (l *linter) order() {
	all := l.chains()[pods]
	for i, h := range all {
		later := slices.IndexFunc(all[i+1:], func(other *webhook) bool { return other.of != h.of })
		if !h.isReinvoked() && later >= 0 {
			other := all[i+1+later]
			l.found("AK405", h, h.at, fmt.Sprintf("%s of %s changes Pods after this webhook", other.Name, other.of))
		}
	}
}
