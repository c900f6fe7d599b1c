// SPDX-License-Identifier: Apache-2.0

// Package versions knows which fields of webhook configurations each version of Kubernetes has.
package versions

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Version is a minor version of Kubernetes.
type Version struct{ Major, Minor int }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Before reports whether v is earlier than 1.minor.
func (v Version) Before(minor int) bool {
	return cmp.Or(cmp.Compare(v.Major, 1), cmp.Compare(v.Minor, minor)) < 0
}

// version is compiled at its first use, so that programs start fast.
var version = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?([0-9]{1,4})\.([0-9]{1,4})(\.[0-9]+)?([-+].*)?$`)
})

// Parse reads a version, such as 1.36, v1.36.3 or v1.36.3-gke.100.
func Parse(text string) (Version, bool) {
	parts := version().FindStringSubmatch(text)
	if parts == nil {
		return Version{}, false
	}
	major, _ := strconv.Atoi(parts[1]) // both have at most four digits
	minor, _ := strconv.Atoi(parts[2])
	return Version{major, minor}, true
}

// These are minor versions in which the API server gained or lost a feature.
const (
	First       = 9  // the first with admissionregistration.k8s.io/v1beta1
	ServicePort = 15 // the first that calls Services on other ports than 443
	V1          = 16 // the first with admissionregistration.k8s.io/v1
	WithoutBeta = 22 // the first without v1beta1
	NameLabel   = 21 // the first that labels namespaces with kubernetes.io/metadata.name
	Static      = 36 // the first with static manifests
)

// A field is a field of a webhook that early versions of Kubernetes lack.
type field struct {
	path  []string
	since int // the first minor version that has it, without a feature gate
	// effect returns what changes without the field, or "" if nothing changes. value is the value of the field.
	effect func(value any) string
}

// fields has the fields of webhooks, in the order of MutatingWebhook. A test compares them with the Go types of each version.
var fields = []field{
	{[]string{"clientConfig", "service", "port"}, ServicePort, unless(int64(443), "the API server calls port 443")},
	{[]string{"matchPolicy"}, 15, unless("Exact", "requests for other versions of the resources do not reach the webhook")},
	{[]string{"objectSelector"}, 15, ifSelects},
	{[]string{"sideEffects"}, 12, func(any) string { return "" }}, // these versions have no dry run
	{[]string{"timeoutSeconds"}, 14, func(any) string { return "the API server decides how long it waits" }},
	{[]string{"admissionReviewVersions"}, 14, func(any) string { return "" }}, // these versions send v1beta1
	{[]string{"reinvocationPolicy"}, 15, unless("Never", "the webhook is not called again after a later webhook changed the object")},
	{[]string{Conditions.Path}, Conditions.Since.Minor, func(any) string { return Conditions.Effect }},
}

// Conditions is the loss of matchConditions. In Kubernetes 1.27, this field needs a feature gate.
var Conditions = Loss{"matchConditions", Version{1, 28}, "the webhook is also called for requests that they exclude"}

// scope is a field of each rule.
var scope = field{[]string{"scope"}, 14, unless("*", "the rule matches resources of every scope")}

// unless returns an effect that occurs with any value but the harmless one.
func unless(harmless any, effect string) func(any) string {
	return func(value any) string {
		if value == harmless {
			return ""
		}
		return effect
	}
}

// ifSelects returns the effect of losing an objectSelector. An empty selector has none.
func ifSelects(value any) string {
	if selector, _ := value.(map[string]any); len(selector) == 0 {
		return ""
	}
	return "the webhook is also called for objects that it excludes"
}

// A Loss is a field of a webhook that the API server does not know, with the effect of its absence.
type Loss struct {
	Path   string // such as "rules[0].scope"
	Since  Version
	Effect string // what the API server does without the field
}

func (l Loss) String() string {
	return fmt.Sprintf("no %s before Kubernetes %v: %s", l.Path, l.Since, l.Effect)
}

// Fit removes the fields that a version does not know from a webhook. It returns the losses that have an effect. The webhook
// is an element of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration, decoded from JSON with int64 numbers.
func Fit(webhook map[string]any, v Version) (losses []Loss) {
	drop := func(object map[string]any, f field, at string) {
		value, found, err := unstructured.NestedFieldNoCopy(object, f.path...)
		if !found || err != nil || !v.Before(f.since) {
			return
		}
		unstructured.RemoveNestedField(object, f.path...)
		if effect := f.effect(value); effect != "" {
			losses = append(losses, Loss{at, Version{1, f.since}, effect})
		}
	}
	for _, f := range fields {
		at := f.path[0]
		for _, name := range f.path[1:] {
			at += "." + name
		}
		drop(webhook, f, at)
	}
	rules, _ := webhook["rules"].([]any)
	for i, entry := range rules {
		if rule, ok := entry.(map[string]any); ok {
			drop(rule, scope, fmt.Sprintf("rules[%d].scope", i))
		}
	}
	return losses
}

// ExcludedByName returns the namespaces that a selector excludes by their label kubernetes.io/metadata.name.
func ExcludedByName(selector *metav1.LabelSelector) []string {
	if selector == nil {
		return nil
	}
	var all []string
	for _, e := range selector.MatchExpressions {
		if e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpNotIn {
			all = append(all, e.Values...)
		}
	}
	return all
}

// SelectedByName reports whether a selector matches only namespaces that have the label kubernetes.io/metadata.name.
func SelectedByName(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	_, required := selector.MatchLabels[corev1.LabelMetadataName]
	return required || slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key == corev1.LabelMetadataName && (e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpExists)
	})
}
