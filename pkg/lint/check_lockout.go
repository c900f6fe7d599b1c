// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/rulematch"
	"github.com/admitkit/admitkit/internal/textutil"
)

// ownPods reports webhooks that are called for their own Pods.
func (l *linter) ownPods(h *webhook) {
	if !h.fails() {
		return
	}
	namespace, _, _ := l.serviceOf(h)
	for _, r := range l.podsOf(h) {
		if l.surely(h, r) {
			l.found("AK201", h, h.ruleFor(r), fmt.Sprintf("failurePolicy is Fail, and the webhook is called for the Pods of its own Service in namespace %s%s", namespace, l.workloadNames(h))).
				withFix(fmt.Sprintf("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [%s]}]}", namespace))
			return
		}
	}
}

// workloadNames returns ": " and the known workloads of a webhook, or "".
func (l *linter) workloadNames(h *webhook) string {
	var names []string
	for _, w := range l.workloadsOf(h) {
		names = append(names, w.String())
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + textutil.Join(slices.Compact(names), "and")
}

// ruleFor returns the path of the first rule that matches a request.
func (h *webhook) ruleFor(r request) *field.Path {
	for i, rule := range h.Rules {
		if matches(rule, r) {
			return h.at.Child("rules").Index(i)
		}
	}
	return h.at
}

// ownNeeds reports webhooks that are called for requests that their own Pods need, other than the creation of Pods.
func (l *linter) ownNeeds(h *webhook) {
	namespace, service, ok := l.serviceOf(h)
	if !h.fails() || !ok {
		return
	}
	workloads := l.workloadsOf(h)
	account, deployed := "default", len(workloads) == 0
	for _, w := range workloads {
		deployed = deployed || w.kind == "Deployment"
		if name := w.template.Spec.ServiceAccountName; name != "" {
			account = name
		}
	}
	if called := l.calledFor(h, needsOf(namespace, service, account, deployed)); len(called) > 0 {
		l.found("AK202", h, h.ruleFor(called[0]), fmt.Sprintf("failurePolicy is Fail, and the webhook's own Pods in namespace %s need %s", namespace, names(called)))
	}
}

// calledFor returns the requests for which the webhook is certainly called.
func (l *linter) calledFor(h *webhook, all []request) []request {
	var called []request
	for _, r := range all {
		if l.surely(h, r) {
			called = append(called, r)
		}
	}
	return called
}

func names(all []request) string {
	var names []string
	for _, r := range all {
		names = append(names, r.String())
	}
	return textutil.Join(slices.Compact(names), "and")
}

func (l *linter) kubeSystem(h *webhook) {
	if namespace, _, ok := l.serviceOf(h); ok && namespace == "kube-system" && !h.fails() {
		return
	}
	called := l.calledFor(h, controlPlaneRequests())
	switch {
	case len(called) == 0:
	case h.fails():
		l.found("AK203", h, h.ruleFor(called[0]), fmt.Sprintf("failurePolicy is Fail, and the webhook is called for %s in kube-system", names(called)))
	case h.of.mutating && called[0].Resource == "pods":
		l.found("AK203", h, h.ruleFor(called[0]), "the webhook can change the Pods of kube-system").withSeverity(Advice)
	}
}

func (l *linter) nodeLeases(h *webhook) {
	renewal := leases.on(update, "kube-node-lease", "node-1", aNode)
	switch {
	case !l.surely(h, renewal):
	case h.fails():
		l.found("AK204", h, h.ruleFor(renewal), "failurePolicy is Fail, and the webhook is called for each renewal of a node lease")
	case h.of.mutating:
		l.found("AK204", h, h.ruleFor(renewal), "the webhook is called for each renewal of a node lease, and can change the lease")
	}
}

func (l *linter) nodes(h *webhook) {
	if !h.fails() {
		return
	}
	if called := l.calledFor(h, ofNodes()); len(called) > 0 {
		l.found("AK205", h, h.ruleFor(called[0]), fmt.Sprintf("failurePolicy is Fail, and the webhook is called for %s", names(called)))
	}
}

func (l *linter) virtual(h *webhook) {
	called := l.calledFor(h, reviewRequests())
	if len(called) == 0 || l.isAtLeast(1, 37) {
		return
	}
	f := l.found("AK206", h, h.ruleFor(called[0]), fmt.Sprintf("before Kubernetes 1.37, the webhook is called for %s by default", names(called)))
	if !h.fails() {
		f.withSeverity(Advice)
	}
}

// everything reports rules for all resources of all groups, if they match an object without labels in a namespace
// that has no label except its name.
func (l *linter) everything(h *webhook) {
	if !h.fails() || len(h.MatchConditions) > 0 || !h.anyObject() {
		return
	}
	anywhere := selects(h.NamespaceSelector, known{complete: true, labels: map[string]string{corev1.LabelMetadataName: "any"}})
	for i, rule := range h.Rules {
		all := slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, "*/*")
		if !all || !slices.Contains(rule.APIGroups, "*") || !slices.Contains(rule.APIVersions, "*") || !rulematch.Contains(rule.Operations, create) && !rulematch.Contains(rule.Operations, update) {
			continue
		}
		namespaced, cluster := anywhere && rulematch.MatchesScope(rule.Scope, true), rulematch.MatchesScope(rule.Scope, false)
		what := "all resources of all groups"
		switch {
		case !namespaced && !cluster:
			continue
		case !namespaced:
			what = "all cluster-scoped resources of all groups"
		case !cluster:
			what = "all namespaced resources of all groups"
		}
		if namespaced && restricts(h.NamespaceSelector) {
			what += ", except in namespaces that namespaceSelector excludes"
		}
		l.found("AK207", h, h.at.Child("rules").Index(i), "failurePolicy is Fail, and the webhook is called for "+what)
		return
	}
}

func restricts(selector *metav1.LabelSelector) bool {
	return selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
}

func (h *webhook) anyObject() bool {
	return selects(h.ObjectSelector, known{complete: true})
}

// loops reports cycles of webhooks in which each must run before the Pods of the next can be created.
func (l *linter) loops() {
	guards := map[string]map[string]*webhook{} // by the namespace of the Pods, then by the namespace of the webhook
	for _, guard := range l.webhooks() {
		if !guard.fails() {
			continue
		}
		from, _, ok := l.serviceOf(guard)
		if !ok {
			continue
		}
		for _, other := range l.webhooks() {
			to, _, ok := l.serviceOf(other)
			if !ok || to == from || !slices.ContainsFunc(l.podsOf(other), func(r request) bool { return l.surely(guard, r) }) {
				continue
			}
			if guards[to] == nil {
				guards[to] = map[string]*webhook{}
			}
			if guards[to][from] == nil {
				guards[to][from] = guard
			}
		}
	}
	reported := map[string]bool{}
	for _, h := range l.webhooks() {
		namespace, _, ok := l.serviceOf(h)
		if !ok {
			continue
		}
		path := shortestCycle(guards, namespace)
		key := strings.Join(slices.Sorted(slices.Values(path)), " ")
		if path == nil || reported[key] {
			continue
		}
		reported[key] = true
		l.reportLoop(guards, path)
	}
}

// reportLoop reports a cycle of namespaces: the Pods of each need the webhook of the next.
func (l *linter) reportLoop(guards map[string]map[string]*webhook, path []string) {
	var steps []string
	for i, namespace := range path {
		guard := guards[namespace][path[(i+1)%len(path)]]
		steps = append(steps, fmt.Sprintf("%s is called for the Pods of %s", guard.Name, namespace))
	}
	first := guards[path[len(path)-1]][path[0]]
	l.found("AK208", first, first.at, "failurePolicy of all of them is Fail: "+textutil.Join(slices.Compact(steps), "and"))
}

// shortestCycle returns the shortest cycle through a namespace, or nil.
func shortestCycle(guards map[string]map[string]*webhook, start string) []string {
	paths := [][]string{{start}}
	seen := map[string]bool{}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		next := guards[path[len(path)-1]]
		if next[start] != nil {
			return path
		}
		for _, to := range slices.Sorted(maps.Keys(next)) {
			if !seen[to] {
				seen[to] = true
				paths = append(paths, append(slices.Clone(path), to))
			}
		}
	}
	return nil
}

func (l *linter) webhooks() []*webhook {
	var all []*webhook
	for _, c := range l.configurations {
		all = append(all, c.webhooks...)
	}
	return all
}

// service reports a Service that does not exist. A cluster always has Services, so an input without any means that they
// could not be read.
func (l *linter) service(h *webhook) {
	s := h.ClientConfig.Service
	if !l.options.Live || s == nil || len(l.around.services) == 0 {
		return
	}
	at := h.at.Child("clientConfig", "service")
	found := l.around.services[s.Namespace+"/"+s.Name]
	if found == nil {
		l.found("AK209", h, at, fmt.Sprintf("the Service %s/%s does not exist", s.Namespace, s.Name))
		return
	}
	port := int32(443)
	if s.Port != nil {
		port = *s.Port
	}
	for _, p := range found.Spec.Ports {
		if p.Port == port {
			return
		}
	}
	if found.Spec.Type != "ExternalName" {
		l.found("AK209", h, at.Child("port"), fmt.Sprintf("the Service %s/%s has no port %d", s.Namespace, s.Name, port))
	}
}

// replicas reports webhooks with a single replica, if their rules match built-in resources.
func (l *linter) replicas(h *webhook) {
	if !h.fails() || !h.isForKubernetes() {
		return
	}
	running := l.workloadsOf(h)
	if len(running) != 1 || running[0].replicas == nil || *running[0].replicas != 1 || l.around.scaled[running[0].String()] {
		return
	}
	l.found("AK210", h, h.at, fmt.Sprintf("failurePolicy is Fail, and %s has one replica", running[0]))
}

// isForKubernetes reports whether a rule matches built-in resources.
func (h *webhook) isForKubernetes() bool {
	for _, rule := range h.Rules {
		if slices.ContainsFunc(rule.APIGroups, func(g string) bool { return g == "*" || ofKubernetes(g) }) {
			return true
		}
	}
	return false
}
