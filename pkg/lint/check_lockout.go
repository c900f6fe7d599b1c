// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/textutil"
)

// ownPods reports webhooks that their own pods have to pass.
func (l *linter) ownPods(h *hook) {
	if !h.fails() {
		return
	}
	namespace, _, _ := l.serviceOf(h)
	for _, r := range l.podsOf(h) {
		if l.surely(h, r) {
			l.found("AK201", h, h.why(r), fmt.Sprintf("failurePolicy is Fail, and it is called for the pods of its own service in the namespace %s%s", namespace, l.which(h))).
				with(fmt.Sprintf("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [%s]}]}", namespace))
			return
		}
	}
}

// which names the workloads that are known.
func (l *linter) which(h *hook) string {
	var names []string
	for _, w := range l.workloadsOf(h) {
		names = append(names, w.String())
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + textutil.Join(slices.Compact(names), "and")
}

// why returns the field of the webhook that lets a request match: the rule.
func (h *hook) why(r request) *field.Path {
	for i, rule := range h.Rules {
		if matches(rule, r) {
			return h.at.Child("rules").Index(i)
		}
	}
	return h.at
}

// ownNeeds reports what else its own pods need and it may keep from them.
func (l *linter) ownNeeds(h *hook) {
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
	if met := l.met(h, needsOf(namespace, service, account, deployed)); len(met) > 0 {
		l.found("AK202", h, h.why(met[0]), fmt.Sprintf("failurePolicy is Fail, and its own pods in the namespace %s need %s", namespace, names(met)))
	}
}

// met returns those of the requests that the webhook is surely called for.
func (l *linter) met(h *hook, all []request) []request {
	var met []request
	for _, r := range all {
		if l.surely(h, r) {
			met = append(met, r)
		}
	}
	return met
}

func names(all []request) string {
	var names []string
	for _, r := range all {
		names = append(names, r.String())
	}
	return textutil.Join(slices.Compact(names), "and")
}

func (l *linter) kubeSystem(h *hook) {
	if namespace, _, ok := l.serviceOf(h); ok && namespace == "kube-system" && !h.fails() {
		return
	}
	met := l.met(h, vitals())
	switch {
	case len(met) == 0:
	case h.fails():
		l.found("AK203", h, h.why(met[0]), fmt.Sprintf("failurePolicy is Fail, and it is called for %s of kube-system", names(met)))
	case h.of.mutating && met[0].Resource == "pods":
		l.found("AK203", h, h.why(met[0]), "it may change the pods of kube-system").only(Advice)
	}
}

func (l *linter) nodeLeases(h *hook) {
	renewal := leases.on(update, "kube-node-lease", "node-1", aNode)
	switch {
	case !l.surely(h, renewal):
	case h.fails():
		l.found("AK204", h, h.why(renewal), "failurePolicy is Fail, and it is called for each renewal of a node's lease")
	case h.of.mutating:
		l.found("AK204", h, h.why(renewal), "it is called for each renewal of a node's lease, and may change it")
	}
}

func (l *linter) nodes(h *hook) {
	if !h.fails() {
		return
	}
	if met := l.met(h, ofNodes()); len(met) > 0 {
		l.found("AK205", h, h.why(met[0]), fmt.Sprintf("failurePolicy is Fail, and it is called for %s", names(met)))
	}
}

func (l *linter) virtual(h *hook) {
	met := l.met(h, virtuals())
	if len(met) == 0 || l.isAtLeast(1, 37) {
		return
	}
	f := l.found("AK206", h, h.why(met[0]), fmt.Sprintf("before Kubernetes 1.37 (by default) it is called for %s", names(met)))
	if !h.fails() {
		f.only(Advice)
	}
}

// everything reports rules for all resources of all groups, as far as an object without labels, in a namespace
// without any but its name, meets them.
func (l *linter) everything(h *hook) {
	if !h.fails() || len(h.MatchConditions) > 0 || !h.anyObject() {
		return
	}
	anywhere := selects(h.NamespaceSelector, known{complete: true, labels: map[string]string{corev1.LabelMetadataName: "any"}})
	for i, rule := range h.Rules {
		all := slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, "*/*")
		if !all || !slices.Contains(rule.APIGroups, "*") || !slices.Contains(rule.APIVersions, "*") || !has(rule.Operations, create) && !has(rule.Operations, update) {
			continue
		}
		namespaced, cluster := anywhere && inScope(rule.Scope, true), inScope(rule.Scope, false)
		what := "all resources of all groups"
		switch {
		case !namespaced && !cluster:
			continue
		case !namespaced:
			what += " that are in no namespace"
		case !cluster:
			what += " that are in a namespace"
		}
		if namespaced && restricts(h.NamespaceSelector) {
			what += ", but for namespaces that namespaceSelector leaves out"
		}
		l.found("AK207", h, h.at.Child("rules").Index(i), "failurePolicy is Fail, and it is called for "+what)
		return
	}
}

func restricts(selector *metav1.LabelSelector) bool {
	return selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
}

func (h *hook) anyObject() bool {
	return selects(h.ObjectSelector, known{complete: true})
}

// loops reports webhooks of which each has to run before the pods of another can be created.
func (l *linter) loops() {
	guards := map[string]map[string]*hook{} // namespace of the pods, namespace of the webhook that is asked
	for _, asked := range l.hooks() {
		if !asked.fails() {
			continue
		}
		from, _, ok := l.serviceOf(asked)
		if !ok {
			continue
		}
		for _, other := range l.hooks() {
			to, _, ok := l.serviceOf(other)
			if !ok || to == from || !slices.ContainsFunc(l.podsOf(other), func(r request) bool { return l.surely(asked, r) }) {
				continue
			}
			if guards[to] == nil {
				guards[to] = map[string]*hook{}
			}
			if guards[to][from] == nil {
				guards[to][from] = asked
			}
		}
	}
	reported := map[string]bool{}
	for _, h := range l.hooks() {
		namespace, _, ok := l.serviceOf(h)
		if !ok {
			continue
		}
		path := wayBack(guards, namespace)
		key := strings.Join(sorted(path), " ")
		if path == nil || reported[key] {
			continue
		}
		reported[key] = true
		l.reportLoop(guards, path)
	}
}

// reportLoop is about namespaces of which the pods of each wait for the webhook of the next.
func (l *linter) reportLoop(guards map[string]map[string]*hook, path []string) {
	var steps []string
	for i, namespace := range path {
		guard := guards[namespace][path[(i+1)%len(path)]]
		steps = append(steps, fmt.Sprintf("%s is asked about the pods of %s", guard.Name, namespace))
	}
	first := guards[path[len(path)-1]][path[0]]
	l.found("AK208", first, first.at, "failurePolicy is Fail all round: "+textutil.Join(slices.Compact(steps), "and"))
}

// wayBack returns the shortest way from a namespace to itself.
func wayBack(guards map[string]map[string]*hook, start string) []string {
	ways := [][]string{{start}}
	seen := map[string]bool{}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		next := guards[way[len(way)-1]]
		if next[start] != nil {
			return way
		}
		for _, to := range sorted(keys(next)) {
			if !seen[to] {
				seen[to] = true
				ways = append(ways, append(slices.Clone(way), to))
			}
		}
	}
	return nil
}

func keys[V any](m map[string]V) []string {
	var all []string
	for key := range m {
		all = append(all, key)
	}
	return all
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}

func (l *linter) hooks() []*hook {
	var all []*hook
	for _, c := range l.configurations {
		all = append(all, c.hooks...)
	}
	return all
}

// service reports a service that is not in the cluster. A cluster always has services: if none was given,
// they are not known.
func (l *linter) service(h *hook) {
	s := h.ClientConfig.Service
	if !l.options.Live || s == nil || len(l.around.services) == 0 {
		return
	}
	at := h.at.Child("clientConfig", "service")
	found := l.around.services[s.Namespace+"/"+s.Name]
	if found == nil {
		l.found("AK209", h, at, fmt.Sprintf("there is no service %s/%s", s.Namespace, s.Name))
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
		l.found("AK209", h, at.Child("port"), fmt.Sprintf("the service %s/%s has no port %d", s.Namespace, s.Name, port))
	}
}

// replicas reports that a single pod is behind a webhook for Kubernetes' own resources.
func (l *linter) replicas(h *hook) {
	if !h.fails() || !h.isForKubernetes() {
		return
	}
	running := l.workloadsOf(h)
	if len(running) != 1 || running[0].replicas == nil || *running[0].replicas != 1 || l.around.scaled[running[0].String()] {
		return
	}
	l.found("AK210", h, h.at, fmt.Sprintf("failurePolicy is Fail, and %s has one replica", running[0]))
}

// isForKubernetes reports whether a rule is for resources of Kubernetes itself.
func (h *hook) isForKubernetes() bool {
	for _, rule := range h.Rules {
		if slices.ContainsFunc(rule.APIGroups, func(g string) bool { return g == "*" || ofKubernetes(g) }) {
			return true
		}
	}
	return false
}
