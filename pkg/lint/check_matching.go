// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/internal/rulematch"
	"github.com/admitkit/admitkit/internal/textutil"
)

// exempt lists the resources for which the API server calls only webhooks of static manifests (k8s.io/apiserver
// predicates/rules: IsExemptAdmissionConfigurationResource).
var exempt = []string{
	"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies",
	"validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
}

func (l *linter) neverCalled(h *webhook) {
	if len(h.Rules) == 0 && (l.options.Live || h.Rules != nil) { // in a file, a program may fill them in later
		l.found("AK303", h, h.at.Child("rules"), "the webhook has no rules")
	}
	l.virtualOnly(h)
	if strings.HasSuffix(h.of.Name, staticSuffix) {
		return // webhooks of static manifests are called for these resources
	}
	for i, rule := range h.Rules {
		if !rulematch.Contains(rule.APIGroups, "admissionregistration.k8s.io") {
			continue
		}
		for j, resource := range rule.Resources {
			if name, _, _ := strings.Cut(resource, "/"); slices.Contains(exempt, name) { // the exemption includes subresources
				l.found("AK301", h, h.at.Child("rules").Index(i).Child("resources").Index(j),
					"the API server calls only webhooks of static manifests for "+resource)
			}
		}
	}
}

// virtualOnly reports rules whose resources are all reviews, such as tokenreviews. Kubernetes 1.37 calls no webhook for
// them.
func (l *linter) virtualOnly(h *webhook) {
	if !l.isAtLeast(1, 37) {
		return
	}
	for i, rule := range h.Rules {
		isReview := func(name string) bool {
			return slices.ContainsFunc(reviews, func(r resource) bool {
				return r.resource == name && !slices.ContainsFunc(rule.APIGroups, func(g string) bool { return g != r.group })
			})
		}
		if len(rule.Resources) > 0 && len(rule.APIGroups) > 0 && !slices.ContainsFunc(rule.Resources, func(name string) bool { return !isReview(name) }) {
			l.found("AK301", h, h.at.Child("rules").Index(i).Child("resources"),
				"by default, Kubernetes 1.37 and later call no webhook for "+textutil.Join(slices.Compact(rule.Resources), "and"))
		}
	}
}

// neverMatches reports groups, versions and resources in rules that no request can have.
func (l *linter) neverMatches(h *webhook) {
	for i, rule := range h.Rules {
		at := h.at.Child("rules").Index(i)
		for j, group := range rule.APIGroups {
			switch {
			case group == "core":
				l.found("AK302", h, at.Child("apiGroups").Index(j), `the API group "core" does not exist`).withFix(`Write the core group as "".`)
			case !groupName.MatchString(group):
				l.found("AK302", h, at.Child("apiGroups").Index(j), fmt.Sprintf("%q is not the name of an API group", group)).
					withFix("Write the group without a version, such as apps.")
			}
		}
		for j, version := range rule.APIVersions {
			if !versionName.MatchString(version) {
				l.found("AK302", h, at.Child("apiVersions").Index(j), fmt.Sprintf("%q is not the name of an API version", version)).
					withFix("Write the version without a group, such as v1.")
			}
		}
		for j, resource := range rule.Resources {
			if message := unmatchable(rule, resource); message != "" {
				l.found("AK302", h, at.Child("resources").Index(j), message)
			}
		}
	}
}

// groupsOf maps common built-in resources to their API groups.
var groupsOf = map[string][]string{
	"pods": {""}, "services": {""}, "configmaps": {""}, "secrets": {""}, "namespaces": {""}, "nodes": {""},
	"persistentvolumeclaims": {""}, "persistentvolumes": {""}, "serviceaccounts": {""}, "endpoints": {""},
	"replicationcontrollers": {""}, "events": {"", "events.k8s.io"},
	"deployments": {"apps", "extensions"}, "daemonsets": {"apps", "extensions"}, "replicasets": {"apps", "extensions"}, "statefulsets": {"apps"},
	"jobs": {"batch"}, "cronjobs": {"batch"}, "ingresses": {"networking.k8s.io", "extensions"}, "networkpolicies": {"networking.k8s.io", "extensions"},
	"leases": {"coordination.k8s.io"}, "endpointslices": {"discovery.k8s.io"}, "poddisruptionbudgets": {"policy"},
	"horizontalpodautoscalers": {"autoscaling"}, "customresourcedefinitions": {"apiextensions.k8s.io"},
	"roles": {"rbac.authorization.k8s.io"}, "rolebindings": {"rbac.authorization.k8s.io"},
	"clusterroles": {"rbac.authorization.k8s.io"}, "clusterrolebindings": {"rbac.authorization.k8s.io"},
	"storageclasses": {"storage.k8s.io"}, "priorityclasses": {"scheduling.k8s.io"},
}

// ofKubernetes reports whether an API group is built into Kubernetes.
func ofKubernetes(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy", "extensions":
		return true
	}
	// Other groups that end in k8s.io can belong to projects of Kubernetes SIGs, so these are listed by name.
	for _, groups := range groupsOf {
		if slices.Contains(groups, group) {
			return true
		}
	}
	switch group {
	case "admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "node.k8s.io",
		"flowcontrol.apiserver.k8s.io", "resource.k8s.io", "internal.apiserver.k8s.io", "storagemigration.k8s.io", "apiregistration.k8s.io":
		return true
	}
	return false
}

// unmatchable returns the reason why a resource of a rule can never match a request, or "".
func unmatchable(rule admissionregistrationv1.RuleWithOperations, resource string) string {
	if resource == "" {
		return "" // the API server rejects it
	}
	if !resourceName.MatchString(resource) {
		return fmt.Sprintf("%q is not the name of a resource", resource)
	}
	name, _, _ := strings.Cut(resource, "/")
	groups, isKnown := groupsOf[name]
	if !isKnown || len(rule.APIGroups) == 0 || slices.ContainsFunc(rule.APIGroups, func(g string) bool { return g == "*" || g == "core" || !ofKubernetes(g) }) {
		return ""
	}
	group := slices.IndexFunc(groups, func(g string) bool { return slices.Contains(rule.APIGroups, g) })
	if group < 0 {
		return fmt.Sprintf("%s are in the API group %q", name, groups[0])
	}
	namespaced := !k8svalidation.ClusterScoped(schema.GroupResource{Group: groups[group], Resource: name})
	if !rulematch.MatchesScope(rule.Scope, namespaced) {
		return fmt.Sprintf("the scope is %s, and %s are not", *rule.Scope, name)
	}
	return ""
}

// versionsOf maps built-in resources to their versions, if there are several stable or beta versions, or two groups.
var versionsOf = map[string][]string{
	"autoscaling/horizontalpodautoscalers": {"autoscaling/v1", "autoscaling/v2"},
	"/events":                              {"v1", "events.k8s.io/v1"},
	"events.k8s.io/events":                 {"events.k8s.io/v1", "v1"},
}

// exact reports webhooks with matchPolicy Exact that are not called for some versions of a resource.
func (l *linter) exact(h *webhook) {
	if h.MatchPolicy == nil || !h.isExact() {
		return
	}
	at := h.at.Child("matchPolicy")
	for _, rule := range h.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if missed := l.missed(h, rule, group, resource); len(missed) > 0 {
					l.found("AK304", h, at, fmt.Sprintf("%s of %s do not match", resource, strings.Join(missed, ", ")))
					return
				}
			}
			if !ofKubernetes(group) && group != "*" && !slices.Contains(rule.APIVersions, "*") && !l.knows(group) {
				l.found("AK304", h, at, fmt.Sprintf("versions of %s other than %s would not match", group, strings.Join(rule.APIVersions, ", "))).withSeverity(Advice)
				return
			}
		}
	}
}

// missed returns the served versions of a resource or subresource that no rule of the webhook matches.
func (l *linter) missed(h *webhook, rule admissionregistrationv1.RuleWithOperations, group, resource string) []string {
	name, sub, _ := strings.Cut(resource, "/")
	if sub == "*" {
		sub = "" // the pattern includes the resource itself
	}
	if name == "*" || len(rule.Operations) == 0 {
		return nil
	}
	served := versionsOf[group+"/"+name]
	for _, d := range l.around.crds {
		if d.Spec.Group != group || d.Spec.Names.Plural != name {
			continue
		}
		for _, v := range d.Spec.Versions {
			if v.Served && hasSubresource(v, sub) {
				served = append(served, group+"/"+v.Name)
			}
		}
	}
	var missed []string
	for _, v := range served {
		gv, err := schema.ParseGroupVersion(v)
		r := request{GroupVersionResource: gv.WithResource(name), subresource: sub, operation: rule.Operations[0], namespace: "default"}
		cluster := r
		cluster.namespace = ""
		if err == nil && !h.hasRule(r) && !h.hasRule(cluster) {
			missed = append(missed, v)
		}
	}
	return missed
}

func hasSubresource(v apiextensionsv1.CustomResourceDefinitionVersion, sub string) bool {
	switch sub {
	case "":
		return true
	case "status":
		return v.Subresources != nil && v.Subresources.Status != nil
	case "scale":
		return v.Subresources != nil && v.Subresources.Scale != nil
	}
	return false
}

func (l *linter) knows(group string) bool {
	for _, d := range l.around.crds {
		if d.Spec.Group == group {
			return true
		}
	}
	return false
}

// oldDefaults reports unset fields of v1beta1 configurations whose defaults differ in v1.
func (l *linter) oldDefaults(h *webhook) {
	if !h.of.v1beta1 {
		return
	}
	var unset []string
	if h.FailurePolicy == nil {
		unset = append(unset, "failurePolicy is Ignore")
	}
	if h.MatchPolicy == nil {
		unset = append(unset, "matchPolicy is Exact")
	}
	if h.TimeoutSeconds == nil {
		unset = append(unset, "timeoutSeconds is 30")
	}
	if len(unset) > 0 {
		l.found("AK305", h, h.at, "by the defaults of v1beta1, "+strings.Join(unset, ", "))
	}
}

// evasion reports validating webhooks with failurePolicy Fail that users can bypass, because an objectSelector limits
// the calls to objects with certain labels.
func (l *linter) evasion(h *webhook) {
	s := h.ObjectSelector
	if h.of.mutating || !h.fails() || s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 || !h.isFor(create, update) {
		return
	}
	var keys []string
	for key := range s.MatchLabels {
		keys = append(keys, key)
	}
	for _, e := range s.MatchExpressions {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	l.found("AK306", h, h.at.Child("objectSelector"), "the author of an object chooses its label "+strings.Join(slices.Compact(keys), ", "))
}

func (h *webhook) isFor(operations ...admissionregistrationv1.OperationType) bool {
	for _, rule := range h.Rules {
		if slices.ContainsFunc(operations, func(o admissionregistrationv1.OperationType) bool { return rulematch.Contains(rule.Operations, o) }) {
			return true
		}
	}
	return false
}

// mutations reports operations for which a mutating webhook can change little or nothing.
func (l *linter) mutations(h *webhook) {
	if !h.of.mutating {
		return
	}
	for i, rule := range h.Rules {
		at := h.at.Child("rules").Index(i).Child("operations")
		unconditional := len(h.MatchConditions) == 0
		j := slices.IndexFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
			return o == admissionregistrationv1.Delete || o == "*" && unconditional
		})
		if j >= 0 {
			l.found("AK308", h, at.Index(j), "a DELETE request has no object to change")
		}
		j = slices.IndexFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool { return o == update || o == "*" })
		if j >= 0 && unconditional && matches(rule, pods.on(update, "default", "pod-1", unknownUser)) {
			l.found("AK307", h, at.Index(j), "the webhook is called for each UPDATE of a Pod, and few fields of a Pod can change")
		}
	}
}

// sideEffects reports values of the field sideEffects that v1beta1 accepts and v1 rejects.
func (l *linter) sideEffects(h *webhook) {
	if !h.of.v1beta1 {
		return
	}
	switch s := h.SideEffects; {
	case s == nil:
		l.found("AK309", h, h.at, "sideEffects is not set; the default of v1beta1 is Unknown")
	case *s == admissionregistrationv1.SideEffectClassSome || *s == admissionregistrationv1.SideEffectClassUnknown:
		l.found("AK309", h, h.at.Child("sideEffects"), fmt.Sprintf("sideEffects is %s", *s))
	}
}

func (l *linter) reviewVersions(h *webhook) {
	if slices.Contains(h.AdmissionReviewVersions, "v1beta1") && !slices.Contains(h.AdmissionReviewVersions, "v1") {
		l.found("AK310", h, h.at.Child("admissionReviewVersions"), "the webhook does not accept AdmissionReview v1")
	}
}

// sameWebhooks reports webhooks of the same name in two configurations of one kind.
func (l *linter) sameWebhooks() {
	type key struct {
		mutating bool
		name     string
	}
	first := map[key]*configuration{}
	for _, c := range l.configurations {
		for _, h := range c.webhooks {
			k := key{c.mutating, h.Name}
			switch other := first[k]; {
			case other == nil:
				first[k] = c
			case other.Name != c.Name && h.Name != "":
				l.found("AK311", h, h.at.Child("name"), fmt.Sprintf("%s also has a webhook %s", other, h.Name))
			}
		}
	}
}
